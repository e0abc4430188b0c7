"""The adaptive loop of an engine: what to watch in each query, and what to change in its plan.

All of it is soft state of the driver. Orders that were chosen are handed back to be kept with the
query, so that a restart begins where the engine stopped; everything else is learned again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from thalweg.adapt.constants import (
    AUTO_GAIN,
    CACHE_BYTES,
    CACHED_GAIN,
    LOOKUPS_ALIKE,
    PIPELINE_GAIN,
)
from thalweg.adapt.filters.catalog import make_ordering, usual_settings
from thalweg.adapt.filters.ordering import Order, Ordering, Settings
from thalweg.adapt.filters.watch import FilterWatch, OrderWatch
from thalweg.adapt.joins.caching import CacheWatch
from thalweg.adapt.joins.calibration import JoinCosts
from thalweg.adapt.joins.watch import PipelineWatch
from thalweg.adapt.planlog import PlanLog
from thalweg.adapt.profiler import Profiler
from thalweg.exec.tactics import (
    AnyTactic,
    JoinOf,
    JoinSeen,
    Observation,
    Seen,
    Subject,
)
from thalweg.plan.conjunctions import Ordered, orderable
from thalweg.plan.physical import QueryPlan
from thalweg.plan.pipelines import orderable_pipelines, pipeline_of
from thalweg.plan.query import QueryOptions
from thalweg.plan.relations.block import blocks_of
from thalweg.plan.trees import usual_tree, with_tree

SELECTIVITY = "selectivity"


@dataclass(slots=True)
class Watched:
    """What is watched of one query."""

    filters: list[FilterWatch] = field(default_factory=list)
    pipelines: list[PipelineWatch] = field(default_factory=list)
    caches: list[CacheWatch] = field(default_factory=list)
    log: PlanLog = field(default_factory=PlanLog)

    @property
    def orders(self) -> list[OrderWatch]:
        return [*self.filters, *self.pipelines]


class Adaptation:
    """Executor hooks: `tactics` before a step, `learn` after it."""

    def __init__(
        self, costs: Mapping[str, float] | None = None, join_costs: JoinCosts | None = None
    ) -> None:
        self.costs = dict(costs or {})
        self.join_costs = join_costs
        self.cache_bytes = CACHE_BYTES
        self.profiler = Profiler()
        self.queries: dict[str, Watched] = {}

    # -- what is watched ---------------------------------------------------------------------

    def watch(
        self, name: str, plan: QueryPlan, options: QueryOptions, orders: Iterable[Order] = ()
    ) -> QueryPlan:
        """Begin to watch a query, from orders that served it before; the plan that uses them."""
        found = Watched(log=self.log(name))  # a new plan of a known query goes on with its log
        self.forget(name)
        known = list(orders)
        for conjunction in orderable(plan):
            order = _usable(known.pop(0) if known else None, len(conjunction.predicates))
            ordering = self._ordering(conjunction, options, order)
            found.filters.append(FilterWatch(conjunction, ordering, found.log))
        for which in orderable_pipelines(plan) if options.joins != "xjoin" else ():
            count = len(pipeline_of(plan, which).probes)
            order = _usable(known.pop(0) if known else None, count)
            ordering = self._pipeline_ordering(count, options, order)
            found.pipelines.append(PipelineWatch(plan, which, ordering, found.log))
        for watch in found.orders:
            plan = watch.applied(plan)
            for i in range(len(watch.texts)):
                self.profiler.ask((name, watch.name_of(i), SELECTIVITY))
        plan = self._with_joins(plan, options, found)
        self.queries[name] = found
        return plan

    def _with_joins(self, plan: QueryPlan, options: QueryOptions, found: Watched) -> QueryPlan:
        """Joins of three leaves or more: as a tree, or with caches to be chosen."""
        for number, relation in blocks_of(plan.relations):
            if not relation.is_many_way:
                continue
            if options.joins == "xjoin":
                plan = with_tree(plan, number, usual_tree(relation))
            elif options.joins != "mjoin" and self.chooses_caches:
                gain = CACHED_GAIN if options.joins == "cached" else AUTO_GAIN
                found.caches.append(
                    CacheWatch(plan, number, found.log, self.join_costs, self.cache_bytes, gain)
                )
        return plan

    chooses_caches = True

    def forget(self, name: str) -> None:
        for watch in self.queries.pop(name, Watched()).orders:
            for i in range(len(watch.texts)):
                self.profiler.release((name, watch.name_of(i), SELECTIVITY))

    def _ordering(
        self, conjunction: Ordered, options: QueryOptions, order: Order | None
    ) -> Ordering:
        texts = [p.label for p in conjunction.predicates]
        injected = None
        if any(t in self.costs for t in texts):
            injected = tuple(self.costs.get(t, 1.0) for t in texts)
        settings = Settings(len(texts), conjunction.guards, conjunction.learns, injected)
        if options.filters == "fixed":
            order = None
        settings = usual_settings(options.filters, settings, options.profile)
        return make_ordering(options.filters, settings, order)

    def _pipeline_ordering(
        self, leaves: int, options: QueryOptions, order: Order | None
    ) -> Ordering:
        """Pipelines adapt as filters do, unless all is to stay as it is written."""
        name = "fixed" if options.filters == "fixed" else "auto"
        injected = None if self.join_costs is None else (self.join_costs.probe,) * leaves
        settings = Settings(leaves, injected=injected)
        if injected is None:
            settings = replace(settings, alike=LOOKUPS_ALIKE, gain=PIPELINE_GAIN)
        settings = usual_settings(name, settings, options.profile)
        return make_ordering(name, settings, None if name == "fixed" else order)

    # -- hooks of the executor ---------------------------------------------------------------

    def tactics(
        self, name: str, epoch: int, part: int, parts: int
    ) -> tuple[tuple[Subject, AnyTactic], ...]:
        """What one task is to look at, seeded so that a retry samples the same rows."""
        watched = self.queries.get(name)
        if watched is None:
            return ()
        seed = zlib.crc32(f"{name}/{epoch}/{part}".encode())
        orders = [(w.what, w.tactic(seed + i)) for i, w in enumerate(watched.orders)]
        return (*orders, *((JoinOf(w.relation), w.tactic(part, parts)) for w in watched.caches))

    def learn(
        self, name: str, plan: QueryPlan, epoch: int, seen: Sequence[tuple[int, Seen]]
    ) -> QueryPlan:
        """Take in what the tasks of an epoch have seen; the plan for the next one."""
        watched = self.queries.get(name)
        if watched is None:
            return plan
        before = [w.plan for w in watched.orders]
        for number, watch in enumerate(watched.orders):
            mine = [o for n, o in seen if n == number and isinstance(o, Observation)]
            for observation in mine:
                watch.absorb(observation, epoch)
            if mine:
                self._record(name, watch, mine)
                watch.memory.end_epoch()
            if watch.plan != before[number]:
                plan = watch.applied(plan)
        for number, caches in enumerate(watched.caches, len(watched.orders)):
            found = [o for n, o in seen if n == number and isinstance(o, JoinSeen)]
            plan = _with_caches(caches, plan, found, epoch)
        return plan

    def _record(self, name: str, watch: OrderWatch, seen: Sequence[Observation]) -> None:
        """Selectivities as execution shows them: each at its place in the order."""
        asked = np.sum([o.evaluated for o in seen], axis=0)
        left = np.zeros(len(watch.texts), np.int64)
        for one in seen:
            for position, number in enumerate(one.order):
                left[number] += one.survivors[position] if one.evaluated[number] else 0
        for i in range(len(watch.texts)):
            self.profiler.record((name, watch.name_of(i), SELECTIVITY), int(left[i]), int(asked[i]))

    # -- what others ask ---------------------------------------------------------------------

    def orders(self, name: str) -> list[list[int]]:
        """The orders in force, to be kept with the query."""
        watched = self.queries.get(name)
        return [] if watched is None else [list(w.plan) for w in watched.orders]

    def log(self, name: str) -> PlanLog:
        found = self.queries.get(name)
        return PlanLog() if found is None else found.log

    def costs_of(self, name: str) -> dict[str, float]:
        """What the predicates of a query's conjunctions cost per row, by their text."""
        watched = self.queries.get(name, Watched())
        return {
            text: float(cost)
            for w in watched.filters
            for text, cost in zip(w.texts, w.ordering.costs.per_row, strict=True)
        }

    def report(self, name: str) -> dict[str, Any]:
        """Counters and estimates of a query's adaptation, for `Query.stats()`."""
        watched = self.queries.get(name)
        if watched is None:
            return {}
        return {
            "switches": watched.log.count,
            "filters": [self._order_report(name, w) for w in watched.filters],
            "pipelines": [
                {"source": w.subject, **self._order_report(name, w)} for w in watched.pipelines
            ],
            "caches": [
                {
                    "cache": c.name,
                    "state": c.state.value,
                    "saves": c.saves,
                    "upkeep": c.upkeep,
                    "bytes": c.bytes,
                }
                for w in watched.caches
                for c in w.described()
            ],
        }

    def _order_report(self, name: str, watch: OrderWatch) -> dict[str, Any]:
        ordering, hindsight = watch.ordering, watch.hindsight()
        spent = ordering.overhead
        return {
            "ordering": ordering.name,
            "seconds": watch.seconds,
            "order": [watch.texts[i] for i in watch.plan],
            "profile_rate": ordering.rate,
            "costs": dict(zip(watch.texts, ordering.costs.per_row.tolist(), strict=True)),
            "selectivities": {
                t: self.profiler.estimate((name, watch.name_of(i), SELECTIVITY))
                for i, t in enumerate(watch.texts)
            },
            "overhead": {
                "profile": spent.profile,
                "window": spent.window,
                "matrix": spent.matrix,
                "repair": spent.repair,
                "extra_evaluations": spent.extra,
            },
            "return_on_adapting": None if hindsight is None else hindsight.gain,
            "best_static_order": (
                None if hindsight is None else [watch.texts[i] for i in hindsight.order]
            ),
        }


def _with_caches(
    caches: CacheWatch, plan: QueryPlan, seen: Sequence[JoinSeen], epoch: int
) -> QueryPlan:
    caches.saw(seen)
    if caches.is_of_other_orders(plan):
        caches.reordered(plan)
        return caches.applied(plan)
    return caches.applied(plan) if caches.absorb(seen, epoch) else plan


def _usable(order: Order | None, count: int) -> Order | None:
    """An order that was kept, unless it is of another text."""
    return None if order is None or sorted(order) != list(range(count)) else order
