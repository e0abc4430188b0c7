"""The order in which a pipeline probes the other leaves.

Each leaf is a *logical filter*: it drops a row of the source that has no partner in it along the
path that leads there. Filters are ordered like any conjunction; the plan then puts missing
predecessors before each.
"""

from __future__ import annotations

from numpy.random import default_rng

from thalweg.adapt.filters.ordering import Ordering, bernoulli
from thalweg.adapt.filters.watch import OrderWatch
from thalweg.adapt.planlog import PlanLog
from thalweg.exec.tactics import PipelineTactic
from thalweg.plan.physical import QueryPlan
from thalweg.plan.pipelines import PipelineOf, pipeline_of, repiped


class PipelineWatch(OrderWatch):
    """The order of one pipeline."""

    def __init__(
        self, plan: QueryPlan, which: PipelineOf, ordering: Ordering, log: PlanLog
    ) -> None:
        block = plan.block(which.relation)
        self.which = which
        self.leaves = sorted(p.leaf for p in pipeline_of(plan, which).probes)
        texts = tuple(block.leaves[i].alias for i in self.leaves)
        source = f"Δ{block.leaves[which.leaf].alias}"
        super().__init__(which, source, texts, ordering, log)

    def tactic(self, seed: int) -> PipelineTactic:
        rows = self.ordering.slice_rows()
        return PipelineTactic(bernoulli(rows, self.ordering.rate, default_rng(seed)), rows)

    def applied(self, plan: QueryPlan) -> QueryPlan:
        return repiped(plan, self.which, [self.leaves[n] for n in self.plan])

    def name_of(self, number: int) -> str:
        return f"{self.subject} ⋈ {self.texts[number]}"
