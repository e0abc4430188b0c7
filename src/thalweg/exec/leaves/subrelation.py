"""A relation of the plan as an input of another one.

The relation's content before the epoch is in packs of weighted rows, whose sum it is; the epoch's
changes are in memory. A probe adds up both as of the needle's instant: at an instant everything
that vanishes does so first, then everything that appears, leaf by leaf, as in `TimeLeaf`, so that a
result is made once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, arrow_columns, concat_frames
from thalweg.columns.instant_set import InstantSet
from thalweg.columns.sort_codes import row_codes
from thalweg.columns.vector import arrow_vector
from thalweg.exec.context import TaskContext
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
        """This epoch's changes, to be added to the content."""
        if not len(self.changes):
            return None
        columns = arrow_columns(self.changes.frame, self.leaf.fields)
        columns[WEIGHT] = pa.array(self.changes.signs.astype(np.int64))
        columns[TIME] = pa.array(self.changes.ts)
        return pa.table(columns)

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
        parts = [self._before(meta, needles, key, columns) for meta in self.stored]
        parts.append(self._during(needles, key, columns))
        fields = tuple(f for f in self.leaf.fields if f.name in columns)
        needle = np.concatenate([p[0] for p in parts])
        weight = np.concatenate([p[2] for p in parts])
        frame = concat_frames([p[1] for p in parts], fields)
        self.ctx.counts[f"probes:{self.leaf.alias}"] += len(needles.hashes)
        rows, copies = _summed(needle, frame, weight)
        picked = np.repeat(rows, copies)
        return Matches(needle[picked], frame.take(picked), None)

    def _before(
        self, meta: PackMeta, needles: Needles, key: Key, columns: frozenset[str]
    ) -> tuple[Ints, Frame, Ints]:
        pack = self.ctx.cache.open(meta.name)
        index = pack.index(key)
        needle, found = _matches(needles.hashes, None, index.hashes, index.ts)
        rows = found if index.rows is None else index.rows[found]
        frame = Frame(
            {
                f.name: self.ctx.vector(pack, f.name, f.type).take(rows)
                for f in self.leaf.fields
                if f.name in columns
            },
            len(rows),
        )
        return needle, frame, pack.column(WEIGHT).to_numpy()[rows]

    def _during(
        self, needles: Needles, key: Key, columns: frozenset[str]
    ) -> tuple[Ints, Frame, Ints]:
        hashes, moments, rows = self._index(key)
        after = self.position > needles.source
        last = 2 * needles.instants + (not needles.departing) - after
        needle, found = _matches(needles.hashes, last, hashes, moments)
        picked = rows[found]
        shown = self.changes.frame.select([n for n in self.changes.frame.columns if n in columns])
        return needle, shown.take(picked), self.changes.signs[picked].astype(np.int64)

    def _index(self, key: Key) -> tuple[Hashes, Ints, Ints]:
        """The epoch's changes by key and moment; at an instant vanishing is even, appearing odd."""
        if key not in self._by_key:
            arrays = [self.changes.frame.columns[c].to_arrow() for c in key]
            hashes = hash_columns(arrays, len(self.changes))
            moments = 2 * self.changes.ts + (self.changes.signs > 0)
            order = native.key_time_order(hashes, moments)
            self._by_key[key] = (hashes[order], moments[order], order)
        return self._by_key[key]

    def has_null_keys(self, key: Key) -> bool:
        if any(self.changes.frame.columns[c].valid is not None for c in key):
            return True
        opened = (self.ctx.cache.open(m.name) for m in self.stored)
        return any(pack.column(c).null_count for pack in opened for c in key)


def _matches(hashes: Hashes, last: Ints | None, kept: Hashes, moments: Ints) -> tuple[Ints, Ints]:
    low = np.full(len(hashes), 2 * BEFORE_TIME, np.int64)
    high = np.full(len(hashes), 2 * AFTER_TIME, np.int64) if last is None else last
    return native.match_pairs(hashes, low, high, kept, moments)  # type: ignore[no-any-return]


def _summed(needle: Ints, frame: Frame, weight: Ints) -> tuple[Ints, Ints]:
    """Distinct rows and their multiplicities: equal rows under one needle are added up."""
    if not len(weight) or (weight > 0).all():
        return np.arange(len(weight)), weight
    content = row_codes(list(frame.columns.values()), frame.length)
    order = np.lexsort((content, needle))
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (needle[order][1:] != needle[order][:-1]) | (
        content[order][1:] != content[order][:-1]
    )
    starts = np.flatnonzero(fresh)
    total = np.add.reduceat(weight[order], starts)
    alive = np.flatnonzero(total > 0)
    return order[starts[alive]], total[alive]


def summed(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows of equal content as one, their weights added; those that cancel are left out."""
    vectors = [arrow_vector(table, name) for name in columns]
    _, first, code = np.unique(
        row_codes(vectors, table.num_rows), return_index=True, return_inverse=True
    )
    weight = np.zeros(len(first), np.int64)
    np.add.at(weight, code.reshape(-1), table.column(WEIGHT).to_numpy())
    kept = np.flatnonzero(weight)
    rows = table.take(pa.array(first[kept]))
    at = rows.column_names.index(WEIGHT)
    return rows.set_column(at, WEIGHT, pa.array(weight[kept]))
