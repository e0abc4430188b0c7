"""Casts between types: explicit ones, implicit ones, and the common type of several.

The rules are those of Spark 4 in ANSI mode. Casts of constants are folded where the result cannot
depend on anything but the text.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from thalweg.errors import TypeMismatch
from thalweg.plan.expr import Call, Expr, Literal
from thalweg.plan.functions.constant_texts import may_read, remedy_for
from thalweg.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    decimal,
)

_NUMERIC_ORDER = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
_INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_MAX_PRECISION = 38
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?)?")


def cast(expr: Expr, dtype: DataType, *, safe: bool = False) -> Expr:
    """`CAST(expr AS dtype)`, or TRY_CAST when `safe`; the expression itself if nothing changes."""
    if expr.type == dtype:
        return expr
    if not can_cast(expr.type, dtype):
        raise TypeMismatch(
            f"{expr.type} cannot be cast to {dtype}", remedy=_cast_remedy(expr.type, dtype)
        )
    folded = _fold(expr, dtype)
    if folded is not None:
        return folded
    lost = expr.type.is_float and dtype.name == "DECIMAL"  # NaN and infinities become NULL
    nullable = expr.nullable or lost or (safe and cast_raises(expr.type, dtype))
    return Call(dtype, nullable, "try_cast" if safe else "cast", (expr,))


class UnreadableText(TypeMismatch):
    """A constant text where a value of another type is wanted."""


def coerced(expr: Expr, dtype: DataType) -> Expr:
    """The expression in the type that the place it stands in wants; a constant text that reads as
    no value of the type is refused, since every row would be."""
    text = expr.value if isinstance(expr, Literal) and expr.type == STRING else None
    if isinstance(text, str) and can_cast(STRING, dtype) and not may_read(text, dtype):
        raise UnreadableText(f"'{text[:40]}' is no {dtype}", remedy=remedy_for(dtype))
    return cast(expr, dtype)


def _cast_remedy(source: DataType, target: DataType) -> str:
    if DATE in (source, target) and (source.is_numeric or target.is_numeric):
        return "use date_add('1970-01-01', days) or datediff(date, '1970-01-01')"
    if source.element is not None or target.element is not None:
        return "only equal arrays go together; string_agg(x, ', ') gives values as one text"
    if source == INTERVAL:
        return "add the interval to a TIMESTAMP, or subtract and use unix_micros"
    return f"{source} casts to " + ", ".join(_targets(source))


def _targets(source: DataType) -> list[str]:
    pool = (BOOLEAN, BIGINT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP)
    return [t.name for t in pool if t != source and can_cast(source, t)] or ["nothing else"]


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether ANSI SQL has this cast at all; it may still raise for some values."""
    if NULL in (source, target):
        return source == NULL
    if source == target:
        return True
    if INTERVAL in (source, target) or source.element or target.element:
        return False
    if source == STRING or target == STRING:
        return True
    if source.is_numeric:
        return target.is_numeric or target in (BOOLEAN, TIMESTAMP)
    if source == BOOLEAN:
        return target.is_numeric
    if source == TIMESTAMP:
        return target.is_numeric or target == DATE
    return (source, target) == (DATE, TIMESTAMP)


def cast_raises(source: DataType, target: DataType) -> bool:
    """Whether the cast fails for some value of the source type."""
    if source in (target, NULL) or target in (STRING, BINARY, BOOLEAN):
        return (source, target) in ((STRING, BOOLEAN), (BINARY, STRING))
    if target.name == "DECIMAL":
        return not _fits_decimal(source, target)
    if target.is_float:
        return source == STRING
    if source == BOOLEAN or (source, target) == (TIMESTAMP, DATE):
        return False
    if target.is_integer:
        width = 64 if source == TIMESTAMP else source.bits if source.is_integer else 128
        return target.bits < width
    return True


