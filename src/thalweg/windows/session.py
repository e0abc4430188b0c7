"""`[SESSION GAP d]`: rows of a partition no further apart than the gap are a session.

The window holds a whole session at one instant, the first that no further row of it can reach: gap
and one tick after its last row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from thalweg.instants import AFTER_TIME, Ints, format_duration
from thalweg.windows.protocol import (
    Expression,
    OrderedWindow,
    R,
    WindowBinder,
    WindowCursor,
    WindowKind,
    WindowWriter,
    named_partition,
    partition_text,
)


@dataclass(frozen=True, slots=True)
class SessionWindow(OrderedWindow):
    name = "session"
    waits = True
    gap: int
    partition_by: tuple[str, ...] = ()

    def bound(self) -> str:
        return "the rows of open sessions"

    def settled(self, last: int) -> int:
        return last + self.gap + 1

    def emptied(self, last: int) -> int:
        return self.settled(last) + 1

    def lifetimes(self, partition: Ints, ts: Ints, until: int) -> tuple[Ints, Ints]:
        breaks = np.ones(len(ts), np.bool_)
        breaks[1:] = (partition[1:] != partition[:-1]) | (ts[1:] - ts[:-1] > self.gap)
        firsts = np.flatnonzero(breaks)
        last = ts[np.append(firsts[1:], len(ts)) - 1]
        closing = np.where(last + self.gap + 1 < until, last + self.gap + 1, AFTER_TIME)
        starts = closing[np.cumsum(breaks) - 1]
        return starts, starts + 1

    @property
    def reach(self) -> int:
        return self.gap

    def reaching(self, reach: int) -> SessionWindow:
        return replace(self, gap=reach)

    def content(self, rows: Sequence[R], instant: int) -> list[R]:
        rows = [r for r in rows if r.ts < instant]
        if not rows or rows[-1].ts + self.gap + 1 != instant:
            return []
        first = len(rows) - 1
        while first > 0 and rows[first].ts - rows[first - 1].ts <= self.gap:
            first -= 1
        return list(rows[first:])

    def changes(self, ts: int) -> Iterator[int]:
        yield ts + self.gap + 1
        yield ts + self.gap + 2

    def __str__(self) -> str:
        return f"[{named_partition(self.partition_by)}SESSION GAP {format_duration(self.gap)}]"


@dataclass(frozen=True, slots=True)
class SessionClause:
    """Sessions of the partition that is named, or else of what the query groups by."""

    gap: int
    partition_by: tuple[Expression, ...] = ()

    def bind(self, binder: WindowBinder) -> SessionWindow:
        return SessionWindow(self.gap, binder.columns(self.partition_by or binder.grouped()))

    def text(self, writer: WindowWriter) -> str:
        return f"{partition_text(writer, self.partition_by)}SESSION GAP {writer.duration(self.gap)}"


def _session(c: WindowCursor, by: tuple[Expression, ...]) -> SessionClause | None:
    return SessionClause(c.duration(), by) if c.word("SESSION", "GAP") else None


KINDS = (
    WindowKind(
        "SESSION GAP d", _session,
        ("[SESSION GAP 2 SECONDS]", "[PARTITION BY k SESSION GAP 3 SECONDS]"),
        takes_partition=True,
    ),
)  # fmt: skip
