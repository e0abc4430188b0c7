"""Plans that change all the time, to show that no row depends on them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from thalweg.adapt.filters.guards import respected
from thalweg.adapt.filters.ordering import Ordering, Settings
from thalweg.adapt.filters.watch import FilterWatch
from thalweg.adapt.joins.pipeline_watch import PipelineWatch
from thalweg.adapt.joins.tree_watch import TREES
from thalweg.adapt.watch import Known, WatchKind
from thalweg.exec.tactics import Observation
from thalweg.instants import Ints
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.joins.join_caches import Span, all_spans, compatible, with_spans
from thalweg.plan.joins.join_order import orderable_pipelines, pipeline_of
from thalweg.plan.physical import QueryPlan
from thalweg.plan.predicate_order import orderable
from thalweg.plan.relations.block import blocks_of

_LONGEST = 7


class Restless(Ordering):
    """Another order after every few rows, and a profile now and then."""

    name = "restless"
    profiles = True

    def slice_rows(self) -> int:
        return int(self._random.integers(1, _LONGEST))

    def sample(self, rows: int) -> Ints:
        self.rate = float(self._random.choice([0.0, 0.3, 1.0]))
        return super().sample(rows)

    def _learn(self, seen: Observation) -> None:
        shuffled = self._random.permutation(self.settings.predicates).tolist()
        self.current = respected(self.guards, shuffled)


def restless_kinds(seed: int) -> list[WatchKind]:
    """Every conjunction and pipeline of every query is restless, whatever its options say; which
    subresults are kept is drawn by the runner. (Guards only keep costs down: no row may depend on
    them either.)"""

    def ordering(count: int, more: int) -> Ordering:
        return Restless(Settings(count)).fork(seed + more)

    def filters(plan: QueryPlan, options: QueryOptions, known: Known) -> list[FilterWatch]:
        return [FilterWatch(c, ordering(len(c.predicates), 0)) for c in orderable(plan)]

    def pipelines(plan: QueryPlan, options: QueryOptions, known: Known) -> list[PipelineWatch]:
        if options.joins == "xjoin":
            return []
        return [
            PipelineWatch(plan, which, ordering(len(pipeline_of(plan, which).probes), 1))
            for which in orderable_pipelines(plan)
        ]

    return [WatchKind("filters", filters), WatchKind("pipelines", pipelines), TREES]


def with_random_subresults(plan: QueryPlan, rng: Random) -> QueryPlan:
    """The plan with some of the subresults that it may keep: large, tiny, whole or none."""
    for number, relation in blocks_of(plan.relations):
        if rng.random() < 0.3:
            continue
        chosen: list[Span] = []
        found = all_spans(relation)
        for span in rng.sample(found, len(found)):
            span = replace(
                span,
                whole=rng.random() < 0.3,
                buckets=rng.choice((1, 3, 64)),
                limit=rng.choice((0, 300, 1 << 20)),
            )
            if rng.random() < 0.7 and compatible([*chosen, span]):
                chosen.append(span)
        if chosen:
            plan = with_spans(plan, number, chosen)
    return plan
