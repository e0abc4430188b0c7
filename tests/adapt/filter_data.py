"""Data for filter orderings, the executor around them, and what must hold, written naively.

Predicates are the boolean columns f0, f1, ...; a row passes one where its column is true. `drops`
arrays say the opposite, per row and predicate, as profiles do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.independent import Independent
from thalweg.adapt.filters.localswaps import LocalSwaps
from thalweg.adapt.filters.ordering import Ordering
from thalweg.adapt.filters.sweep import Sweep
from thalweg.columns.vector import Vector
from thalweg.exec.context import TaskContext
from thalweg.exec.predicates.conjunction import Judged, judge
from thalweg.exec.tactics import Observation, Tactic
from thalweg.plan.expr import Column, Predicate
from thalweg.plan.predicate_order import in_text_order
from thalweg.plan.types import BOOLEAN

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Order = Sequence[int]

ADAPTIVE: list[type[Ordering]] = [AGreedy, Sweep, Independent, LocalSwaps, Auto]
ALL: list[type[Ordering]] = [*ADAPTIVE, Ordering]


def rng_of(*seed: object) -> np.random.Generator:
    """A generator of its own for each seed, the same in every run."""
    return np.random.default_rng(list(" ".join(map(str, seed)).encode()))


# --- generators


def correlated(rng: np.random.Generator, rows: int, passing: Floats, gamma: int = 1) -> Bools:
    """Section 5.1 [G]: predicates in ceil(n / gamma) groups. Those of different groups are
    independent; two of a group with the same rate of passing agree on 80 % of the rows.

    Each predicate copies the latent value of its group with probability q, else draws its own."""
    n = len(passing)
    latent = rng.random((rows, -(-n // gamma)))[:, np.arange(n) // gamma]
    copies = rng.random((rows, n)) < agreement(passing) if gamma > 1 else np.zeros((rows, n), bool)
    return np.where(copies, latent, rng.random((rows, n))) < passing


def agreement(passing: Floats) -> Floats:
    """q of section 5.1: with what probability a predicate copies the value of its group."""
    chance = passing**2 + (1 - passing) ** 2
    return np.sqrt(np.maximum(0.8 - chance, 0) / (1 - chance))


def permuted(
    rng: np.random.Generator, rates: Floats, periods: int, rows: int, gamma: int = 1
) -> tuple[Bools, list[Floats]]:
    """So many periods of so many rows, each with the rates of passing in another random order."""
    drawn = [rng.permutation(rates) for _ in range(periods)]
    return np.concatenate([correlated(rng, rows, r, gamma) for r in drawn]), drawn


def random_instance(rng: np.random.Generator, n: int, rows: int) -> tuple[Bools, Floats]:
    """Drops of rows that each fall to some predicate, strongly correlated, and costs."""
    patterns = rng.random((rng.integers(2, 3 * n), n)) < rng.uniform(0.1, 0.6)
    patterns[~patterns.any(1), rng.integers(n)] = True
    weights = rng.dirichlet(np.full(len(patterns), 0.5))
    return patterns[rng.choice(len(patterns), rows, p=weights)], rng.uniform(0.2, 5.0, n)


def blocks(rng: np.random.Generator, values: int, count: int) -> npt.NDArray[np.int64]:
    """Each of 0..values-1 once per block, shuffled: uniform without noise."""
    return rng.permuted(np.tile(np.arange(values), (count, 1)), axis=1).ravel()


# --- what must hold


def evaluations(order: Order, drops: Bools) -> int:
    """How many predicates are asked in all: each row until one drops it."""
    total = 0
    for row in drops[:, list(order)].tolist():
        total += row.index(True) + 1 if True in row else len(row)
    return total


def matrix_of(order: Order, drops: Bools) -> npt.NDArray[np.int64]:
    """V of section 2.3 by its definition."""
    n = len(order)
    found = np.zeros((n, n), np.int64)
    for i in range(n):
        alive = drops[~drops[:, list(order[:i])].any(1)]
        for j in range(i, n):
            found[i, j] = alive[:, order[j]].sum()
    return found


def keeps_invariant(order: Order, drops: Bools, costs: Floats, alpha: float = 1.0) -> bool:
    """The greedy invariant of section 2.1, to within rounding."""
    counts = matrix_of(order, drops)
    ratios = counts / costs[list(order)]
    return all(
        ratios[i, i] >= alpha * ratios[i, j] * (1 - 1e-12)
        for i in range(len(order))
        for j in range(i, len(order))
    )


def survivors(drops: Bools) -> Floats:
    """Per set of predicates (as a bit mask) the share of the rows that none of them drops."""
    n = drops.shape[1]
    masks = drops @ (1 << np.arange(n))
    return np.array([(masks & s == 0).mean() for s in range(1 << n)])


def price(order: Order, alive: Floats, costs: Floats) -> float:
    """Equation 4.1: each predicate costs its price times the rows that reach it."""
    total, done = 0.0, 0
    for i in order:
        total += costs[i] * alive[done]
        done |= 1 << i
    return total


def cheapest(alive: Floats, costs: Floats) -> float:
    """OPT: the least price of all orders."""
    return min(price(order, alive, costs) for order in permutations(range(len(costs))))


# --- the executor


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a run: the judgement, the slices as observed, and the executor's counts."""

    judged: Judged
    slices: list[Observation]
    counts: Counter[str]

    def per_slice(self, costs: Floats | None = None, extra: bool = False) -> Floats:
        """Cost per row and slice, of the answer alone or with the profile."""
        asked = np.array([s.evaluated + extra * s.extra for s in self.slices])
        rows = np.array([s.rows for s in self.slices])
        return (asked if costs is None else asked * costs).sum(1) / rows

    def tail(self, slices: int) -> float:
        """Evaluations per row over the last slices."""
        last = self.slices[-slices:]
        return float(sum(s.evaluated.sum() for s in last) / sum(s.rows for s in last))

    @property
    def evaluated(self) -> int:
        return _sum(self.counts, "evaluations:")

    @property
    def profiled(self) -> int:
        return _sum(self.counts, "profiled:")


