"""Windows from Python's arguments."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta

from thalweg.errors import ConfigError, ThalwegError, WindowMisuse
from thalweg.fluent.expressions import Condition, Expression, condition
from thalweg.fluent.literals import literal
from thalweg.lang.durations import parse_duration
from thalweg.lang.syntax import exp
from thalweg.windows.landmark import FromToClause, LandmarkClause
from thalweg.windows.range import RangeClause
from thalweg.windows.rows import RowsClause
from thalweg.windows.session import SessionClause

Duration = str | int | timedelta
"""In words (`"5 min"`), as a timedelta, or in microseconds."""
Moment = str | datetime | date
"""A point in time; text is ISO, and without a zone it is UTC."""


def range_window(span: Duration, slide: Duration | None) -> RangeClause:
    return RangeClause(micros(span), None if slide is None else micros(slide))


def rows_window(rows: int, by: Condition | Iterable[Condition]) -> RowsClause:
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
        raise WindowMisuse(
            f"a row window holds at least one row, not {rows!r}", remedy="write .rows(10)"
        )
    return RowsClause(rows, _columns(by))


def session_window(gap: Duration, by: Condition | Iterable[Condition]) -> SessionClause:
    return SessionClause(micros(gap), _columns(by))


def landmark_window(at: Moment | None, every: Duration | None) -> LandmarkClause:
    if (at is None) == (every is None):
        raise ConfigError(
            "a landmark is a moment, or comes again and again",
            remedy="write .landmark('2026-01-01') or .landmark(every='1 day')",
        )
    if at is not None:
        return LandmarkClause(at=_moment(at))
    return LandmarkClause(every=micros(every or 0))


def between_window(start: Moment, end: Moment) -> FromToClause:
    return FromToClause(_moment(start), _moment(end))


def micros(given: Duration) -> int:
    """A duration in microseconds."""
    kind = type(given).__name__
    try:
        if isinstance(given, bool) or not isinstance(given, str | int | timedelta):
            raise ConfigError(
                f"{given!r} of type {kind} is not a duration",
                remedy="write one such as '5 minutes', a timedelta, or seconds",
            )
        found = parse_duration(given)
    except ThalwegError as error:
        raise WindowMisuse(
            error.message, remedy="write '5 min', '500 ms' or timedelta(hours=1)"
        ) from None
    if found < 0:
        raise WindowMisuse(
            f"{given!r} is less than nothing", remedy="windows look back by themselves"
        )
    return found


def _moment(given: Moment) -> exp.Expr:
    if not isinstance(given, str | datetime | date):
        raise WindowMisuse(
            f"{given!r} is no point in time", remedy="write '2026-01-01 12:00:00' or a datetime"
        )
    return literal(given)


def _columns(by: Condition | Iterable[Condition]) -> tuple[exp.Expr, ...]:
    single = isinstance(by, str | Expression) or not isinstance(by, Iterable)
    return tuple(condition(c) for c in ((by,) if single else by))  # type: ignore[union-attr, arg-type]
