"""The n-way join: one pipeline per stream, no intermediate results kept.

A row that appears (or vanishes) probes the other windows in pipeline order; what remains at the
end are results that appear (or vanish) with it. Each result belongs to exactly one such row, so
it is made once however the log is cut into epochs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.exec.context import TaskContext
from thalweg.exec.filters import judge, reject
from thalweg.exec.frame import Changes, Frame, Ints, concat_changes
from thalweg.exec.leaf import InstantSet, LeafReader, Needles
from thalweg.exec.vector import Mask, nulls
from thalweg.plan.expr import columns_of
from thalweg.plan.logical import OuterKind, Schema
from thalweg.plan.physical import Block, Leaf, Pipeline, Probe
from thalweg.store import native
from thalweg.store.hashing import hash_columns

_SORT_NEEDLES = 20_000


class Joined:
    """The joined relation's changes in this epoch."""

    def __init__(self, ctx: TaskContext, block: Block, leaves: Sequence[LeafReader]) -> None:
        self.ctx = ctx
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
        for i, probe in enumerate(pipeline.probes):
            if not len(changes):
                break
            later = _used_by(pipeline.probes[i + 1 :]) | self._used_above
            step = self._probe if probe.outer is None else self._look_up
            changes = step(pipeline.leaf, probe, changes, departing, later)
        return changes

    def _probe(
        self, source: int, probe: Probe, changes: Changes, departing: bool, later: frozenset[str]
    ) -> Changes:
        changes = _without_null_keys(changes, probe)
        keys = [changes.frame.columns[c].to_arrow() for c in probe.source]
        hashes = hash_columns(keys, len(changes))
        order = _helpful_order(hashes, changes.ts)
        if order is not None:
            hashes, changes = hashes[order], changes.take(order)
        leaf = self.leaves[probe.leaf]
        needles = Needles(hashes, changes.ts, departing, source)
        predicates = probe.residual
        if not probe.exact or leaf.has_null_keys(probe.target):
            predicates = probe.verify + predicates
        wanted = later | frozenset(c for p in predicates for c in columns_of(p.expr))
        found = leaf.probe(needles, probe.target, changes.ends is not None, wanted)
        changes.frame = changes.frame.select([n for n in changes.frame.columns if n in wanted])
        merged = changes.take(found.needle)
        merged.frame = Frame({**merged.frame.columns, **found.frame.columns}, len(found.needle))
        if merged.ends is not None and found.ends is not None:
            merged.ends = np.minimum(merged.ends, found.ends)
        elif not _is_always_there(self.block.leaves[probe.leaf]):
            merged.ends = None
        if predicates and len(merged):
            judged = judge(predicates, merged.frame.columns, len(merged), self.ctx)
            merged = merged.take(judged.passing)
        return merged

    def _look_up(
        self, source: int, probe: Probe, changes: Changes, departing: bool, later: frozenset[str]
    ) -> Changes:
        """An outer probe: every row knows at once whether it has partners."""
        keyed = np.flatnonzero(_has_keys(changes, probe))
        rows = changes.take(keyed)
        hashes = hash_columns([rows.frame.columns[c].to_arrow() for c in probe.source], len(rows))
        predicates = probe.verify + probe.residual
        wanted = later | frozenset(c for p in predicates for c in columns_of(p.expr))
        needles = Needles(hashes, rows.ts, departing, source)
        found = self.leaves[probe.leaf].probe(needles, probe.target, False, wanted)
        pairs = rows.take(found.needle)
        pairs.frame = pairs.frame.merged(found.frame.columns)
        judged = judge(predicates, pairs.frame.columns, len(pairs), self.ctx)
        if len(judged.erring) and not departing:
            reject(judged, pairs.frame, pairs.ts, self.ctx)
        met = np.zeros(len(changes), np.bool_)
        met[keyed[found.needle[judged.passing]]] = True
        if probe.outer is OuterKind.SEMI:
            return changes.take(np.flatnonzero(met))
        alone = changes.take(np.flatnonzero(~met))
        if probe.outer is OuterKind.ANTI:
            return alone
        beside = self.block.leaves[probe.leaf].fields
        alone.frame = alone.frame.merged({f.name: nulls(f.type, len(alone)) for f in beside})
        parts = [pairs.take(judged.passing), alone]
        for part in parts:
            part.ends = None
        return concat_changes(parts, self.schema)

    def _judged(self, changes: Changes, *, note_rejects: bool) -> Changes:
        """Predicates that may raise, asked of whole results only."""
        if not self.block.top or not len(changes):
            return changes
        judged = judge(self.block.top, changes.frame.columns, len(changes), self.ctx)
        if note_rejects and len(judged.erring):
            reject(judged, changes.frame, changes.ts, self.ctx)
        return changes.take(judged.passing)


def _is_always_there(leaf: Leaf) -> bool:
    return leaf.is_table and not leaf.changes


def _used_above(block: Block) -> frozenset[str]:
    """Columns that somebody looks at after the join."""
    exprs = [p.expr for p in block.top]
    if block.grouping is not None:
        exprs += [k.expr for k in block.grouping.keys]
        exprs += [a.call for a in block.grouping.aggregates]
    else:
        exprs += [c.expr for c in block.columns]
    return frozenset(c for e in exprs for c in columns_of(e))


def _used_by(probes: Sequence[Probe]) -> frozenset[str]:
    """Columns that later steps of a pipeline need from the rows found so far."""
    found = {c for p in probes for c in p.source}
    for probe in probes:
        for predicate in (*probe.residual, *probe.verify):
            found |= columns_of(predicate.expr)
    return frozenset(found)


def _without_null_keys(changes: Changes, probe: Probe) -> Changes:
    """NULL joins nothing."""
    keep = _has_keys(changes, probe)
    return changes if keep.all() else changes.take(np.flatnonzero(keep))


def _has_keys(changes: Changes, probe: Probe) -> Mask:
    """The rows without NULL among their keys."""
    keep = np.ones(len(changes), np.bool_)
    for column in probe.source:
        valid = changes.frame.columns[column].valid
        if valid is not None:
            keep &= valid
    return keep


def _helpful_order(hashes: np.ndarray, ts: Ints) -> Ints | None:
    """Sorted needles turn random look-ups into a merge; runs that are sorted already are left."""
    if len(hashes) < _SORT_NEEDLES:
        return None
    falls = int(np.count_nonzero(hashes[1:] < hashes[:-1]))
    if falls < len(hashes) // 1000 + 16:
        return None
    return native.key_time_order(hashes, ts)  # type: ignore[no-any-return]
