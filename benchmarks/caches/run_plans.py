"""Window joins in the engine's own step under forced or adaptive plans, counted and timed.

An operation is a tuple that is looked up in a window or a cache, one that is made from a match, or
one that a cache hears of, all overhead of profiling included. Rows come in epochs; the first ones
fill the windows and are left out. The others are so many that caches are chosen as rarely among
them as in a long run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations, product

import numpy as np
import pyarrow as pa

from thalweg.adapt.operation_costs import UNITS
from thalweg.plan.joins.join_caches import Span, all_spans, compatible, with_spans
from thalweg.plan.joins.join_order import PipelineOf, repiped
from thalweg.plan.joins.join_trees import Tree, binary_trees, with_tree
from thalweg.plan.physical import QueryPlan
from thalweg.testing import Runner

EPOCH = 1_000_000  # µs
OPERATIONS = ("probes:", "enumerated:", "combined:", "lookups:", "deltas:", "profile probes")
Draw = Callable[[np.random.Generator, int, int], dict[str, np.ndarray]]
"""Columns of some rows of a stream, given the number of rows before them."""
Planned = Callable[[QueryPlan], QueryPlan]


@dataclass(frozen=True)
class Workload:
    """Streams with rows per epoch (a number, or one per epoch), windows in epochs, and how their
    columns are drawn."""

    sql: str
    rates: Mapping[str, int | Callable[[int], int]]
    draws: Mapping[str, Draw]
    columns: Mapping[str, str]
    epochs: int = 12
    warm: int = 5
    seed: int = 3


@dataclass
class Outcome:
    """Per epoch: operations, rows that came, CPU seconds; and all results, and what caches hold."""

    operations: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    results: int = 0
    bytes: int = 0
    switches: list[str] = field(default_factory=list)
    warm: int = 0
    orders: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def per_row(self) -> float:
        return sum(self.operations[self.warm :]) / sum(self.rows[self.warm :])

    @property
    def spent(self) -> float:
        return sum(self.seconds[self.warm :])

    @property
    def rate(self) -> float:
        """Rows a second."""
        return sum(self.rows[self.warm :]) / self.spent


def run(
    work: Workload,
    planned: Planned | None = None,
    joins: str = "mjoin",
    memory: int | None = None,
    counted: bool = True,
) -> Outcome:
    """`planned` forces a plan; without it `joins` says what the engine may do by itself, by the
    number of operations or, unless they are `counted`, by the time they take here."""
    runner = _runner(work)
    core = runner.core
    core.adaptation.join_costs = UNITS if counted else None
    if memory is not None:
        core.adaptation.cache_bytes = memory
    query = runner.query(f"{work.sql} WITH (joins = '{joins}')", name="q")
    if planned is not None:
        core.plans.replace("q", planned(core.plans["q"]))
        core.adaptation.queries.clear()
    found, before = Outcome(warm=work.warm), 0
    for batch in _batches(work):
        entry = runner.entry(batch)
        begun = time.process_time()
        runner.epoch([entry])
        found.seconds.append(time.process_time() - begun)
        stats = query.stats()
        after = sum(v for k, v in stats["counts"].items() if k.startswith(OPERATIONS))
        found.operations.append(after - before)
        found.rows.append(sum(t.num_rows for t in batch.values()))
        before = after
    found.results = stats["emitted"]
    found.bytes = sum(c["bytes"] for c in stats["adapt"].get("caches", ()))
    found.switches = [str(s) for s in query.plan_log]
    found.orders = core.plans["q"].blocks[0].orders
    runner.close()
    return found


def _runner(work: Workload) -> Runner:
    runner = Runner()
    for name, columns in work.columns.items():
        runner.stream(name, _table(dict.fromkeys(columns, np.empty(0, np.int64)), np.empty(0)))
    return runner


def _batches(work: Workload) -> Iterator[dict[str, pa.Table]]:
    rng = np.random.default_rng(work.seed)
    before = dict.fromkeys(work.rates, 0)
    for epoch in range(work.epochs):
        batch = {}
        for name, rate in work.rates.items():
            rows = rate if isinstance(rate, int) else rate(epoch)
            ts = np.sort(rng.integers(epoch * EPOCH, (epoch + 1) * EPOCH, rows))
            ts[-1] = (epoch + 1) * EPOCH - 1  # all streams come as far
            batch[name] = _table(work.draws[name](rng, before[name], rows), ts)
            before[name] += rows
        yield batch


def _table(columns: Mapping[str, np.ndarray], ts: np.ndarray) -> pa.Table:
    stamps = pa.array(ts.astype(np.int64), pa.timestamp("us", "UTC"))
    return pa.table({**{c: v.astype(np.int64) for c, v in columns.items()}, "ts": stamps})


# -- plans ---------------------------------------------------------------------------------------


def best(work: Workload, plans: Sequence[Planned]) -> Outcome:
    """The plan that needs fewest operations; all give the same results."""
    found = [run(work, planned) for planned in plans]
    assert len({o.results for o in found}) == 1
    return min(found, key=lambda o: o.per_row)


def trees(work: Workload) -> list[Tree]:
    return list(binary_trees(_plan(work).blocks[0]))


def _plan(work: Workload) -> QueryPlan:
    return _runner(work).query(work.sql, name="q").plan


def mjoins(work: Workload) -> dict[str, Planned]:
    """Every way to order the pipelines of a join of three, without subresults."""
    leaves = range(len(work.columns))
    choices = [list(permutations([i for i in leaves if i != leaf])) for leaf in leaves]
    found: dict[str, Planned] = {}
    for orders in product(*choices):
        name = ", ".join(f"{'RSTUVWX'[i]}: {o}" for i, o in enumerate(orders))
        found[f"mjoin {name}"] = lambda plan, orders=orders: _ordered(plan, orders)  # type: ignore[misc]
    return found


def _ordered(plan: QueryPlan, orders: Sequence[Sequence[int]]) -> QueryPlan:
    for leaf, order in enumerate(orders):
        plan = repiped(plan, PipelineOf(0, leaf), list(order))
    return plan


def xjoins(work: Workload) -> dict[str, Planned]:
    return {f"xjoin {t}": (lambda plan, t=t: with_tree(plan, 0, t)) for t in trees(work)}


def always_cached(work: Workload) -> dict[str, Planned]:
    """One cache for good, each that the order of the text allows, and as many as go together."""
    block = _plan(work).blocks[0]
    plans: dict[str, list[Span]] = {
        f"cache {block.orders[s.leaf][s.first : s.last + 1]} in {s.leaf}": [s]
        for s in all_spans(block)
    }
    plans["caches, widest first"] = _together(sorted(all_spans(block), key=_width))
    plans["caches, narrowest first"] = _together(sorted(all_spans(block), key=_width)[::-1])
    return {n: (lambda plan, s=s: with_spans(plan, 0, s)) for n, s in plans.items()}


def prefix_plans(work: Workload) -> list[Planned]:
    """Pipelines in the order of a tree, and caches whose changes come by: all, each one, none."""
    found: list[Planned] = []
    for tree in trees(work):
        found += [
            lambda plan, t=tree, n=n: _cached(with_tree(plan, 0, t), n)  # type: ignore[misc]
            for n in range(-1, 3)
        ]
    return found


def given_orders(work: Workload, orders: Mapping[int, tuple[int, ...]], quota: int) -> Given:
    """The source's own problem: caches in pipelines as A-Greedy has ordered them, all sets of which
    none overlap. `prefix` are those of candidates that keep the prefix invariant there, `wide`
    those that have others besides, of most windows first, until there are `quota` candidates."""
    block = _ordered(_plan(work), [orders[leaf] for leaf in sorted(orders)]).blocks[0]
    prefix = all_spans(block, prefix=True)
    others = sorted((s for s in all_spans(block) if s not in prefix), key=_width)
    wide = [*prefix, *others[: max(quota - len(prefix), 0)]]
    plans = [_given(orders, spans) for spans in _sets(prefix)]
    return Given(plans, [_given(orders, spans) for spans in _sets(wide)], len(prefix), len(wide))


@dataclass(frozen=True)
class Given:
    """Plans over pipelines that are given, and how many candidates there are."""

    prefix: list[Planned]
    wide: list[Planned]
    prefix_candidates: int
    candidates: int


def _sets(spans: Sequence[Span]) -> list[list[Span]]:
    sizes = range(len(spans) + 1)
    found = [list(some) for size in sizes for some in combinations(spans, size)]
    return [some for some in found if compatible(some)]


def _given(orders: Mapping[int, tuple[int, ...]], spans: Sequence[Span]) -> Planned:
    ordered = [orders[leaf] for leaf in sorted(orders)]
    return lambda plan: with_spans(_ordered(plan, ordered), 0, spans)


def global_plans(work: Workload) -> list[Planned]:
    """Caches of all other windows in some of the pipelines, kept up apart."""
    count = len(work.rates)
    return [
        lambda plan, b=bits: _widest(plan, b)  # type: ignore[misc]
        for bits in range(1, 2**count)
    ]


def _width(span: Span) -> int:
    """For sorting the widest first."""
    return span.first - span.last


def _together(spans: Sequence[Span]) -> list[Span]:
    """Spans that do not overlap, those that come first preferred."""
    chosen: list[Span] = []
    for span in spans:
        if compatible([*chosen, span]):
            chosen.append(span)
    return chosen


def _cached(plan: QueryPlan, which: int) -> QueryPlan:
    """All compatible spans whose changes come by, widest first (-1), or those over one set of
    leaves."""
    plan = with_spans(plan, 0, [])
    block = plan.blocks[0]
    spans = sorted(all_spans(block, prefix=True), key=_width)
    orders = block.orders
    sets = list(dict.fromkeys(frozenset(orders[s.leaf][s.first : s.last + 1]) for s in spans))
    if which >= 0:
        wanted = sets[which : which + 1]
        spans = [s for s in spans if frozenset(orders[s.leaf][s.first : s.last + 1]) in wanted]
    return with_spans(plan, 0, _together(spans))


def _widest(plan: QueryPlan, bits: int) -> QueryPlan:
    block = plan.blocks[0]
    spans = [
        Span(p.leaf, 0, len(p.order) - 1) for n, p in enumerate(block.pipelines) if bits >> n & 1
    ]
    return with_spans(plan, 0, spans)
