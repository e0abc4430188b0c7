"""`[LANDMARK t]`, `[LANDMARK EVERY d]` and `[FROM t TO u]`: rows since a fixed instant.

LANDMARK t and FROM t TO u take in rows from t on (up to u) and never lose them; LANDMARK EVERY d
holds what has arrived since the last multiple of d.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from thalweg.errors import WindowMisuse
from thalweg.instants import AFTER_TIME, Ints, format_duration, format_instant
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
class LandmarkWindow(TimeWindow):
    """The rows with since <= ts (<= until)."""

    since: int = field()
    until: int | None = None

    @property
    def is_endless(self) -> bool:
        return True

    @property
    def only_grows(self) -> bool:
        return True

    def starts(self, ts: Ints) -> Ints:
        return ts

    def ends(self, ts: Ints) -> Ints:
        return np.full(len(ts), AFTER_TIME, np.int64)

    def latest_started(self, instant: Ints) -> Ints:
        return instant if self.until is None else np.minimum(instant, self.until)

    def earliest_alive(self, instant: Ints) -> Ints:
        return np.full_like(instant, self.since)

    def content(self, rows: Sequence[R], instant: int) -> list[R]:
        last = instant if self.until is None else self.until
        return [r for r in rows if self.since <= r.ts <= last]

    def changes(self, ts: int) -> Iterator[int]:
        yield ts

    def __str__(self) -> str:
        if self.until is None:
            return f"[LANDMARK {format_instant(self.since)}]"
        return f"[FROM {format_instant(self.since)} TO {format_instant(self.until)}]"


@dataclass(frozen=True, slots=True)
class LandmarkEveryWindow(TimeWindow):
    """The rows since the last multiple of `every`."""

    every: int

    @property
    def longest_stay(self) -> int | None:
        return self.every

    def starts(self, ts: Ints) -> Ints:
        return ts

    def ends(self, ts: Ints) -> Ints:
        return (ts // self.every + 1) * self.every

    def latest_started(self, instant: Ints) -> Ints:
        return instant

    def earliest_alive(self, instant: Ints) -> Ints:
        return instant // self.every * self.every

    def content(self, rows: Sequence[R], instant: int) -> list[R]:
        landmark = instant // self.every * self.every
        return [r for r in rows if landmark <= r.ts]

    def changes(self, ts: int) -> Iterator[int]:
        yield ts
        yield (ts // self.every + 1) * self.every

    def __str__(self) -> str:
        return f"[LANDMARK EVERY {format_duration(self.every)}]"


@dataclass(frozen=True, slots=True)
class LandmarkClause:
    """Since a fixed instant, or since the last multiple of `every`."""

    at: Expression | None = None
    every: int | None = None

    def bind(self, binder: WindowBinder) -> LandmarkWindow | LandmarkEveryWindow:
        if self.at is not None:
            return LandmarkWindow(binder.instant(self.at))
        if not self.every:
            binder.fail(
                WindowMisuse(
                    "landmarks need a distance", remedy="write one such as [LANDMARK EVERY 1 DAY]"
                )
            )
        return LandmarkEveryWindow(self.every)

    def text(self, writer: WindowWriter) -> str:
        if self.at is not None:
            return f"LANDMARK {writer.expression(self.at)}"
        return f"LANDMARK EVERY {writer.duration(self.every or 0)}"


@dataclass(frozen=True, slots=True)
class FromToClause:
    start: Expression
    end: Expression

    def bind(self, binder: WindowBinder) -> LandmarkWindow:
        since, until = binder.instant(self.start), binder.instant(self.end)
        if until < since:
            binder.fail(
                WindowMisuse(
                    "the window ends before it begins",
                    remedy="write the earlier instant first: [FROM t TO u]",
                )
            )
        return LandmarkWindow(since, until)

    def text(self, writer: WindowWriter) -> str:
        return f"FROM {writer.expression(self.start)} TO {writer.expression(self.end)}"


def _landmark(c: WindowCursor, by: tuple[Expression, ...]) -> LandmarkClause | None:
    if not c.word("LANDMARK"):
        return None
    if c.word("EVERY"):
        return LandmarkClause(every=c.duration())
    return LandmarkClause(at=c.expression_())


def _from_to(c: WindowCursor, by: tuple[Expression, ...]) -> FromToClause | None:
    if not c.word("FROM"):
        return None
    start = c.expression_()
    c.need("TO")
    return FromToClause(start, c.expression_())


KINDS = (
    WindowKind(
        "LANDMARK t", _landmark,
        ("[LANDMARK '1970-01-01 00:00:03']", "[LANDMARK EVERY 5 SECONDS]"),
    ),
    WindowKind(
        "FROM t TO u", _from_to,
        ("[FROM '1970-01-01 00:00:02' TO TIMESTAMP '1970-01-01 00:00:08']",),
    ),
)  # fmt: skip
