"""Profiles of pipelines from samples, per row of their source."""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.adapt.constants import SAMPLE_OBSERVATIONS
from thalweg.adapt.joins.costs import Operator
from thalweg.adapt.joins.estimators import Recent
from thalweg.adapt.operation_costs import JoinCosts
from thalweg.exec.tactics import Effort, Sample


@dataclass(slots=True)
class PipelineProfile:
    """The last observations of a pipeline without caches. `rows` arrive in an epoch, `left`
    vanish."""

    rows: Recent
    left: Recent
    handled: list[Recent]
    looked_up: list[Recent]
    made: list[Recent]

    @staticmethod
    def of(operators: int) -> PipelineProfile:
        handled, looked_up, made = (
            [Recent() for _ in range(operators + more)] for more in (1, 0, 0)
        )
        return PipelineProfile(Recent(), Recent(), handled, looked_up, made)

    def add(self, sample: Sample) -> None:
        counts = [*sample.handled, *sample.effort.looked_up, *sample.effort.made]
        for recent, count in zip([*self.handled, *self.looked_up, *self.made], counts, strict=True):
            recent.add(count / sample.effort.rows, SAMPLE_OBSERVATIONS)

    @property
    def passes(self) -> float:
        """How often a row goes through: when it appears, and maybe when it vanishes."""
        return 1.0 + (self.left.mean / self.rows.mean if self.rows.mean else 0.0)

    @property
    def is_known(self) -> bool:
        return bool(self.rows.count and self.handled[0].count)

    @property
    def output(self) -> float:
        """Results an epoch."""
        return self.rows.mean * self.handled[-1].mean

    def operators(self, costs: JoinCosts) -> tuple[Operator, ...]:
        rows, found = self.rows.mean, []
        for n, (looked_up, made) in enumerate(zip(self.looked_up, self.made, strict=True)):
            handled = self.handled[n].mean
            spent = costs.probe * looked_up.mean + costs.made * made.mean
            cost = spent / handled if handled else 0.0
            found.append(Operator(rows * handled, cost, rows * looked_up.mean))
        return tuple(found)


@dataclass(slots=True)
class UpkeepProfile:
    """The last observations of a pipeline that would maintain a cache."""

    looked_up: Recent = field(default_factory=Recent)
    made: Recent = field(default_factory=Recent)
    results: Recent = field(default_factory=Recent)

    def add(self, effort: Effort) -> None:
        for recent, count in (
            (self.looked_up, sum(effort.looked_up)),
            (self.made, sum(effort.made)),
            (self.results, effort.results),
        ):
            recent.add(count / effort.rows, SAMPLE_OBSERVATIONS)

    def spent(self, costs: JoinCosts) -> float:
        """The cost of a row."""
        return costs.probe * self.looked_up.mean + costs.made * self.made.mean
