"""The rows of packs that pass a leaf's filters, as views that the tasks of a process share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.columns.vector import Vector
from thalweg.exec.context import Reject, TaskContext, owned_bytes
from thalweg.exec.leaves.pack_view import View
from thalweg.exec.leaves.row_references import ROW_BITS
from thalweg.exec.leaves.task_share import Share
from thalweg.exec.predicates.conjunction import judge
from thalweg.exec.predicates.constant_lookup import constants_of, find_by_constants
from thalweg.exec.predicates.memo import SharedQuestions
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.plan.leaf import REFERENCE, START, TRACKS, Leaf
from thalweg.plan.predicate_order import in_text_order
from thalweg.plan.types import BIGINT
from thalweg.store.packs import Key, Pack, PackMeta
from thalweg.windows.protocol import TimeWindow


class PackViews:
    """Views of the packs of one leaf, within a task's share."""

    def __init__(self, ctx: TaskContext, leaf: Leaf, share: Share) -> None:
        self.ctx = ctx
        self.leaf = leaf
        self.share = share
        self.window = None if leaf.is_table else leaf.time_window
        # the order of predicates makes no difference to the rows they leave
        self._memo = str(
            replace(
                leaf,
                filters=in_text_order(leaf.filters),
                hints=in_text_order(leaf.hints),
                fields=leaf.untracked,
            )
        )
        self._constants = constants_of(leaf)

    def of(self, meta: PackMeta, key: Key | None = None) -> View:
        chosen = self.share.key if key is None else key
        memo = ("view", meta.name, self._memo, chosen, key is None, self.share)
        found = self.ctx.cache.derived(memo)
        if found is None:
            found = self._unfiltered(self.ctx.cache.open(meta.name), chosen, key is not None)
            found = self._filtered(found)
            size = owned_bytes(found.ts, found.rows, found.hashes)
            self.ctx.cache.remember(memo, found, size)
        return found  # type: ignore[no-any-return]

    def arriving(self, meta: PackMeta, low: int, high: int) -> View:
        """The rows of a pack within some instants that pass the filters."""
        whole = self._unfiltered(self.ctx.cache.open(meta.name), self.share.key, False)
        positions = whole.between(low, high)
        if len(positions) < len(whole.ts):
            rows = whole.picked(positions)
            whole = View(whole.pack, whole.ts[positions], rows, None, [], False)
        return self._filtered(whole)

    def _unfiltered(self, pack: Pack, key: Key, keyed: bool) -> View:
        ts, rows, hashes, ascending = pack.ts, None, None, True
        if key or keyed:
            ascending = pack.index(key).rows is None
            index = self.share.index(pack, key)
            ts, rows, hashes = index.ts, index.rows, index.hashes
        elif self.share.parts > 1:
            rows, ts = self.share.slice(pack)
        return self._looked_up(View(pack, ts, rows, hashes, [], ascending))

    def _looked_up(self, view: View) -> View:
        """Of a large pack with an index by columns that must equal constants, only the rows that
        the index has for these; no other row is read."""
        found = find_by_constants(view.pack, self._constants)
        if found is None:
            return view
        if view.rows is None:
            places = found
        elif view.ascending and _are_neighbours(view.rows):
            first = int(view.rows[0])
            places = found[(found >= first) & (found < first + len(view.rows))] - first
        else:
            inside = np.zeros(len(view.pack), np.bool_)
            inside[found] = True
            places = np.flatnonzero(inside[view.rows])
        self.ctx.counts[f"looked up:{self.leaf.alias}"] += len(places)
        hashes = None if view.hashes is None else view.hashes[places]
        return View(view.pack, view.ts[places], view.picked(places), hashes, [], view.ascending)

    def _filtered(self, view: View) -> View:
        predicates = self.leaf.filters + self.leaf.hints
        if not predicates:
            return view
        rows = np.arange(len(view.ts)) if view.rows is None else view.rows
        frame = self.frame(view.pack, rows)
        shared = None
        if self.ctx.common and not self.leaf.is_table:
            shared = SharedQuestions(frame, self.ctx, self.leaf, view.pack, rows)
        judged = judge(predicates, frame.columns, frame.length, self.ctx, shared)
        kept, erring = judged.passing, []
        if len(judged.erring):
            if self.leaf.hints:
                kept = np.sort(np.concatenate([kept, judged.erring]))
            else:
                erring = [
                    Reject(
                        str(p), judged.codes[i : i + 1], view.ts[[row]], frame.take(np.array([row]))
                    )
                    for i, (p, row) in enumerate(zip(judged.predicates, judged.erring, strict=True))
                ]
        hashes = None if view.hashes is None else view.hashes[kept]
        return View(view.pack, view.ts[kept], rows[kept], hashes, erring, view.ascending)

    def frame(self, pack: Pack, rows: Ints, columns: frozenset[str] | None = None) -> Frame:
        whole = {
            f.name: self.ctx.vector(pack, self.leaf.bare(f.name), f.type)
            for f in self.leaf.untracked
            if columns is None or f.name in columns
        }
        frame = Frame(whole, len(pack))
        if not _are_neighbours(rows):
            found = frame.take(rows)
        elif len(rows) == len(pack):
            found = frame
        else:
            found = frame.slice(int(rows[0]), int(rows[-1]) + 1)
        if columns is None:
            return found
        number = None  # a pack that is numbered is remembered for ever
        if self.leaf.full(REFERENCE) in columns:
            number = self.ctx.cache.number_of(pack.name)
        return with_tracks(found, self.leaf, self.window, columns, pack.ts, number, rows)


def _are_neighbours(rows: Ints) -> bool:
    """Whether these positions are contiguous: then nothing has to be copied."""
    if not len(rows) or rows[-1] - rows[0] + 1 != len(rows):
        return False
    return bool((rows[1:] > rows[:-1]).all())


def with_tracks(
    frame: Frame,
    leaf: Leaf,
    window: TimeWindow | None,
    columns: frozenset[str],
    ts: Ints,
    pack: int | None,
    rows: Ints,
) -> Frame:
    """Columns that identify rows of a numbered pack and give their lifetimes, if they are
    wanted."""
    for track in TRACKS:
        name = leaf.full(track)
        if name in columns:
            if track == REFERENCE and pack is not None:
                found = pack << ROW_BITS | rows
            else:
                found = _lifetime(track, window, ts, rows)
            frame = frame.merged({name: Vector(BIGINT, found)})
    return frame


def _lifetime(track: str, window: TimeWindow | None, ts: Ints, rows: Ints) -> Ints:
    if window is None:
        return np.full(len(rows), BEFORE_TIME if track == START else AFTER_TIME, np.int64)
    return window.starts(ts[rows]) if track == START else window.ends(ts[rows])
