"""Row windows: the last n rows of a stream, or of each partition, in stream order.

The end of a row is the arrival of the n-th row after it. Within an epoch all rows below the
frontier are there, so ends before it are known, and a row without one is alive throughout.
The window's content is hard state: a small pack rewritten by each epoch that changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.exec.context import TaskContext
from thalweg.exec.filters import judge, reject
from thalweg.exec.frame import AFTER_TIME, Changes, Frame, Ints, empty_frame
from thalweg.exec.leaf import InstantSet, Matches, Needles, Share
from thalweg.exec.ordering import lexical_order, order_codes
from thalweg.exec.vector import Vector, arrow_vector, from_arrow
from thalweg.plan.logical import RowWindow
from thalweg.plan.physical import Leaf
from thalweg.store import native
from thalweg.store.hashing import Hashes, hash_columns
from thalweg.store.packs import TIME, Key, PackMeta


@dataclass(slots=True)
class _Content:
    """Rows in stream order (partition by partition) with their lifetimes."""

    table: pa.Table
    ts: Ints
    ends: Ints


class RowLeaf:
    """A row window over the packs of a stream."""

    def __init__(
        self,
        ctx: TaskContext,
        leaf: Leaf,
        position: int,
        packs: Sequence[PackMeta],
        share: Share,
        state: Sequence[PackMeta],
    ) -> None:
        assert isinstance(leaf.window, RowWindow)
        self.ctx = ctx
        self.leaf = leaf
        self.position = position
        self.window = leaf.window
        self.share = share
        self._content = self._loaded(packs, state)
        self._frame, self._kept = self._visible()
        self._by_key: dict[Key, tuple[Hashes, Ints, Ints]] = {}

    # -- content -----------------------------------------------------------------------------

    def _loaded(self, packs: Sequence[PackMeta], state: Sequence[PackMeta]) -> _Content:
        tables = [self._stored(m) for m in state]
        for meta in packs:
            if meta.max_ts >= self.ctx.since and meta.min_ts < self.ctx.until:
                tables.append(self._arriving(meta))
        tables = [t for t in tables if t.num_rows]
        if not tables:
            return _Content(pa.table({}), np.empty(0, np.int64), np.empty(0, np.int64))
        table = pa.concat_tables(tables).combine_chunks()
        return self._ordered(table)

    def _stored(self, meta: PackMeta) -> pa.Table:
        """The share of a state pack (its rows may belong to several tasks' ranges)."""
        pack = self.ctx.cache.open(meta.name)
        table = pack.table.select([*self.leaf.stream_columns, TIME])
        if not self.share.key:
            return table
        rows = pack.index(self.share.key).within(self.share.low, self.share.high).rows
        return table if rows is None else table.take(pa.array(rows))

    def _arriving(self, meta: PackMeta) -> pa.Table:
        pack = self.ctx.cache.open(meta.name)
        table = pack.table.select([*self.leaf.stream_columns, TIME])
        rows: Ints | None = None
        ts = pack.ts
        if self.share.key:
            index = pack.index(self.share.key).within(self.share.low, self.share.high)
            rows, ts = index.rows, index.ts
        found = native.rows_between(ts, self.ctx.since, self.ctx.until)
        return table.take(pa.array(found if rows is None else rows[found]))

    def _ordered(self, table: pa.Table) -> _Content:
        ts = table.column(TIME).to_numpy()
        vectors = {n: arrow_vector(table, n) for n in self.leaf.stream_columns}
        partition = [vectors[self.leaf.bare(c)] for c in self.window.partition_by]
        codes = [c for v in partition for c in _group_keys(v)]
        tie = [vectors[n] for n in (*self.leaf.order_by, *self.leaf.stream_columns)]
        order = lexical_order(tie, [*codes, ts])
        ts = ts[order]
        ends = np.full(len(ts), AFTER_TIME, np.int64)
        n = self.window.rows
        if len(ts) > n:
            same = np.ones(len(ts) - n, np.bool_)
            for code in codes:
                ordered = code[order]
                same &= ordered[n:] == ordered[:-n]
            ends[:-n][same] = ts[n:][same]
        return _Content(table.take(pa.array(order)).combine_chunks(), ts, ends)

    def state(self) -> pa.Table | None:
        """The rows still in the window at the end of the epoch."""
        if not len(self._content.ts):
            return None
        open_ = np.flatnonzero(self._content.ends == AFTER_TIME)
        return self._content.table.take(pa.array(open_)).combine_chunks()

    def _visible(self) -> tuple[Frame, Ints]:
        """Rows that are ever in the window and pass the filters above it."""
        content = self._content
        shown = np.flatnonzero(content.ends > content.ts)
        frame = self._columns(shown)
        if not self.leaf.post_filters or not len(shown):
            return frame, shown
        judged = judge(self.leaf.post_filters, frame.columns, frame.length, self.ctx)
        fresh = content.ts[shown] >= self.ctx.since
        if len(judged.erring):
            new = np.flatnonzero(fresh[judged.erring])
            judged.erring, judged.codes = judged.erring[new], judged.codes[new]
            judged.predicates = [judged.predicates[i] for i in new]
            reject(judged, frame, content.ts[shown], self.ctx)
        return frame.take(judged.passing), shown[judged.passing]

    def _columns(self, rows: Ints) -> Frame:
        if not len(self._content.ts):
            return empty_frame(self.leaf.fields)
        table = self._content.table
        return Frame(
            {
                f.name: from_arrow(table.column(self.leaf.bare(f.name)), f.type).take(rows)
                for f in self.leaf.fields
            },
            len(rows),
        )

    # -- what pipelines ask ------------------------------------------------------------------

    def arrivals(self) -> Changes:
        ts = self._content.ts[self._kept]
        rows = np.flatnonzero(ts >= self.ctx.since)
        self.ctx.counts[f"arrivals:{self.leaf.alias}"] += len(rows)
        return Changes(self._frame.take(rows), ts[rows], np.ones(len(rows), np.int8))

    def departures(self, only_at: InstantSet | None = None) -> Changes:
        ends = self._content.ends[self._kept]
        rows = np.flatnonzero(ends < AFTER_TIME)
        if only_at is not None:
            rows = rows[only_at.might_hold(ends[rows])]
        self.ctx.counts[f"departures:{self.leaf.alias}"] += len(rows)
        return Changes(self._frame.take(rows), ends[rows], np.full(len(rows), -1, np.int8))

    def probe(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Matches:
        hashes, ts, rows = self._index(key)
        at = needles.instants
        after = self.position > needles.source
        high = at - 1 if after or needles.departing else at
        low = np.full_like(at, -(2**61))
        begin, count, total = native.match_ranges(needles.hashes, low, high, hashes, ts)
        needle, positions = native.expand_ranges(begin, count, total)
        picked = rows[positions]
        ends = self._content.ends[self._kept[picked]]
        edge = at[needle]
        alive = ends >= edge if needles.departing and after else ends > edge
        self.ctx.counts[f"probes:{self.leaf.alias}"] += len(at)
        shown = self._frame.select([n for n in self._frame.columns if n in columns])
        return Matches(needle[alive], shown.take(picked[alive]), None)

    def _index(self, key: Key) -> tuple[Hashes, Ints, Ints]:
        if key not in self._by_key:
            names = [self.leaf.full(c) for c in key]
            arrays = [self._frame.columns[n].to_arrow() for n in names]
            hashes = hash_columns(arrays, self._frame.length)
            ts = self._content.ts[self._kept]
            order = native.key_time_order(hashes, ts)
            self._by_key[key] = (hashes[order], ts[order], order)
        return self._by_key[key]

    def has_null_keys(self, key: Key) -> bool:
        return any(self._frame.columns[self.leaf.full(c)].valid is not None for c in key)


def _group_keys(vector: Vector) -> list[Ints]:
    codes = order_codes([vector])[0]
    if vector.valid is None:
        return [codes]
    return [vector.valid.astype(np.int64), np.where(vector.valid, codes, 0)]