def _sum(counts: Counter[str], prefix: str) -> int:
    return sum(v for k, v in counts.items() if k.startswith(prefix))


def predicates(n: int) -> tuple[Predicate, ...]:
    return in_text_order([Predicate(Column(BOOLEAN, False, f"f{i}"), i, f"f{i}") for i in range(n)])


def drive(tactic: Tactic | None, passing: Bools) -> Run:
    """Run the executor over boolean columns."""
    columns = [Vector(BOOLEAN, np.ascontiguousarray(passing[:, i])) for i in range(len(passing.T))]
    return drive_vectors(tactic, columns)


def drive_vectors(tactic: Tactic | None, columns: Sequence[Vector]) -> Run:
    """The same with NULLs and errors."""
    asked = predicates(len(columns))
    tactics = {} if tactic is None else {asked: tactic}
    ctx = TaskContext(cache=None, functions={}, since=0, until=0, tactics=tactics)  # type: ignore[arg-type]
    named = {f"f{i}": c for i, c in enumerate(columns)}
    judged = judge(asked, named, len(columns[0]), ctx)
    return Run(judged, ctx.observations.get(asked, []), ctx.counts)


def in_words(run: Run) -> tuple[list[int], list[tuple[int, str, int]]]:
    """Rows that pass, and rejected ones with predicate and code."""
    found = run.judged
    codes = found.codes.tolist() if len(found.erring) else []
    blamed = zip(found.erring.tolist(), map(str, found.predicates), codes, strict=True)
    return found.passing.tolist(), list(blamed)


def clear_instances(count: int, n: int, rows: int) -> Iterator[tuple[int, Bools, Floats]]:
    """Instances in which at every place one predicate leads by far, so that any order keeping the
    invariant to within `alpha` is Static Greedy's, to within predicates that drop nothing."""
    seed = found = 0
    while found < count:
        seed += 1
        drops, costs = random_instance(rng_of("clear", n, seed), n, rows)
        if _leads(drops, costs):
            found += 1
            yield seed, drops, costs


def _leads(drops: Bools, costs: Floats) -> bool:
    rows, left = drops, list(range(len(costs)))
    while len(rows) and len(left) > 1:
        if len(rows) < len(drops) / 20:
            return False  # too rare to be judged
        ratios = sorted((rows[:, i].sum() / costs[i], i) for i in left)
        if ratios[-2][0] > 0.7 * ratios[-1][0]:
            return False
        left.remove(ratios[-1][1])
        rows = rows[~rows[:, ratios[-1][1]]]
    return True
