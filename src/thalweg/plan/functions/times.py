"""Functions on dates and timestamps; the session's time zone is always UTC."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.expr import Expr
from thalweg.plan.functions.casting import cast, implicit
from thalweg.plan.functions.signature import always, define, make, mismatch, simple
from thalweg.plan.types import BIGINT, DATE, DOUBLE, INT, NULL, STRING, TIMESTAMP, DataType

_OF_DATE = ("year", "month", "dayofmonth", "dayofweek", "dayofyear", "weekofyear", "quarter")
for _name in _OF_DATE:
    simple(_name, [DATE], INT)
for _name in ("hour", "minute", "second"):
    simple(_name, [TIMESTAMP], INT)
PARTS_OF_TIME = {name: name for name in (*_OF_DATE, "hour", "minute", "second")} | {
    "day": "dayofmonth",
    "dow": "dayofweek",
    "doy": "dayofyear",
    "week": "weekofyear",
}
"""What EXTRACT takes out of a time, and the function that does it."""
for _name in ("unix_timestamp", "unix_seconds", "unix_millis", "unix_micros"):
    simple(_name, [TIMESTAMP], BIGINT)

simple("timestamp_micros", [BIGINT], TIMESTAMP)
simple("timestamp_millis", [BIGINT], TIMESTAMP, raises=always)
simple("date_trunc", [STRING, TIMESTAMP], TIMESTAMP, nullable=True, raises=always)
simple("date_add", [DATE, INT], DATE, raises=always)
simple("date_sub", [DATE, INT], DATE, raises=always)
simple("datediff", [DATE, DATE], INT, raises=always)
simple("make_date", [INT, INT, INT], DATE, raises=always)


@define("timestamp_seconds", usage="timestamp_seconds(number)", raises=always)
def _timestamp_seconds(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 1 or not (args[0].type.is_numeric or args[0].type in (NULL, STRING)):
        raise mismatch(name, args)
    wanted = BIGINT if args[0].type.is_integer else DOUBLE
    return make(name, TIMESTAMP, [cast(args[0], wanted)])


@define("from_unixtime", usage="from_unixtime(seconds)", raises=always)
def _from_unixtime(name: str, args: Sequence[Expr]) -> Expr:
    seconds = implicit(args[0], BIGINT) if len(args) == 1 else None
    if seconds is None:
        raise mismatch(name, args)
    return cast(make("timestamp_seconds", TIMESTAMP, [seconds]), STRING)


def _conversion(name: str, args: Sequence[Expr], target: DataType) -> Expr:
    allowed = (STRING, DATE, TIMESTAMP, NULL)
    if len(args) != 1 or args[0].type not in allowed:
        raise mismatch(name, args)
    return cast(args[0], target)


@define("to_date", usage="to_date(STRING or TIMESTAMP); formats other than ISO are not read")
def _to_date(name: str, args: Sequence[Expr]) -> Expr:
    return _conversion(name, args, DATE)


@define("to_timestamp", usage="to_timestamp(STRING or DATE); formats other than ISO are not read")
def _to_timestamp(name: str, args: Sequence[Expr]) -> Expr:
    return _conversion(name, args, TIMESTAMP)
