"""A relation of the plan as an input of another one.

The relation's content before the epoch is in packs of weighted rows, whose sum it is; the epoch's
changes are in memory. A probe makes rows with lifetimes of both, for the keys that are asked for,
and finds those that are alive at the needle's instant: at an instant everything that vanishes does
so first, then everything that appears, leaf by leaf, as in `TimeLeaf`, so that a result is made
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, arrow_columns, concat_frames
from thalweg.columns.instant_set import InstantSet
from thalweg.columns.sort_codes import numbered_rows, row_codes
from thalweg.columns.vector import arrow_vector
from thalweg.exec.context import TaskContext
from thalweg.exec.leaves.lifetimes import Lifetimes, paired
from thalweg.exec.leaves.protocol import Matches, Needles
from thalweg.exec.predicates.conjunction import judge, reject
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.plan.leaf import Leaf
from thalweg.store import native
from thalweg.store.hashing import Hashes, hash_columns
from thalweg.store.packs import TIME, Key, PackMeta

WEIGHT = "__weight"


class DerivedLeaf:
    """The changes of a relation, and, where pipelines probe it, its content. One that precedes all
    others (position -1) is met as it is at a row's instant."""

    def __init__(
        self,
        ctx: TaskContext,
        leaf: Leaf,
        position: int,
        changes: Changes,
        stored: Sequence[PackMeta],
    ) -> None:
        self.ctx = ctx
        self.leaf = leaf
        self.position = position
        self.stored = stored
        self.changes = self._passing(changes)
        self._by_key: dict[Key, tuple[Hashes, Ints, Ints]] = {}

    def _passing(self, changes: Changes) -> Changes:
        """The changes that pass the filters; a hint that raises lets a row pass."""
        frame = changes.frame.select([f.name for f in self.leaf.fields])
        changes = Changes(frame, changes.ts, changes.signs)
        predicates = self.leaf.filters + self.leaf.hints
        if not predicates or not len(changes):
            return changes
        judged = judge(predicates, frame.columns, frame.length, self.ctx)
        kept = judged.passing
        if len(judged.erring) and self.leaf.hints:
            kept = np.sort(np.concatenate([kept, judged.erring]))
        elif len(judged.erring):
            fresh = judged.only(changes.signs[judged.erring] > 0)
            reject(fresh, frame, changes.ts, self.ctx)
        return changes.take(kept)

    def state(self) -> pa.Table | None:
        """What this epoch has changed, to be added to the content."""
        if not len(self.changes):
            return None
        columns = arrow_columns(self.changes.frame, self.leaf.fields)
        columns[WEIGHT] = pa.array(self.changes.signs.astype(np.int64))
        columns[TIME] = pa.array(self.changes.ts)
        table = pa.table(columns)
        if (self.changes.signs < 0).any():
            table = summed(table, [f.name for f in self.leaf.fields])
        return table if table.num_rows else None

    def wakes_at(self) -> int:
        """The first instant at which an input of the relation may change."""
        return AFTER_TIME

    # -- probing by pipelines ----------------------------------------------------------------

    def arrivals(self) -> Changes:
        rows = np.flatnonzero(self.changes.signs > 0)
        self.ctx.counts[f"arrivals:{self.leaf.alias}"] += len(rows)
        return self.changes.take(rows)

    def departures(self, only_at: InstantSet | None = None) -> Changes:
        rows = np.flatnonzero(self.changes.signs < 0)
        if only_at is not None:
            rows = rows[only_at.might_hold(self.changes.ts[rows])]
        self.ctx.counts[f"departures:{self.leaf.alias}"] += len(rows)
        return self.changes.take(rows)

    def probe(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Matches:
        lifetimes, rows = self._lifetimes(np.unique(needles.hashes), key)
        needle, positions, visits = lifetimes.met_by(needles)
        self.ctx.counts[f"probes:{self.leaf.alias}"] += len(needles.hashes)
        self.ctx.counts[f"visits:{self.leaf.alias}"] += visits
        shown = rows.select([n for n in rows.columns if n in columns])
        return Matches(needle, shown.take(positions), None)

    def _lifetimes(self, wanted: Hashes, key: Key) -> tuple[Lifetimes, Frame]:
        """The rows with one of these hashes: those that are stored, which have always been there,
        and those that appear in this epoch, each until it vanishes."""
        parts = [self._stored_rows(meta, wanted, key) for meta in self.stored]
        parts.append(self._changed_rows(wanted, key))
        hashes = np.concatenate([p.hashes for p in parts])
        instants = np.concatenate([p.instants for p in parts])
        weights = np.concatenate([p.weights for p in parts])
        frame = concat_frames([p.frame for p in parts], self.leaf.fields)
        if (weights == 1).all():
            rows, starts, ends = np.arange(len(weights)), instants, _endless(len(weights))
        else:
            content = row_codes(list(frame.columns.values()), frame.length)
            rows, starts, ends = paired(content, instants, weights)
        lifetimes, order = Lifetimes.of_leaf(hashes[rows], starts, ends, self.position)
        return lifetimes, frame.take(rows[order])

    def _stored_rows(self, meta: PackMeta, wanted: Hashes, key: Key) -> _Weighted:
        pack = self.ctx.cache.open(meta.name)
        index = pack.index(key)
        which, found = _with_hashes(wanted, index.hashes, index.ts)
        rows = found if index.rows is None else index.rows[found]
        vectors = {f.name: self.ctx.vector(pack, f.name, f.type) for f in self.leaf.fields}
        frame = Frame({n: v.take(rows) for n, v in vectors.items()}, len(rows))
        always = np.full(len(rows), BEFORE_TIME, np.int64)
        return _Weighted(wanted[which], always, pack.column(WEIGHT).to_numpy()[rows], frame)

    def _changed_rows(self, wanted: Hashes, key: Key) -> _Weighted:
        hashes, instants, rows = self._index(key)
        which, found = _with_hashes(wanted, hashes, instants)
        picked = self.changes.take(rows[found])
        return _Weighted(wanted[which], picked.ts, picked.signs.astype(np.int64), picked.frame)

    def _index(self, key: Key) -> tuple[Hashes, Ints, Ints]:
        """The epoch's changes by key and instant."""
        if key not in self._by_key:
            arrays = [self.changes.frame.columns[c].to_arrow() for c in key]
            hashes = hash_columns(arrays, len(self.changes))
            order = native.key_time_order(hashes, self.changes.ts)
            self._by_key[key] = (hashes[order], self.changes.ts[order], order)
        return self._by_key[key]

    def has_null_keys(self, key: Key) -> bool:
        if any(self.changes.frame.columns[c].valid is not None for c in key):
            return True
        opened = (self.ctx.cache.open(m.name) for m in self.stored)
        return any(pack.column(c).null_count for pack in opened for c in key)


@dataclass(frozen=True, slots=True)
class _Weighted:
    """Rows by the hash of a key, each with the instant at which it appears so many times, or
    vanishes."""

    hashes: Hashes
    instants: Ints
    weights: Ints
    frame: Frame


def _with_hashes(wanted: Hashes, hashes: Hashes, instants: Ints) -> tuple[Ints, Ints]:
    """(wanted hash, position) of all positions of a sorted index with one of the hashes."""
    low = np.full(len(wanted), BEFORE_TIME, np.int64)
    high = np.full(len(wanted), AFTER_TIME, np.int64)
    return native.match_pairs(wanted, low, high, hashes, instants)  # type: ignore[no-any-return]


def _endless(length: int) -> Ints:
    return np.full(length, AFTER_TIME, np.int64)


def summed(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows of equal content as one, their weights added; those that cancel are left out."""
    vectors = [arrow_vector(table, name) for name in columns]
    code, first = numbered_rows(vectors, table.num_rows)
    weight = np.zeros(len(first), np.int64)
    np.add.at(weight, code, table.column(WEIGHT).to_numpy())
    kept = np.flatnonzero(weight)
    rows = table.take(pa.array(first[kept]))
    at = rows.column_names.index(WEIGHT)
    return rows.set_column(at, WEIGHT, pa.array(weight[kept]))
