"""`[RANGE d]`, `[RANGE d SLIDE s]`, `[NOW]` and `[UNBOUNDED]`: rows of the last so much time.

A range is closed at both ends, as in CQL: `[RANGE d]` keeps a row alive until ts + d, that is, its
end is ts + d + 1 tick. With SLIDE the content changes only at boundaries b = k * s, and holds the
rows with b - d <= ts < b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.errors import WindowMisuse
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints, format_duration
from thalweg.windows.protocol import (
    Expression,
    R,
    TimeWindow,
    WindowBinder,
    WindowCursor,
    WindowKind,
    WindowWriter,
)


@dataclass(frozen=True, slots=True)
class RangeWindow(TimeWindow):
    """The rows of the last `range`; None: all rows. `[NOW]` has range 0."""

    range: int | None
    slide: int | None = None

    @property
    def is_endless(self) -> bool:
        return self.range is None

    @property
    def only_grows(self) -> bool:
        return self.range is None and self.slide is None

    @property
    def longest_stay(self) -> int | None:
        return None if self.range is None else self.range + (self.slide or 0)

    @property
    def has_empty_lifetimes(self) -> bool:
        return self.slide is not None

    def settled(self, last: int) -> int:
        return last if self.slide is None else (last // self.slide + 1) * self.slide

    def boundaries(self, since: int, until: int) -> Ints | None:
        if self.slide is None:
            return None
        first = -(-since // self.slide) * self.slide
        return np.arange(first, until, self.slide, dtype=np.int64)

    def starts(self, ts: Ints) -> Ints:
        return ts if self.slide is None else (ts // self.slide + 1) * self.slide

    def ends(self, ts: Ints) -> Ints:
        if self.range is None:
            return np.full(len(ts), AFTER_TIME, np.int64)
        if self.slide is None:
            return ts + (self.range + 1)
        return ((ts + self.range) // self.slide + 1) * self.slide

    def latest_started(self, instant: Ints) -> Ints:
        return instant if self.slide is None else instant // self.slide * self.slide - 1

    def earliest_alive(self, instant: Ints) -> Ints:
        if self.range is None:
            return np.full_like(instant, BEFORE_TIME)
        if self.slide is None:
            return instant - self.range
        return instant // self.slide * self.slide - self.range

    def complete_at(self, since: int) -> int | None:
        return None if self.range is None else since + self.range

    def content(self, rows: Sequence[R], instant: int) -> list[R]:
        if self.slide is None:
            oldest = None if self.range is None else instant - self.range
            return [r for r in rows if oldest is None or oldest <= r.ts]
        boundary = instant // self.slide * self.slide
        oldest = None if self.range is None else boundary - self.range
        return [r for r in rows if r.ts < boundary and (oldest is None or oldest <= r.ts)]

    def changes(self, ts: int) -> Iterator[int]:
        slide = self.slide
        yield ts if slide is None else (ts // slide + 1) * slide
        if self.range is not None:
            last = ts + self.range
            yield last + 1 if slide is None else (last // slide + 1) * slide

    def __str__(self) -> str:
        if self.range is None:
            return "[UNBOUNDED]"
        if self.range == 0 and self.slide is None:
            return "[NOW]"
        slide = "" if self.slide is None else f" SLIDE {format_duration(self.slide)}"
        return f"[RANGE {format_duration(self.range)}{slide}]"


UNBOUNDED = RangeWindow(None)
NOW = RangeWindow(0)


@dataclass(frozen=True, slots=True)
class NowClause:
    def bind(self, binder: WindowBinder) -> RangeWindow:
        return NOW

    def text(self, writer: WindowWriter) -> str:
        return "NOW"


@dataclass(frozen=True, slots=True)
class UnboundedClause:
    def bind(self, binder: WindowBinder) -> RangeWindow:
        return UNBOUNDED

    def text(self, writer: WindowWriter) -> str:
        return "UNBOUNDED"


@dataclass(frozen=True, slots=True)
class RangeClause:
    range: int
    slide: int | None = None

    def bind(self, binder: WindowBinder) -> RangeWindow:
        if self.slide == 0:
            binder.fail(
                WindowMisuse(
                    "a window cannot slide by nothing",
                    remedy="write how far it slides, such as SLIDE 1 SECOND, or leave SLIDE out",
                )
            )
        return RangeWindow(self.range, self.slide)

    def text(self, writer: WindowWriter) -> str:
        slide = "" if self.slide is None else f" SLIDE {writer.duration(self.slide)}"
        return f"RANGE {writer.duration(self.range)}{slide}"


def _now(c: WindowCursor, by: tuple[Expression, ...]) -> NowClause | None:
    return NowClause() if c.word("NOW") else None


def _unbounded(c: WindowCursor, by: tuple[Expression, ...]) -> UnboundedClause | None:
    named = c.word("UNBOUNDED") or c.word("RANGE", "UNBOUNDED") or c.word("ROWS", "UNBOUNDED")
    return UnboundedClause() if named else None


def _range(c: WindowCursor, by: tuple[Expression, ...]) -> RangeClause | None:
    if not c.word("RANGE"):
        return None
    span = c.duration()
    return RangeClause(span, c.duration() if c.word("SLIDE") else None)


KINDS = (
    WindowKind("NOW", _now, ("[NOW]",)),
    WindowKind("UNBOUNDED", _unbounded, ("[UNBOUNDED]",)),
    WindowKind(
        "RANGE d [SLIDE s]", _range,
        ("[RANGE 4 SECONDS]", "[RANGE 6 SECONDS SLIDE 2 SECONDS]",
         "[RANGE 2 SECONDS SLIDE 5 SECONDS]"),
    ),
)  # fmt: skip
