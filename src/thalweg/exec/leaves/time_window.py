"""Time windows over the packs of a stream, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from thalweg.columns.frame import Changes, Frame, concat_frames
from thalweg.columns.instant_set import InstantSet
from thalweg.exec.context import Reject, TaskContext
from thalweg.exec.leaves.filtered_packs import PackViews
from thalweg.exec.leaves.pack_view import View
from thalweg.exec.leaves.protocol import AFTER_ALL, Floor, Matches, Needles
from thalweg.exec.leaves.row_combinations import Combinations
from thalweg.exec.leaves.row_references import ROW_BITS, follow_merged
from thalweg.exec.leaves.task_share import Share
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.plan.leaf import Leaf
from thalweg.store import native
from thalweg.store.packs import Key, PackMeta


class TimeLeaf:
    """A time window over the packs of a stream, or a table (no window: always valid).

    With `once` every row is evaluated once, in the epoch of its arrival: filters are then evaluated
    on just the rows that arrive, however a pack is spread over epochs and workers.
    """

    refers_to_packs = True

    def __init__(
        self,
        ctx: TaskContext,
        leaf: Leaf,
        position: int,
        packs: Sequence[PackMeta],
        share: Share,
        floor: Floor | None = None,
        once: bool = False,
    ) -> None:
        self.ctx = ctx
        self.floor = floor
        self.once = once
        self.leaf = leaf
        self.position = position
        self.packs = packs
        self.share = share
        self.window = None if leaf.is_table else leaf.time_window
        self.views = PackViews(ctx, leaf, share)
        self._columns = frozenset(f.name for f in leaf.fields)

    # -- appearing and vanishing rows --------------------------------------------------------

    def arrivals(self) -> Changes:
        if self.window is None:
            return self._standing()
        low, high = self.window.starting_between(self.ctx.since, self.ctx.until)
        if self.floor is not None:
            low = max(low, self.floor.now)
        frames, times = self._between(low, high, note_rejects=True)
        ts = _flat(times)
        ends = self.window.ends(ts)
        begins = self.window.starts(ts)
        changes = Changes(
            concat_frames(frames, self.leaf.fields), begins, np.ones(len(ts), np.int8), ends
        )
        if self.window.has_empty_lifetimes and (ends <= begins).any():
            changes = changes.take(np.flatnonzero(ends > begins))
        self.ctx.counts[f"arrivals:{self.leaf.alias}"] += len(changes)
        return changes

    def _standing(self) -> Changes:
        """The rows of a table whose query has no other changes: valid from the query's start, for
        ever."""
        frames = []
        for meta in self.packs if self.ctx.begins else ():
            view = self.views.of(meta)
            rows = np.arange(len(view.ts)) if view.rows is None else view.rows
            frames.append(self.views.frame(view.pack, rows))
        frame = concat_frames(frames, self.leaf.fields)
        at = np.full(frame.length, self.ctx.start or 0, np.int64)
        ends = np.full(frame.length, AFTER_TIME, np.int64)
        return Changes(frame, at, np.ones(frame.length, np.int8), ends)

    def departures(self, only_at: InstantSet | None = None) -> Changes:
        if self.window is None:
            return self._standing().take(np.empty(0, np.int64))
        low, high = self.window.ending_between(self.ctx.since, self.ctx.until)
        if self.floor is not None:
            low = max(low, self.floor.now)
        frames, times = self._between(low, high, note_rejects=False, only_at=only_at)
        ts = _flat(times)
        ends = self.window.ends(ts)
        if self.floor is not None and self.floor.now > self.floor.before:
            early = self._evicted(self.floor)
            frames, ts = [*frames, *early[0]], np.concatenate([ts, *early[1]])
            ends = np.append(ends, np.full(len(ts) - len(ends), self.ctx.since))
        changes = Changes(
            concat_frames(frames, self.leaf.fields), ends, np.full(len(ts), -1, np.int8), ends
        )
        begins = self.window.starts(ts)
        if self.window.has_empty_lifetimes and (ends <= begins).any():
            changes = changes.take(np.flatnonzero(ends > begins))
        self.ctx.counts[f"departures:{self.leaf.alias}"] += len(changes)
        return changes

    def _evicted(self, floor: Floor) -> tuple[list[Frame], list[Ints]]:
        """Rows evicted before their time: those valid just before this epoch."""
        assert self.window is not None
        before = np.array([self.ctx.since - 1], np.int64)
        alive = int(self.window.earliest_alive(before)[0])
        started = int(self.window.latest_started(before)[0])
        low, high = max(floor.before, alive), min(floor.now, started + 1)
        return self._between(low, high, note_rejects=False) if low < high else ([], [])

    def _between(
        self, low: int, high: int, *, note_rejects: bool, only_at: InstantSet | None = None
    ) -> tuple[list[Frame], list[Ints]]:
        frames, times = [], []
        for meta in self.packs:
            if meta.max_ts < low or meta.min_ts >= high or not meta.rows:
                continue
            view = self.views.arriving(meta, low, high) if self.once else self.views.of(meta)
            positions = view.between(low, high)
            if only_at is not None and len(positions):
                assert self.window is not None
                ends = self.window.ends(view.ts[positions])
                positions = positions[only_at.might_hold(ends)]
            if len(positions):
                rows = view.picked(positions)
                frames.append(self.views.frame(view.pack, rows, self._columns))
                times.append(view.ts[positions])
            if note_rejects and self.share.reports:
                self._note_rejects(view, low, high)
        return frames, times

    def _note_rejects(self, view: View, low: int, high: int) -> None:
        assert self.window is not None
        for one in view.erring:
            seen = (one.ts >= low) & (one.ts < high)
            begins = self.window.starts(one.ts)
            seen &= self.window.ends(one.ts) > begins
            rows = np.flatnonzero(seen)
            if len(rows):
                self.ctx.rejects.append(
                    Reject(one.expression, one.codes[rows], begins[rows], one.rows.take(rows))
                )

    def standing(self, instant: int) -> Changes:
        """All rows that are valid at an instant."""
        at = np.full(1, instant, np.int64)
        low, high = self._alive(Needles(np.empty(0, np.uint64), at, False, AFTER_ALL))
        frames, _ = self._between(int(low[0]), int(high[0]) + 1, note_rejects=False)
        frame = concat_frames(frames, self.leaf.fields)
        ts = np.full(frame.length, instant, np.int64)
        return Changes(frame, ts, np.ones(frame.length, np.int8))

    def wakes_at(self) -> int:
        if self.window is None or self.once:
            return AFTER_TIME
        low, high = self.window.alive_at(self.ctx.until - 1)
        starting = [max(m.min_ts, high) for m in self.packs if m.max_ts >= high]
        alive = () if self.window.is_endless else self.packs
        ending = [max(m.min_ts, low) for m in alive if m.max_ts >= low]
        starts = self.window.starts(np.array(starting, np.int64))
        ends = self.window.ends(np.array(ending, np.int64))
        return int(min(starts.min(initial=AFTER_TIME), ends.min(initial=AFTER_TIME)))

    # -- probing -----------------------------------------------------------------------------

    def probe(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Matches:
        found, frames, times = [], [], []
        for view, *ranges in self.ranges(needles, key):
            needle, positions = native.expand_matches(*ranges)
            found.append(needle)
            frames.append(self.fetch(view, positions, columns))
            if want_ends:
                times.append(view.ts[positions])
        return self.matches(found, frames, times if want_ends else None, columns)

    def ranges(self, needles: Needles, key: Key) -> Iterator[tuple[View, Ints, Ints, Ints, int]]:
        """Pack by pack, which needles have partners, where these begin, and how many they are;
        packs without any are left out."""
        low, high = self._alive(needles)
        bottom = int(low.min()) if len(low) else AFTER_TIME
        top = int(high.max()) if len(high) else BEFORE_TIME
        self.ctx.counts[f"probes:{self.leaf.alias}"] += len(needles.hashes)
        for meta in self.packs:
            if meta.max_ts < bottom or meta.min_ts > top or not meta.rows:
                continue
            view = self.views.of(meta, key)
            ranges = view.matches(needles.hashes, low, high)
            if ranges[-1]:
                yield view, *ranges

    def fetch(self, view: View, positions: Ints, columns: frozenset[str]) -> Frame:
        return self.views.frame(view.pack, view.picked(positions), columns)

    def matches(
        self,
        needles: Sequence[Ints],
        frames: Sequence[Frame],
        times: Sequence[Ints] | None,
        columns: frozenset[str],
    ) -> Matches:
        """Matches in several packs as one; `times` where ends are wanted."""
        ends = None
        if times is not None and self.window is not None:
            ends = self.window.ends(_flat(times))
        fields = tuple(f for f in self.leaf.fields if f.name in columns)
        return Matches(_flat(needles), concat_frames(frames, fields), ends)

    def _alive(self, needles: Needles) -> tuple[Ints, Ints]:
        """Event times of the rows a needle may meet.

        A result belongs to its latest arrival and its earliest departure; among equals the later
        (for departures the earlier) source in FROM has it, so each result is made exactly once.
        """
        at = needles.instants
        if self.window is None:
            return np.full_like(at, BEFORE_TIME), np.full_like(at, AFTER_TIME)
        after = self.position > needles.source
        if needles.departing:
            low = self.window.earliest_alive(at - 1 if after else at)
            if self.floor is not None:
                first = after & (at == self.ctx.since)
                low = np.maximum(low, np.where(first, self.floor.before, self.floor.now))
            return low, self.window.latest_started(at - 1)
        low = self.window.earliest_alive(at)
        if self.floor is not None:
            low = np.maximum(low, self.floor.now)
        return low, self.window.latest_started(at - 1 if after else at)

    def follow(self, parts: Sequence[Combinations], member: int) -> bool:
        """Update references after packs were merged; False if some cannot be."""
        return follow_merged(self.ctx.cache, self.packs, parts, member)

    def leave(self, parts: Sequence[Combinations], member: int) -> None:
        """References to packs stay as they are."""

    def after(self, references: Ints) -> Ints:
        return references

    def has_null_keys(self, key: Key) -> bool:
        opened = self.ctx.cache.open
        return any(opened(m.name).has_nulls(c) for m in self.packs for c in key)

    def at(self, references: Ints, columns: frozenset[str]) -> Frame:
        """The rows of references."""
        packs, begin, count, order, rows = native.by_high_bits(references, ROW_BITS)
        frames = []
        for number, a, n in zip(packs, begin, count, strict=True):
            pack = self.ctx.cache.open(self.ctx.cache.name_of(int(number)))
            frames.append(self.views.frame(pack, rows[a : a + n], columns))
        fields = tuple(f for f in self.leaf.fields if f.name in columns)
        frame = concat_frames(frames, fields)
        if len(packs) < 2:
            return frame
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return frame.take(back)


def _flat(arrays: Sequence[Ints]) -> Ints:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)
