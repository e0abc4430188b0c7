"""Windows over the order of rows: the last n of a stream or of each partition, and sessions.

The end of a row's lifetime is known from later rows (see `exec/leaves/order_lifetimes.py`). Within
an epoch all rows below the frontier are present, so lifetimes that end before it are known. The
window's content is hard state: a pack of the query's own, rewritten by each epoch, or a store that
several queries share (see `exec/leaves/window_store.py`), which may reach further back than this
window and be older: rows that have left the window by now have a lifetime that is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, empty_frame
from thalweg.columns.instant_set import InstantSet
from thalweg.columns.runs import Runs, sort_into_runs
from thalweg.columns.vector import Vector, arrow_vector, from_arrow
from thalweg.exec.aggregate.group_by import normalized
from thalweg.exec.context import TaskContext
from thalweg.exec.leaves.lifetimes import Lifetimes
from thalweg.exec.leaves.order_lifetimes import in_stream_order
from thalweg.exec.leaves.protocol import Matches, Needles
from thalweg.exec.leaves.row_combinations import Combinations
from thalweg.exec.leaves.task_share import Share
from thalweg.exec.predicates.conjunction import judge, reject
from thalweg.instants import AFTER_TIME, Ints
from thalweg.plan.leaf import TRACKS, Leaf
from thalweg.plan.types import BIGINT
from thalweg.store import native
from thalweg.store.hashing import hash_columns
from thalweg.store.packs import TIME, Key, PackMeta


@dataclass(slots=True)
class Content:
    """Rows in stream order (partition by partition) with their lifetimes. `stored` are the places
    of those that were in the window before the epoch."""

    table: pa.Table
    starts: Ints
    ends: Ints
    stored: Ints = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(slots=True)
class Sorted:
    """Rows in stream order, partition by partition."""

    table: pa.Table
    runs: Runs
    ts: Ints


class KeptLeaf:
    """A window over the order of rows, over the packs of a stream. Of these, rows before `since` do
    not count: by default those before the epoch, which are in the state if they are anywhere. With
    `shared` the state is that of a store."""

    refers_to_packs = False

    def __init__(
        self,
        ctx: TaskContext,
        leaf: Leaf,
        position: int,
        packs: Sequence[PackMeta],
        share: Share,
        state: Sequence[PackMeta],
        since: int | None = None,
        shared: bool = False,
    ) -> None:
        self.ctx = ctx
        self.shared = shared
        self.since = ctx.since if since is None else since
        self.leaf = leaf
        self.names = self._names()
        self.position = position
        self.share = share
        self._waiting: tuple[Ints, Ints] | None = None
        self._content = self._loaded(packs, state)
        self._frame, self._kept = self._visible()
        self._by_key: dict[Key, tuple[Lifetimes, Ints]] = {}

    # -- content -----------------------------------------------------------------------------

    def _names(self) -> tuple[str, ...]:
        """The stream's columns that are stored."""
        return self.leaf.stream_columns

    def _loaded(self, packs: Sequence[PackMeta], state: Sequence[PackMeta]) -> Content:
        found = self._sorted(packs, state)
        if found is None:
            return Content(pa.table({}), np.empty(0, np.int64), np.empty(0, np.int64))
        window = self.leaf.ordered_window
        partition = found.runs.group_of_run[found.runs.run]
        starts, ends = window.lifetimes(partition, found.ts, self.ctx.until)
        self._waiting = (partition, found.ts) if window.waits else None
        stored = np.flatnonzero((found.ts < self.ctx.since) & (ends >= self.ctx.since))
        return Content(found.table, starts, ends, stored)

    def _sorted(self, packs: Sequence[PackMeta], state: Sequence[PackMeta]) -> Sorted | None:
        """All rows that may matter. Those of a store are sorted once for all queries that share
        it."""
        window = self.leaf.ordered_window
        by = tuple(map(self.leaf.bare, window.partition_by))
        arriving = [m for m in packs if m.max_ts >= self.since and m.min_ts < self.ctx.until]
        # what the next epoch sorts takes its place
        memo = ("window", type(window), self.leaf.relation, by, self.share)
        names = tuple(m.name for m in (*state, *arriving))
        made_of = (names, len(state), self.since, self.ctx.until)
        if self.shared:
            known, found = self.ctx.cache.derived(memo) or (None, None)
            if known == made_of:
                self.ctx.counts[f"shared window:{self.leaf.alias}"] += 1
                return found
        tables = [self._stored(m) for m in state] + [self._arriving(m) for m in arriving]
        tables = [t for t in tables if t.num_rows]
        if not tables:
            return None
        found = self._in_order(pa.concat_tables(tables).combine_chunks(), by)
        if self.shared:
            size = int(found.table.nbytes) + 4 * found.ts.nbytes
            self.ctx.cache.remember(memo, (made_of, found), size)
        return found

    def _arriving(self, meta: PackMeta) -> pa.Table:
        return arriving_rows(self.ctx, self.names, meta, self.share, self.since)

    def _stored(self, meta: PackMeta) -> pa.Table:
        """The share of a state pack (its rows may belong to several tasks' ranges)."""
        pack = self.ctx.cache.open(meta.name)
        table = pack.table.select([*self.names, TIME])
        if not self.share.key:
            return table
        rows = self.share.index(pack, self.share.key).rows
        return table if rows is None else table.take(pa.array(rows))

    def _in_order(self, table: pa.Table, by: Sequence[str]) -> Sorted:
        ts = table.column(TIME).to_numpy()
        runs = sort_into_runs([normalized(arrow_vector(table, c)) for c in by], ts)
        order = in_stream_order(runs, table, [*self.leaf.order_by, *self.leaf.stream_columns])
        return Sorted(table.take(pa.array(order)).combine_chunks(), runs, ts[order])

    def wakes_at(self) -> int:
        starts, ends = self._content.starts, self._content.ends
        if self._waiting is not None:
            starts, ends = self.leaf.ordered_window.lifetimes(*self._waiting, AFTER_TIME)
        coming = (int(at[at >= self.ctx.until].min(initial=AFTER_TIME)) for at in (starts, ends))
        return min(coming)

    def closings(self) -> Ints:
        """Instants of the epoch at which sessions end."""
        starts = self._content.starts
        return np.unique(starts[self._within(starts)])

    def _within(self, instants: Ints) -> Ints:
        """Where an instant lies in the epoch."""
        return np.flatnonzero((instants >= self.ctx.since) & (instants < self.ctx.until))

    def state(self) -> pa.Table | None:
        """The rows that still matter after the epoch."""
        if not len(self._content.ends):
            return None
        return self._content.table.take(pa.array(self._open())).combine_chunks()

    def _open(self) -> Ints:
        return np.flatnonzero(self._content.ends >= self.ctx.until)

    def _visible(self) -> tuple[Frame, Ints]:
        """Rows that are in the window at some instant of the epoch and pass the filters above
        it."""
        content = self._content
        there = (content.ends > content.starts) & (content.starts < self.ctx.until)
        shown = np.flatnonzero(there & (content.ends >= self.ctx.since))
        frame = self._columns(shown)
        if not self.leaf.post_filters or not len(shown):
            return frame, shown
        judged = judge(self.leaf.post_filters, frame.columns, frame.length, self.ctx)
        fresh = content.starts[shown] >= self.ctx.since
        if len(judged.erring):
            whole = frame.select([f.name for f in self.leaf.untracked])
            reject(judged.only(fresh[judged.erring]), whole, content.starts[shown], self.ctx)
        return frame.take(judged.passing), shown[judged.passing]

    def _columns(self, rows: Ints, columns: frozenset[str] | None = None) -> Frame:
        """Rows of the content, with all columns unless some are named."""
        content, leaf = self._content, self.leaf
        if not len(content.ends):
            return empty_frame(leaf.fields)
        found = {
            f.name: from_arrow(content.table.column(leaf.bare(f.name)), f.type).take(rows)
            for f in leaf.untracked
            if columns is None or f.name in columns
        }
        tracks = dict(zip(TRACKS, (rows, content.starts, content.ends), strict=True))
        for f in leaf.fields[len(leaf.untracked) :]:
            if columns is None or f.name in columns:
                track = tracks[leaf.bare(f.name)]
                found[f.name] = Vector(BIGINT, track if track is rows else track[rows])
        return Frame(found, len(rows))

    # -- references of subresults -----------------------------------------------------------

    def at(self, references: Ints, columns: frozenset[str]) -> Frame:
        """The rows of references: places in the content of this epoch."""
        return self._columns(references, columns)

    def standing(self, instant: int) -> Changes:
        """All rows that are valid at an instant."""
        content = self._content
        starts, ends = content.starts[self._kept], content.ends[self._kept]
        rows = np.flatnonzero((starts <= instant) & (ends > instant))
        ts = np.full(len(rows), instant, np.int64)
        return Changes(self._frame.take(rows), ts, np.ones(len(rows), np.int8))

    def follow(self, parts: Sequence[Combinations], member: int) -> bool:
        """Translate ranks among the rows that the last epoch left to places in this content; rows
        whose ends are known by now may end combinations sooner."""
        for part in parts:
            ranks = part.references[member]
            if len(ranks) and int(ranks.max()) >= len(self._content.stored):
                return False
            places = self._content.stored[ranks]
            part.references[member] = places
            part.end_by(self._content.ends[places], member)
        return True

    def leave(self, parts: Sequence[Combinations], member: int) -> None:
        """Translate places to ranks among the rows that this epoch leaves."""
        ranks = np.cumsum(self._content.ends >= self.ctx.until) - 1
        for part in parts:
            part.references[member] = ranks[part.references[member]]

    def after(self, references: Ints) -> Ints:
        """Places of the ranks that `leave` returned."""
        return self._open()[references]

    # -- probing by pipelines ----------------------------------------------------------------

    def arrivals(self) -> Changes:
        starts = self._content.starts[self._kept]
        rows = self._within(starts)
        self.ctx.counts[f"arrivals:{self.leaf.alias}"] += len(rows)
        return Changes(self._frame.take(rows), starts[rows], np.ones(len(rows), np.int8))

    def departures(self, only_at: InstantSet | None = None) -> Changes:
        ends = self._content.ends[self._kept]
        rows = self._within(ends)
        if only_at is not None:
            rows = rows[only_at.might_hold(ends[rows])]
        self.ctx.counts[f"departures:{self.leaf.alias}"] += len(rows)
        return Changes(self._frame.take(rows), ends[rows], np.full(len(rows), -1, np.int8))

    def probe(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Matches:
        lifetimes, rows = self._index(key)
        needle, positions, visits = lifetimes.met_by(needles)
        self.ctx.counts[f"probes:{self.leaf.alias}"] += len(needles.hashes)
        self.ctx.counts[f"visits:{self.leaf.alias}"] += visits
        shown = self._frame.select([n for n in self._frame.columns if n in columns])
        return Matches(needle, shown.take(rows[positions]), None)

    def _index(self, key: Key) -> tuple[Lifetimes, Ints]:
        """Lifetimes by key, and the rows they are of."""
        if key not in self._by_key:
            names = [self.leaf.full(c) for c in key]
            arrays = [self._frame.columns[n].to_arrow() for n in names]
            hashes = hash_columns(arrays, self._frame.length)
            starts, ends = self._content.starts[self._kept], self._content.ends[self._kept]
            self._by_key[key] = Lifetimes.of_leaf(hashes, starts, ends, self.position)
        return self._by_key[key]

    def has_null_keys(self, key: Key) -> bool:
        return any(self._frame.columns[self.leaf.full(c)].valid is not None for c in key)


def arriving_rows(
    ctx: TaskContext, columns: Sequence[str], meta: PackMeta, share: Share, since: int
) -> pa.Table:
    """The rows of a pack whose event times lie in the epoch and not before `since`, within the
    task's share."""
    pack = ctx.cache.open(meta.name)
    table = pack.table.select([*columns, TIME])
    if meta.max_ts < since or meta.min_ts >= ctx.until:
        return table.slice(0, 0)
    rows: Ints | None = None
    ts = pack.ts
    if share.key:
        index = share.index(pack, share.key)
        rows, ts = index.rows, index.ts
    elif share.parts > 1:
        rows, ts = share.slice(pack)
    found = native.rows_between(ts, since, ctx.until)
    return table.take(pa.array(found if rows is None else rows[found]))
