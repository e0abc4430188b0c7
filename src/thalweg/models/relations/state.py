"""What relations over segments keep: changes that time will bring, and rows as they stand.

A root or a horizon decides a change epochs ahead. It is written down when its cause appears, as a
weighted change of a later instant, and is taken back, by the opposite change, should the cause
vanish before. So what lives is not solved again, and no change is looked up to be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, arrow_columns, concat_changes, concat_frames
from thalweg.columns.sort_codes import numbered_rows
from thalweg.columns.vector import from_arrow
from thalweg.exec.leaves.subrelation import WEIGHT, summed
from thalweg.exec.relations.protocol import RelationStep
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.plan.logical import Schema
from thalweg.plan.state_slots import SlotKind, SlotRule
from thalweg.store import native
from thalweg.store.hashing import Hashes, hash_columns
from thalweg.store.packs import TIME, Key

DUE = SlotKind("due", SlotRule.DUE, "changes that time will bring")
SEGMENTS = SlotKind("segments", SlotRule.KEPT, "segments as they began and ended")
ALIVE = SlotKind("alive", SlotRule.SUMMED, "rows as they stand")


def scheduled(
    step: RelationStep, schema: Schema, changes: Changes, slot: SlotKind = DUE
) -> Changes:
    """The changes that are due in this epoch, of these and of those written down before; later ones
    are written down."""
    until = step.ctx.until
    later = changes.ts >= until
    now = changes if not later.any() else changes.take(np.flatnonzero(~later))
    due = [_due(step, schema, table) for table in step.tables(slot)]
    if step.keeps_state and later.any():
        table = _table(changes.take(np.flatnonzero(later)), schema)
        table = summed(table, [f.name for f in schema] + [TIME])
        if table.num_rows:
            table = table.take(pa.array(native.time_order(table.column(TIME).to_numpy())))
            step.keep(slot, table)
            step.wake(int(table.column(TIME)[0].as_py()))
    return concat_changes([now, *due], schema)


def _due(step: RelationStep, schema: Schema, table: pa.Table) -> Changes:
    """What is due of one pack, which is in the order of time."""
    ts = table.column(TIME).to_numpy()
    low, high = np.searchsorted(ts, [step.ctx.since, step.ctx.until])
    if high < len(ts):
        step.wake(int(ts[high]))
    rows = table.slice(low, high - low)
    frame = Frame({f.name: from_arrow(rows.column(f.name), f.type) for f in schema}, rows.num_rows)
    own = step.own_rows(frame)
    weights = rows.column(WEIGHT).to_numpy()
    repeats = np.abs(weights) if own is None else np.where(own, np.abs(weights), 0)
    chosen = np.repeat(np.arange(rows.num_rows), repeats)
    signs = np.sign(weights).astype(np.int8)
    return Changes(frame, ts[low:high], signs).take(chosen)


def _table(changes: Changes, schema: Schema) -> pa.Table:
    columns = arrow_columns(changes.frame, schema)
    columns[WEIGHT] = pa.array(changes.signs.astype(np.int64))
    columns[TIME] = pa.array(changes.ts)
    return pa.table(columns)


def keep_alive(
    step: RelationStep,
    schema: Schema,
    changes: Changes,
    keys: tuple[Key, ...],
    slot: SlotKind = ALIVE,
) -> None:
    """Add what has changed to the rows as they stand."""
    if step.keeps_state and len(changes):
        table = summed(_table(changes, schema), [f.name for f in schema])
        step.keep(slot, table, keys)


def keep_segments(step: RelationStep, schema: Schema, changes: Changes) -> None:
    """Write down how segments begin and end, for those who ask for them."""
    if step.keeps_state and len(changes):
        step.keep(SEGMENTS, _table(changes, schema))


@dataclass(frozen=True, slots=True)
class Standing:
    """Rows as they stood before the epoch, with how often each is there."""

    frame: Frame
    weights: Ints

    def expanded(self) -> Frame:
        return self.frame.take(np.repeat(np.arange(self.frame.length), self.weights))


def all_alive(step: RelationStep, schema: Schema, slot: SlotKind = ALIVE) -> Standing:
    """All rows of this task."""
    frames, weights = [], []
    for table in step.tables(slot):
        columns = {f.name: from_arrow(table.column(f.name), f.type) for f in schema}
        frame = Frame(columns, table.num_rows)
        own = step.own_rows(frame)
        rows = np.arange(table.num_rows) if own is None else np.flatnonzero(own)
        frames.append(frame.take(rows))
        weights.append(table.column(WEIGHT).to_numpy()[rows])
    return _standing(frames, weights, schema)


def alive_by_key(
    step: RelationStep, schema: Schema, key: Key, wanted: Frame, slot: SlotKind = ALIVE
) -> Standing:
    """Rows that have one of the wanted keys, whose columns are in `wanted`."""
    arrays = [wanted.columns[c].to_arrow() for c in key]
    hashes = np.unique(hash_columns(arrays, wanted.length))
    frames, weights = [], []
    for state in step.stored(slot):
        pack = step.ctx.cache.open(state.meta.name)
        index = pack.index(key)
        found = _matching(hashes, index.hashes, index.ts)
        rows = found if index.rows is None else index.rows[found]
        if len(rows):
            vectors = {f.name: step.ctx.vector(pack, f.name, f.type) for f in schema}
            frames.append(Frame({n: v.take(rows) for n, v in vectors.items()}, len(rows)))
            weights.append(pack.column(WEIGHT).to_numpy()[rows])
    return _standing(frames, weights, schema)


def _matching(wanted: Hashes, hashes: Hashes, ts: Ints) -> Ints:
    low = np.full(len(wanted), BEFORE_TIME, np.int64)
    high = np.full(len(wanted), AFTER_TIME, np.int64)
    _, found = native.match_pairs(wanted, low, high, hashes, ts)
    return found  # type: ignore[no-any-return]


def _standing(frames: Sequence[Frame], weights: Sequence[Ints], schema: Schema) -> Standing:
    frame = concat_frames(frames, schema)
    weight = np.concatenate(weights) if len(weights) else np.empty(0, np.int64)
    if (weight == 1).all():
        return Standing(frame, weight)
    group, first = numbered_rows(list(frame.columns.values()), frame.length)
    total = np.zeros(len(first), np.int64)
    np.add.at(total, group, weight)
    there = np.flatnonzero(total)
    return Standing(frame.take(first[there]), total[there])
