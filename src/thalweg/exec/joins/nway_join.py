"""The n-way join: one pipeline per input that changes.

A row that appears (or vanishes) probes the other windows in pipeline order; the remaining tuples
are results that appear (or vanish) with it. Each result belongs to exactly one such row, so it is
made once however the log is cut into epochs. The changes of a subresult are tapped from the
pipelines of its members.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from thalweg.columns.frame import Changes, concat_changes
from thalweg.columns.instant_set import InstantSet
from thalweg.exec.context import TaskContext
from thalweg.exec.joins.cache.cache_files import Keeper, Referable
from thalweg.exec.joins.cache.cache_reader import SubresultReader, key_hashes, tracks_of
from thalweg.exec.joins.join_profile import profile
from thalweg.exec.joins.lookup import Unit
from thalweg.exec.joins.observe_order import sampled, watched
from thalweg.exec.joins.outer_join import look_up
from thalweg.exec.joins.pipeline_run import TwoPhases
from thalweg.exec.joins.stages import Flow, stages
from thalweg.exec.leaves.ordered_window import KeptLeaf
from thalweg.exec.leaves.protocol import AFTER_ALL, LeafReader
from thalweg.exec.leaves.row_combinations import Combinations, combinations
from thalweg.exec.leaves.time_window import TimeLeaf
from thalweg.exec.predicates.conjunction import judge, reject
from thalweg.exec.tactics import JoinOf, JoinSeen, JoinTactic, PipelineTactic
from thalweg.plan.expr import columns_of
from thalweg.plan.joins.join_order import PipelineOf
from thalweg.plan.logical import Schema
from thalweg.plan.pipeline import Pipeline, Probe, Subresult
from thalweg.plan.relations.block import Block


class Joined:
    """The joined relation's changes in this epoch."""

    def __init__(
        self,
        ctx: TaskContext,
        number: int,
        block: Block,
        leaves: Sequence[LeafReader],
        keeper: Keeper,
    ) -> None:
        self.ctx = ctx
        self.number = number
        self.block = block
        self.leaves = leaves
        self._used_above = _used_above(block)
        self.schema: Schema = tuple(
            f for leaf in block.leaves for f in leaf.fields if f.name in self._used_above
        )
        self._flows: dict[int, Flow] = {}
        self._sources: dict[int, Changes] = {}
        tactic = ctx.tactics.get(JoinOf(number))
        self._tactic = tactic if isinstance(tactic, JoinTactic) else None
        self._seen = JoinSeen()
        self._begun = perf_counter()
        self._want_ends = False
        self._readers: list[SubresultReader] = []
        self.pipelines = block.pipelines
        self._keeper = keeper
        keeper.keep_only(block.subresults)
        if block.subresults and keeper.usable:
            self._readers = [self._reader(s, keeper) for s in block.subresults]
        elif block.subresults:
            self.pipelines = block.plain
        self.units: list[Unit] = [*leaves, *self._readers]

    def arrivals(self, want_ends: bool = False) -> Changes:
        """Results that appear, with the ends of their lifetimes where wanted and known."""
        self._want_ends = want_ends
        parts = [self._advanced(p.leaf).changes for p in self.pipelines]
        return self._judged(concat_changes(parts, self.schema), note_rejects=True)

    def departures(self, only_at: InstantSet | None = None) -> Changes:
        """Results that vanish; with `only_at` at least those that vanish at such instants."""
        parts = []
        for pipeline in self.pipelines:
            source = self.leaves[pipeline.leaf].departures(only_at)
            source.ends = None
            self._seen.left[pipeline.leaf] = len(source)
            parts.append(self._run(pipeline, pipeline.probes, source, (), departing=True))
        return self._judged(concat_changes(parts, self.schema), note_rejects=False)

    def settle(self) -> None:
        """End the epoch: store what subresults have learned."""
        for n, reader in enumerate(self._readers):
            self._seen.caches[n] = reader.settle()
        if self._readers:
            self._keeper.share({i: leaf for r in self._readers for i, leaf in r.leaves.items()})
        if self._tactic is not None:
            self._seen.seconds = perf_counter() - self._begun
            self.ctx.observations.setdefault(JoinOf(self.number), []).append(self._seen)

    # -- pipelines ---------------------------------------------------------------------------

    def _advanced(self, leaf: int, past: int | None = None) -> Flow:
        """The arrivals of a leaf after part of its pipeline: up to the stage that changes the
        subresult `past`, or all of it."""
        flow = self._flows.get(leaf)
        if flow is None:
            pipeline = next(p for p in self.pipelines if p.leaf == leaf)
            source = self._source(leaf)
            self._profile(leaf, source)
            flow = Flow(pipeline, stages(self.block, pipeline, bool(self._readers)), source)
            self._flows[leaf] = flow
        while flow.ahead and (past is None or past not in flow.tapped):
            stage = flow.ahead[0]
            at_hand = flow.at_hand(self.block)
            flow.changes = self._run(
                flow.pipeline, stage.probes, flow.changes, at_hand, last=len(flow.ahead) == 1
            )
            flow.finish(stage)
        return flow

    def _source(self, leaf: int) -> Changes:
        """The arrivals of a leaf, read once."""
        if leaf not in self._sources:
            self._sources[leaf] = self.leaves[leaf].arrivals()
            if not self._want_ends:
                self._sources[leaf].ends = None
        return self._sources[leaf]

    def _profile(self, leaf: int, changes: Changes) -> None:
        """Profile the pipeline without subresults, where there are or may be any."""
        order = self._order_tactic(leaf) if self._readers else None
        if (self._tactic is None and order is None) or not len(changes):
            return
        plain = next(p for p in self.block.plain or self.block.pipelines if p.leaf == leaf)
        wanted = _used_by(plain)
        if self._tactic is not None:
            wanted |= {c for _, _, columns in self._tactic.keys for c in columns}
            wanted = wanted.union(*map(_used_by, self._tactic.upkeep))
        run = TwoPhases(self.ctx, self.block, self.leaves, plain, wanted, changes, False)
        if self._tactic is not None:
            begun = perf_counter()
            profile(run, self._tactic, self._seen)
            self._seen.profiling += perf_counter() - begun
        seen = None if order is None else sampled(run, order)
        if seen is not None:
            self.ctx.observations.setdefault(PipelineOf(self.number, leaf), []).append(seen)

    def _order_tactic(self, leaf: int) -> PipelineTactic | None:
        tactic = self.ctx.tactics.get(PipelineOf(self.number, leaf))
        return tactic if isinstance(tactic, PipelineTactic) else None

    def _run(
        self,
        pipeline: Pipeline,
        probes: tuple[Probe, ...],
        changes: Changes,
        at_hand: Sequence[int],
        *,
        departing: bool = False,
        last: bool = True,
    ) -> Changes:
        if not len(changes) or not probes:
            return changes
        if self.block.outer is not None:
            return look_up(
                self.ctx, self.block, self.leaves, pipeline, changes, departing, self.schema
            )
        wanted = self._wanted(pipeline)
        part = Pipeline(pipeline.leaf, probes)
        run = TwoPhases(self.ctx, self.block, self.units, part, wanted, changes, departing, at_hand)
        tactic = None if departing or self._readers else self._order_tactic(pipeline.leaf)
        if tactic is not None:
            which = PipelineOf(self.number, pipeline.leaf)
            self.ctx.observations.setdefault(which, []).append(watched(run, tactic))
        elif part.branches:  # on a single path enumerating is asking
            run.drop_all()
        return run.results(self._used_above if last else wanted)

    def _wanted(self, pipeline: Pipeline) -> frozenset[str]:
        """Columns that are read within a pipeline or after it."""
        found = self._used_above | _used_by(pipeline)
        for reader in self._readers:
            if pipeline.leaf in reader.subresult.members:
                found |= tracks_of(self.block, reader.subresult) | set(reader.subresult.key)
        return found

    def _judged(self, changes: Changes, *, note_rejects: bool) -> Changes:
        """Results filtered by predicates that may raise, which are evaluated on whole results
        only."""
        if not self.block.top or not len(changes):
            return changes
        judged = judge(self.block.top, changes.frame.columns, len(changes), self.ctx)
        if note_rejects and len(judged.erring):
            reject(judged, changes.frame, changes.ts, self.ctx)
        return changes.take(judged.passing)

    # -- subresults --------------------------------------------------------------------------

    def _reader(self, subresult: Subresult, keeper: Keeper) -> SubresultReader:
        members: dict[int, Referable] = {}
        for i in subresult.members:
            leaf = self.leaves[i]
            assert isinstance(leaf, (TimeLeaf, KeptLeaf))
            members[i] = leaf
        kept, is_new = keeper.opened(subresult, members)

        def fill(keys: Changes, names: frozenset[str]) -> Changes:
            return self._filled(subresult.fill, keys, names)

        def fresh() -> Combinations:
            return self._appeared(subresult)

        reader = SubresultReader(self.ctx, self.block, subresult, members, kept, fill, fresh)
        if subresult.whole and is_new:
            kept.parts.append(self._all(subresult, members))
        return reader

    def _filled(self, pipeline: Pipeline, rows: Changes, names: frozenset[str]) -> Changes:
        """A join of some leaves as of the instants of the rows it begins with."""
        wanted = names | _used_by(pipeline)
        run = TwoPhases(
            self.ctx, self.block, self.leaves, pipeline, wanted, rows, False, source=AFTER_ALL
        )
        if pipeline.branches:
            run.drop_all()
        return run.results(names)

    def _all(self, subresult: Subresult, members: dict[int, Referable]) -> Combinations:
        """The whole content of a subresult as of the beginning of the epoch."""
        names = tracks_of(self.block, subresult) | frozenset(subresult.key)
        first = members[subresult.fill.leaf]
        rows = self._filled(subresult.fill, first.standing(self.ctx.since - 1), names)
        if not len(rows):
            return Combinations.empty(subresult.members)
        return combinations(
            self.block, subresult.members, rows.frame, *key_hashes(rows.frame, subresult.key)
        )

    def _appeared(self, subresult: Subresult) -> Combinations:
        """The combinations that appear in this epoch, from the pipelines of the members."""
        number = self.block.subresults.index(subresult)
        apart = {p.leaf: p for p in subresult.upkeep}
        found = []
        for pipeline in self.pipelines:
            if pipeline.leaf not in subresult.members:
                continue
            if pipeline.leaf in apart:
                rows = self._apart(apart[pipeline.leaf], subresult)
            else:
                rows = self._advanced(pipeline.leaf, number).tapped[number]
            if len(rows):
                hashes = key_hashes(rows.frame, subresult.key)
                begun = (rows.ts, pipeline.leaf)
                members = subresult.members
                found.append(combinations(self.block, members, rows.frame, *hashes, begun))
        return Combinations.joined(found, subresult.members)

    def _apart(self, pipeline: Pipeline, subresult: Subresult) -> Changes:
        """Changes caused by the arrivals of one member, where its own pipeline does not show
        them."""
        names = tracks_of(self.block, subresult) | frozenset(subresult.key)
        rows = self._source(pipeline.leaf)
        wanted = names | _used_by(pipeline)
        run = TwoPhases(self.ctx, self.block, self.leaves, pipeline, wanted, rows, False)
        if pipeline.branches:
            run.drop_all()
        return run.results(names)


def _used_above(block: Block) -> frozenset[str]:
    """Columns that are read after the join."""
    exprs = [p.expr for p in block.top]
    if block.grouping is not None:
        exprs += [k.expr for k in block.grouping.keys]
        exprs += [a.call for a in block.grouping.aggregates]
    else:
        exprs += [c.expr for c in block.columns]
    return frozenset(c for e in exprs for c in columns_of(e))


def _used_by(pipeline: Pipeline) -> frozenset[str]:
    """Columns that the steps of a pipeline read."""
    found = {c for p in pipeline.probes for c in p.source}
    for probe in pipeline.probes:
        for predicate in (*probe.residual, *probe.verify):
            found |= columns_of(predicate.expr)
    return frozenset(found)
