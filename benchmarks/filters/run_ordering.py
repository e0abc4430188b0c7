"""One ordering over given tuples, through the engine's own executor.

With `costs` the predicates are columns of truth values and costs are injected: counts are exact and
repeatable. Without, each predicate is a look-up in the last 10,000 keys of a window, repeated as
often as it is to cost, and costs are measured as the engine measures them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from thalweg.adapt.filters.catalog import make_ordering, usual_settings
from thalweg.adapt.filters.ordering import Order, Overhead, Settings
from thalweg.columns.vector import Vector
from thalweg.exec.context import TaskContext
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.predicates.conjunction import judge
from thalweg.exec.tactics import Observation
from thalweg.plan.expr import Column, Predicate, UserCall
from thalweg.plan.types import BIGINT, BOOLEAN

WINDOW = 10_000
ORDERINGS = ("a-greedy", "sweep", "independent", "local-swaps", "auto")


@dataclass
class Outcome:
    """What a run took: evaluations for the answer and for the profile, by predicate."""

    evaluated: np.ndarray
    extra: np.ndarray
    seconds: float
    filter_seconds: float
    overhead: Overhead
    observations: list[Observation] = field(default_factory=list)
    switches: int = 0
    rows: int = 0

    def per_tuple(self, costs: Sequence[float] | None = None, profile: bool = True) -> float:
        """Evaluations (or their costs) for each tuple."""
        weights = np.ones(len(self.evaluated)) if costs is None else np.array(costs)
        counted = self.evaluated + (self.extra if profile else 0)
        return float((counted * weights).sum() / self.rows)

    def series(self) -> tuple[np.ndarray, np.ndarray]:
        """Tuples seen and evaluations per 2,000 tuples, slice by slice, without the profile's."""
        rows = np.array([o.rows for o in self.observations])
        spent = np.array([o.evaluated.sum() for o in self.observations])
        return np.cumsum(rows), spent / rows * 2_000


def run_counted(
    name: str,
    drops: np.ndarray,
    costs: Sequence[float],
    *,
    rate: float | None = None,
    order: Order | None = None,
    seed: int = 0,
) -> Outcome:
    """Exact counts under injected costs."""
    n = drops.shape[1]
    predicates = [Predicate(Column(BOOLEAN, False, f"f{i}"), i, f"f{i}") for i in range(n)]
    columns = {f"f{i}": Vector(BOOLEAN, ~drops[:, i]) for i in range(n)}
    settings = Settings(n, injected=tuple(map(float, costs)))
    return _run(name, predicates, columns, len(drops), settings, {}, rate, order, seed)


def run_timed(
    name: str,
    drops: np.ndarray,
    repeats: Sequence[int],
    *,
    rate: float | None = None,
    order: Order | None = None,
    seed: int = 0,
) -> Outcome:
    """Measured costs: predicate i looks its key up `repeats[i]` times."""
    n = drops.shape[1]
    rng = np.random.default_rng(seed)
    keys = np.sort(rng.choice(1 << 40, 2 * WINDOW, replace=False))
    inside, outside = keys[::2], keys[1::2]
    picks = rng.integers(0, WINDOW, len(drops))
    columns = {
        f"k{i}": Vector(BIGINT, np.where(drops[:, i], outside[picks], inside[picks]))
        for i in range(n)
    }
    functions = {f"in{i}": _lookup(f"in{i}", inside, repeats[i]) for i in range(n)}
    predicates = [
        Predicate(
            UserCall(BOOLEAN, False, f"in{i}", (Column(BIGINT, False, f"k{i}"),), raises=False),
            i,
            f"in{i}",
        )
        for i in range(n)
    ]
    return _run(name, predicates, columns, len(drops), Settings(n), functions, rate, order, seed)


def _lookup(name: str, keys: np.ndarray, repeats: int) -> UserFunction:
    def member(asked: pa.Array) -> np.ndarray:
        values = asked.to_numpy()
        for _ in range(repeats):
            at = np.searchsorted(keys, values)
            found = keys[np.minimum(at, len(keys) - 1)] == values
        return found

    return UserFunction(name, member, BOOLEAN, (BIGINT,), vectorized=True)


def _run(
    name: str,
    predicates: list[Predicate],
    columns: dict[str, Vector],
    rows: int,
    settings: Settings,
    functions: dict[str, UserFunction],
    rate: float | None,
    order: Order | None,
    seed: int,
) -> Outcome:
    settings = usual_settings(name, settings, rate)
    ordering = make_ordering(name, replace(settings), order).fork(seed)
    ctx = TaskContext(None, functions, 0, 0, tactics={tuple(predicates): ordering})  # type: ignore[arg-type]
    begun = time.perf_counter()
    judge(predicates, columns, rows, ctx)
    seconds = time.perf_counter() - begun
    seen = ctx.observations[tuple(predicates)]
    return Outcome(
        np.sum([o.evaluated for o in seen], axis=0),
        np.sum([o.extra for o in seen], axis=0),
        seconds,
        float(sum(o.seconds.sum() for o in seen)),
        ordering.overhead,
        seen,
        len(ordering.switches),
        rows,
    )
