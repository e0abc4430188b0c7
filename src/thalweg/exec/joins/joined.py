"""The n-way join: one pipeline per input that changes.

A row that appears (or vanishes) probes the other windows in pipeline order; what remains at the
end are results that appear (or vanish) with it. Each result belongs to exactly one such row, so
it is made once however the log is cut into epochs.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.exec.context import TaskContext
from thalweg.exec.filters import judge, reject
from thalweg.exec.frame import Changes, concat_changes
from thalweg.exec.joins.outer import look_up
from thalweg.exec.joins.twophases import TwoPhases
from thalweg.exec.joins.watched import watched
from thalweg.exec.leaf import InstantSet, LeafReader
from thalweg.plan.expr import columns_of
from thalweg.plan.logical import Schema
from thalweg.plan.physical import Block, Pipeline
from thalweg.plan.pipelines import PipelineOf


class Joined:
    """The joined relation's changes in this epoch."""

    def __init__(
        self, ctx: TaskContext, number: int, block: Block, leaves: Sequence[LeafReader]
    ) -> None:
        self.ctx = ctx
        self.number = number
        self.block = block
        self.leaves = leaves
        self._used_above = _used_above(block)
        self.schema: Schema = tuple(
            f for leaf in block.leaves for f in leaf.fields if f.name in self._used_above
        )

    def arrivals(self, want_ends: bool = False) -> Changes:
        """Results that appear, with the ends of their lifetimes where wanted and known."""
        parts = []
        for pipeline in self.block.pipelines:
            source = self.leaves[pipeline.leaf].arrivals()
            parts.append(self._run(pipeline, source, departing=False, want_ends=want_ends))
        return self._judged(concat_changes(parts, self.schema), note_rejects=True)

    def departures(self, only_at: InstantSet | None = None) -> Changes:
        """Results that vanish; with `only_at` at least those that vanish at such instants."""
        parts = []
        for pipeline in self.block.pipelines:
            source = self.leaves[pipeline.leaf].departures(only_at)
            parts.append(self._run(pipeline, source, departing=True, want_ends=False))
        return self._judged(concat_changes(parts, self.schema), note_rejects=False)

    def _run(
        self, pipeline: Pipeline, changes: Changes, *, departing: bool, want_ends: bool
    ) -> Changes:
        if not want_ends:
            changes.ends = None
        if not len(changes) or not pipeline.probes:
            return changes
        if self.block.outer is not None:
            return look_up(
                self.ctx, self.block, self.leaves, pipeline, changes, departing, self.schema
            )
        wanted = self._used_above | _used_by(pipeline)
        run = TwoPhases(self.ctx, self.block, self.leaves, pipeline, wanted, changes, departing)
        tactic = self.ctx.tactics.get(PipelineOf(self.number, pipeline.leaf))
        if tactic is not None and not departing:
            seen = watched(run, tactic)
            self.ctx.observations.setdefault(PipelineOf(self.number, pipeline.leaf), []).append(
                seen
            )
        elif pipeline.branches:  # on a single path enumerating is asking
            run.drop_all()
        return run.results(self._used_above)

    def _judged(self, changes: Changes, *, note_rejects: bool) -> Changes:
        """Predicates that may raise, asked of whole results only."""
        if not self.block.top or not len(changes):
            return changes
        judged = judge(self.block.top, changes.frame.columns, len(changes), self.ctx)
        if note_rejects and len(judged.erring):
            reject(judged, changes.frame, changes.ts, self.ctx)
        return changes.take(judged.passing)


def _used_above(block: Block) -> frozenset[str]:
    """Columns that somebody looks at after the join."""
    exprs = [p.expr for p in block.top]
    if block.grouping is not None:
        exprs += [k.expr for k in block.grouping.keys]
        exprs += [a.call for a in block.grouping.aggregates]
    else:
        exprs += [c.expr for c in block.columns]
    return frozenset(c for e in exprs for c in columns_of(e))


def _used_by(pipeline: Pipeline) -> frozenset[str]:
    """Columns that the steps of a pipeline look at."""
    found = {c for p in pipeline.probes for c in p.source}
    for probe in pipeline.probes:
        for predicate in (*probe.residual, *probe.verify):
            found |= columns_of(predicate.expr)
    return frozenset(found)