def _fits_decimal(source: DataType, target: DataType) -> bool:
    given = _as_decimal(source)
    if given is None:
        return False
    whole = given.precision - given.scale
    return given.scale <= target.scale and whole <= target.precision - target.scale


def _as_decimal(dtype: DataType) -> DataType | None:
    if dtype.name == "DECIMAL":
        return dtype
    return decimal(_INTEGER_DIGITS[dtype.name], 0) if dtype.is_integer else None


def common_type(types: Iterable[DataType]) -> DataType | None:
    """The type all of these widen to, None if there is none."""
    found: DataType | None = NULL
    for dtype in dict.fromkeys(types):
        found = _wider(found, dtype)
    return found


def _wider(a: DataType | None, b: DataType) -> DataType | None:
    if a is None or b in (a, NULL):
        return a
    if a == NULL:
        return b
    if a.is_numeric and b.is_numeric:
        return _wider_numeric(a, b)
    if {a, b} == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if STRING in (a, b):
        return _from_text(b if a == STRING else a)
    return None  # of arrays there is none but their own type


def _wider_numeric(a: DataType, b: DataType) -> DataType:
    if "DECIMAL" in (a.name, b.name):
        x, y = _as_decimal(a), _as_decimal(b)
        return DOUBLE if x is None or y is None else _wider_decimal(x, y)
    widest = max(a, b, key=lambda t: _NUMERIC_ORDER.index(t.name))
    return DOUBLE if widest.name == "FLOAT" else widest  # FLOAT would lose digits of an integer


def _wider_decimal(a: DataType, b: DataType) -> DataType:
    whole = max(a.precision - a.scale, b.precision - b.scale)
    scale = min(max(a.scale, b.scale), max(_MAX_PRECISION - whole, 0))
    return decimal(min(whole + scale, _MAX_PRECISION), scale)


def _from_text(other: DataType) -> DataType | None:
    if other.is_integer:
        return BIGINT
    if other.is_numeric:
        return DOUBLE
    return None if other == INTERVAL or other.element is not None else other


def implicit(expr: Expr, target: DataType) -> Expr | None:
    """The argument as a function's parameter of type `target`, None if it does not fit."""
    source = expr.type
    if source == target:
        return expr
    fractional = source.is_float or source.name == "DECIMAL"
    if fractional and target.is_integer:
        return None
    fits = (
        source in (NULL, STRING)
        or target == STRING
        or (source.is_numeric and target.is_numeric)
        or {source, target} == {DATE, TIMESTAMP}
    )
    return coerced(expr, target) if fits and can_cast(source, target) else None


def _fold(expr: Expr, dtype: DataType) -> Literal | None:
    if not isinstance(expr, Literal):
        return None
    if expr.value is None:
        return Literal(dtype, True, None)
    value = _folded_value(expr, dtype)
    return None if value is None else Literal(dtype, False, value)


def _folded_value(expr: Literal, dtype: DataType) -> Any:
    value = expr.value
    if expr.type.is_integer and dtype.is_integer:
        limit = 1 << (dtype.bits - 1)
        return value if -limit <= value < limit else None
    if expr.type.is_integer and dtype == DOUBLE:
        return float(value)
    if expr.type == DOUBLE and dtype.name == "FLOAT":
        return _as_float32(value)
    if expr.type == STRING and dtype in (DATE, TIMESTAMP):
        return _folded_time(value, dtype)
    return None


def _as_float32(value: float) -> float | None:
    if math.isnan(value) or abs(value) > 3e38:
        return None
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _folded_time(text: str, dtype: DataType) -> int | None:
    found = _PLAIN_TIME.fullmatch(text.strip(" "))
    if found is None:
        return None
    day, clock, fraction = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00:00'}").replace(tzinfo=UTC)
    except ValueError:
        return None
    if dtype == DATE:
        return (moment - _EPOCH).days
    return (moment - _EPOCH) // timedelta(microseconds=1) + int((fraction or "").ljust(6, "0"))
