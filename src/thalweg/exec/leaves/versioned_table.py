"""Tables that change: rows with the instants between which they are valid.

A table's pack holds the rows of all versions that some query may still read, each row once for its
whole lifetime, so that a new version brings only the differences.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Frame
from thalweg.columns.sort_codes import row_codes
from thalweg.columns.vector import arrow_vector
from thalweg.exec.context import TaskContext
from thalweg.exec.leaves.ordered_window import Content, KeptLeaf
from thalweg.exec.leaves.task_share import Share
from thalweg.exec.predicates.conjunction import judge
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.plan.leaf import Leaf
from thalweg.store.packs import PackMeta

SINCE, UNTIL = "__since", "__until"


def first_version(table: pa.Table) -> pa.Table:
    """The first version: rows that have always been valid."""
    return _with_lifetimes(
        table, np.full(table.num_rows, BEFORE_TIME), np.full(table.num_rows, AFTER_TIME)
    )


def next_version(old: pa.Table, new: pa.Table, at: int, oldest: int) -> pa.Table | None:
    """All versions as rows with lifetimes, or None if nothing changes.

    `old` has lifetimes; `new` is the content from the instant `at` on. Rows that ended before
    `oldest` are left out.
    """
    since, until = (old.column(c).to_numpy() for c in (SINCE, UNTIL))
    content = old.drop_columns([SINCE, UNTIL])
    standing = np.flatnonzero(until == AFTER_TIME)
    whole = pa.concat_tables([content.take(pa.array(standing)), new]).combine_chunks()
    codes = row_codes([arrow_vector(whole, n) for n in whole.column_names], whole.num_rows)
    numbered = _numbered(codes[: len(standing)]), _numbered(codes[len(standing) :])
    gone = standing[~np.isin(numbered[0], numbered[1])]
    fresh = np.flatnonzero(~np.isin(numbered[1], numbered[0]))
    if not len(gone) and not len(fresh):
        return None
    until = until.copy()
    until[gone] = np.maximum(at, since[gone])
    kept = np.flatnonzero((until >= oldest) & (until > since))
    parts = [
        _with_lifetimes(content.take(pa.array(kept)), since[kept], until[kept]),
        _with_lifetimes(
            new.take(pa.array(fresh)), np.full(len(fresh), at),
            np.full(len(fresh), AFTER_TIME),
        ),
    ]  # fmt: skip
    return pa.concat_tables(parts).combine_chunks()


def _numbered(codes: Ints) -> Ints:
    """Codes of rows that also distinguish the copies of equal rows."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    copy = np.empty(len(codes), np.int64)
    copy[order] = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
    return codes * _MOST_COPIES + copy


_MOST_COPIES = 1 << 24


def _with_lifetimes(table: pa.Table, since: Ints, until: Ints) -> pa.Table:
    table = table.append_column(SINCE, pa.array(since.astype(np.int64)))
    return table.append_column(UNTIL, pa.array(until.astype(np.int64)))


class VersionedLeaf(KeptLeaf):
    """A table that changes. Where it brings no changes of its own (`follows`), a row meets it as it
    is at the row's instant."""

    def __init__(
        self, ctx: TaskContext, leaf: Leaf, position: int, packs: Sequence[PackMeta], follows: bool
    ) -> None:
        super().__init__(ctx, leaf, -1 if follows else position, packs, Share(), ())

    def _loaded(self, packs: Sequence[PackMeta], state: Sequence[PackMeta]) -> Content:
        table = pa.concat_tables([self.ctx.cache.open(m.name).table for m in packs])
        since, until = (table.column(c).to_numpy() for c in (SINCE, UNTIL))
        # the table appears for a query that starts now; one that has not begun sees nothing
        begin = AFTER_TIME if self.ctx.start is None else self.ctx.start
        return Content(table.combine_chunks(), np.maximum(since, begin), until)

    def _visible(self) -> tuple[Frame, Ints]:
        """Rows that pass the filters; a hint that raises lets a row pass."""
        content = self._content
        shown = np.flatnonzero((content.ends > content.starts) & (content.starts < self.ctx.until))
        frame = self._columns(shown)
        predicates = self.leaf.filters + self.leaf.hints
        if not predicates or not len(shown):
            return frame, shown
        judged = judge(predicates, frame.columns, frame.length, self.ctx)
        kept = judged.passing
        if self.leaf.hints:
            kept = np.sort(np.concatenate([kept, judged.erring]))
        return frame.take(kept), shown[kept]
