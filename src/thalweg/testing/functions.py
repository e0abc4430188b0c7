"""What the scalar functions of the language give by definition, on values that are not NULL.

Values are Python's, as in `scalar`; a function is called with the call, for its types, and its
arguments. What Spark would raise is a `RowError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.plan.expr import Call
from thalweg.plan.types import LONGEST_TEXT
from thalweg.testing.casts import DIVISION_BY_ZERO, SECOND, RowError, civil, days_from_civil

# -- numbers


def _double(function: Callable[..., Any]) -> Callable[..., float]:
    def value(call: Call, *values: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*(np.array([v], np.float64) for v in values))[0])

    return value


def _logarithm(function: Callable[..., Any]) -> Callable[..., float | None]:
    """NULL where there is none: at and below zero."""
    logarithm = _double(function)
    return lambda call, *values: None if any(v <= 0 for v in values) else logarithm(call, *values)


def _power(call: Call, base: float, exponent: float) -> float:
    if math.isnan(exponent) or (abs(base) == 1 and math.isinf(exponent)):
        return math.nan  # Java's, where IEEE says 1
    return _double(np.power)(call, base, exponent)


def _pmod(call: Call, a: Any, b: Any) -> Any:
    if b == 0:
        raise RowError(DIVISION_BY_ZERO)
    rest = _remainder(a, b)
    return _remainder(_wrapped(call, rest + b), b) if rest < 0 else rest


def _wrapped(call: Call, value: Any) -> Any:
    """Java's integers wrap around at the ends of their range."""
    if not call.type.is_integer:
        return value
    size = 1 << call.type.bits
    return (value + size // 2) % size - size // 2


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        return math.nan if math.isinf(a) else math.fmod(a, b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


# -- text; positions count characters from 1


def _left(call: Call, text: str, count: int) -> str:
    return text[: max(count, 0)]


def _right(call: Call, text: str, count: int) -> str:
    return text[max(len(text) - count, 0) :] if count > 0 else ""


def _pad(left: bool) -> Callable[..., str]:
    def padded(call: Call, text: str, width: int, pad: str = " ") -> str:
        if width <= len(text) or not pad:
            return text[: max(width, 0)]
        if width > LONGEST_TEXT:
            raise RowError("too long")
        missing = width - len(text)
        padding = (pad * missing)[:missing]
        return padding + text if left else text + padding

    return padded


def _repeat(call: Call, text: str, count: int) -> str:
    if len(text) * count > LONGEST_TEXT:
        raise RowError("too long")
    return text * count


def _locate(call: Call, wanted: str, text: str, start: int = 1) -> int:
    return text.find(wanted, start - 1) + 1 if wanted and start > 0 else int(start > 0)


def _initcap(call: Call, text: str) -> str:
    return " ".join(word[:1].title() + word[1:].lower() for word in text.split(" "))


def _rlike(call: Call, text: str, pattern: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        raise RowError("bad pattern") from None


def _split_part(call: Call, text: str, separator: str, part: int) -> str:
    if part == 0:
        raise RowError("bad index")
    parts = text.split(separator) if separator else [text]
    at = part - 1 if part > 0 else len(parts) + part
    return parts[at] if 0 <= at < len(parts) else ""


# -- dates and times


def _day_of_year(days: int) -> int:
    return days - days_from_civil(civil(days)[0], 1, 1) + 1


def _week_of_year(days: int) -> int:
    """The week belongs to the year of its Thursday."""
    return (_day_of_year(days - (days + 3) % 7 + 3) - 1) // 7 + 1


def _make_date(call: Call, year: int, month: int, day: int) -> int:
    days = days_from_civil(year, 1, 1)
    if 1 <= month <= 12 and 1 <= day <= 31:
        days = days_from_civil(year, month, day)
    if civil(days) != (year, month, day):
        raise RowError("no such date")
    return days


def _timestamp_seconds(call: Call, seconds: Any) -> int | None:
    if not isinstance(seconds, float):
        return int(seconds * SECOND)
    if not math.isfinite(seconds):
        return None
    return min(max(int(seconds * SECOND), -(1 << 63)), (1 << 63) - 1)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "atan": _double(np.arctan),
    "atan2": _double(lambda y, x: np.arctan2(y + 0.0, x + 0.0)),
    "cbrt": _double(np.cbrt),
    "cos": _double(np.cos),
    "degrees": _double(np.degrees),
    "exp": _double(np.exp),
    "ln": _logarithm(np.log),
    "log": _logarithm(lambda base, x: np.log(x) / np.log(base)),
    "log10": _logarithm(np.log10),
    "log2": _logarithm(np.log2),
    "pmod": _pmod,
    "power": _power,
    "radians": _double(np.radians),
    "sign": lambda call, x: x if x == 0 or math.isnan(x) else math.copysign(1.0, x),
    "sin": _double(np.sin),
    "tan": _double(np.tan),
    "~": lambda call, a: ~a,
    "ascii": lambda call, text: ord(text[0]) if text else 0,
    "contains": lambda call, text, part: part in text,
    "endswith": lambda call, text, part: text.endswith(part),
    "initcap": _initcap,
    "instr": lambda call, text, part: text.find(part) + 1,
    "left": _left,
    "locate": _locate,
    "lpad": _pad(left=True),
    "ltrim": lambda call, text, signs=" ": text.lstrip(signs),
    "repeat": _repeat,
    "replace": lambda call, text, old, new="": text.replace(old, new) if old else text,
    "reverse": lambda call, text: text[::-1],
    "right": _right,
    "rlike": _rlike,
    "rpad": _pad(left=False),
    "rtrim": lambda call, text, signs=" ": text.rstrip(signs),
    "split_part": _split_part,
    "startswith": lambda call, text, part: text.startswith(part),
    "date_add": lambda call, days, more: days + more,
    "date_sub": lambda call, days, fewer: days - fewer,
    "datediff": lambda call, end, start: end - start,
    "dayofweek": lambda call, days: (days + 4) % 7 + 1,
    "dayofyear": lambda call, days: _day_of_year(days),
    "make_date": _make_date,
    "quarter": lambda call, days: (civil(days)[1] + 2) // 3,
    "timestamp_micros": lambda call, micros: micros,
    "timestamp_millis": lambda call, millis: millis * 1_000,
    "timestamp_seconds": _timestamp_seconds,
    "unix_micros": lambda call, micros: micros,
    "unix_millis": lambda call, micros: micros // 1_000,
    "unix_seconds": lambda call, micros: micros // SECOND,
    "unix_timestamp": lambda call, micros: int(math.copysign(1, micros)) * (abs(micros) // SECOND),
    "weekofyear": lambda call, days: _week_of_year(days),
}
"""The functions that fail or are NULL beside a failure or a NULL."""


def concat_ws(separator: str | None, *parts: str | None) -> str | None:
    return None if separator is None else separator.join(p for p in parts if p is not None)


SEES_NULL: dict[str, Callable[..., Any]] = {
    "isnan": lambda value: value is not None and math.isnan(value),
    "concat_ws": concat_ws,
}
