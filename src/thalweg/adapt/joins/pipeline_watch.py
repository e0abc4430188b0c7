"""The order in which a pipeline probes the other leaves.

Each leaf is a *logical filter*: it drops a row of the source that has no partner in it along the
path that leads there. Filters are ordered like any conjunction; the plan then puts missing
predecessors before each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.random import default_rng

from thalweg.adapt.constants import LOOKUPS_ALIKE, PIPELINE_GAIN
from thalweg.adapt.filters.catalog import make_ordering, usual_settings
from thalweg.adapt.filters.ordering import Ordering, Settings, bernoulli
from thalweg.adapt.filters.watch import OrderWatch
from thalweg.adapt.watch import Known, WatchKind, WatchProfiler
from thalweg.exec.tactics import PipelineTactic
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.joins.join_order import PipelineOf, orderable_pipelines, pipeline_of, repiped
from thalweg.plan.physical import QueryPlan


class PipelineWatch(OrderWatch):
    """The order of one pipeline."""

    work = "the look-up time of joins"

    def __init__(self, plan: QueryPlan, which: PipelineOf, ordering: Ordering) -> None:
        block = plan.block(which.relation)
        self.which = which
        self.leaves = sorted(p.leaf for p in pipeline_of(plan, which).probes)
        texts = tuple(block.leaves[i].alias for i in self.leaves)
        source = f"Δ{block.leaves[which.leaf].alias}"
        super().__init__(which, source, f"pipeline of {source}", texts, ordering)
        if ordering.settings.injected is None:
            self.least_gain = PIPELINE_GAIN
        begun = [self.leaves.index(p.leaf) for p in pipeline_of(plan, which).probes]
        self.resume(begun)  # in the order of the plan, which sizes of what is kept may have advised

    def tactic(self, seed: int, part: int, parts: int) -> PipelineTactic:
        rows = self.ordering.slice_rows()
        return PipelineTactic(bernoulli(rows, self.ordering.rate, default_rng(seed)), rows)

    def applied(self, plan: QueryPlan) -> QueryPlan:
        return repiped(plan, self.which, [self.leaves[n] for n in self.choice])

    def name_of(self, number: int) -> str:
        return f"{self.subject} ⋈ {self.texts[number]}"

    def report(self, profiler: WatchProfiler) -> list[dict[str, Any]]:
        return [{"source": self.subject, **one} for one in super().report(profiler)]


def _find(plan: QueryPlan, options: QueryOptions, known: Known) -> list[PipelineWatch]:
    if options.joins == "xjoin":
        return []
    return [
        PipelineWatch(plan, which, _ordering(len(pipeline_of(plan, which).probes), options, known))
        for which in orderable_pipelines(plan)
    ]


def _ordering(leaves: int, options: QueryOptions, known: Known) -> Ordering:
    """The ordering of a pipeline: as for filters, unless all is to stay as it is written."""
    name = "fixed" if options.filters == "fixed" else "auto"
    settings = Settings(leaves, injected=known.lookups(leaves))
    if settings.injected is None:
        settings = replace(settings, alike=LOOKUPS_ALIKE)
    return make_ordering(name, usual_settings(name, settings, options.profile))


PIPELINES = WatchKind("pipelines", _find)
