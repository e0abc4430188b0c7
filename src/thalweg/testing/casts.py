"""Conversions between SQL types for the scalar evaluator, by Spark's ANSI rules in UTC.

`fit` brings a computed value into its result type, `cast` converts between types. Both raise
`RowError` where Spark would raise.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np

from thalweg.plan.types import DataType

OVERFLOW = "overflow"
DIVISION_BY_ZERO = "division by zero"
BAD_CAST = "bad cast"

SECOND = 1_000_000
DAY = 86_400 * SECOND
WIDE = Context(prec=200, rounding=ROUND_HALF_UP)

_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_MOMENT = re.compile(
    r"([+-]?[0-9]{4,6})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,9}))?)?"
    r"\s*(Z|UTC|[+-][0-9]{1,2}:[0-9]{2})?)?"
)
_BLANKS = "".join(map(chr, range(33))) + "\x7f"
"""What Spark trims before it reads a value: blanks and control characters."""
_TRUE = {"t", "true", "y", "yes", "1"}
_FALSE = {"f", "false", "n", "no", "0"}


class RowError(Exception):
    """One row's expression has no value; the query goes on without the row."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def fit(value: Any, dtype: DataType) -> Any:
    """A computed value in its result type: range checked, rounded to its precision."""
    if value is None:
        return None
    if dtype.is_integer:
        return _in_bits(value, dtype.bits)
    if dtype.name in ("TIMESTAMP", "INTERVAL"):
        return _in_bits(value, 64)
    if dtype.name == "DATE":
        return _in_bits(value, 32)
    if dtype.name == "DOUBLE":
        return float(value)
    if dtype.name == "FLOAT":
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    if dtype.name == "DECIMAL":
        return _in_decimal(Decimal(value), dtype)
    return value


def _in_bits(value: int, bits: int) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise RowError(OVERFLOW)
    return value


def _in_decimal(value: Decimal, dtype: DataType) -> Decimal:
    if abs(value) > Decimal(10) ** 40:
        raise RowError(OVERFLOW)
    rounded = value.quantize(Decimal(1).scaleb(-dtype.scale), context=WIDE)
    if abs(rounded) >= Decimal(10) ** (dtype.precision - dtype.scale):
        raise RowError(OVERFLOW)
    return rounded


def cast(value: Any, source: DataType, target: DataType) -> Any:
    """`CAST(value AS target)` of a value of type `source`."""
    if value is None or source == target:
        return value
    if target.name == "STRING":
        return _to_string(value, source)
    if source.name == "STRING":
        return _from_string(value.strip(_BLANKS), value, target)
    if target.name == "BOOLEAN" and source.is_numeric:
        return value != 0
    if source.name == "BOOLEAN":
        value = int(value)
    if target.is_numeric:
        return _to_number(value, source, target)
    return _to_time(value, source, target)


def _to_number(value: Any, source: DataType, target: DataType) -> Any:
    if source.name == "TIMESTAMP":
        value = value // SECOND if target.is_integer else _seconds(value, target)
    elif not source.is_numeric and source.name != "BOOLEAN":
        raise RowError(BAD_CAST)
    if isinstance(value, float) and not target.is_float:
        if not math.isfinite(value):
            if target.name == "DECIMAL":
                return None
            raise RowError(OVERFLOW)
        value = int(value) if target.is_integer else Decimal(repr(value))
    if isinstance(value, Decimal) and target.is_integer:
        value = int(value)
    return fit(value, target)


def _seconds(micros: int, target: DataType) -> float | Decimal:
    return micros / SECOND if target.is_float else Decimal(micros) / SECOND


def _to_time(value: Any, source: DataType, target: DataType) -> int:
    if (source.name, target.name) == ("TIMESTAMP", "DATE"):
        return int(value // DAY)
    if (source.name, target.name) == ("DATE", "TIMESTAMP"):
        return int(fit(value * DAY, target))
    if target.name != "TIMESTAMP" or not source.is_numeric:
        raise RowError(BAD_CAST)
    if isinstance(value, float) and not math.isfinite(value):
        raise RowError(OVERFLOW)
    if source.is_integer:  # saturated, as in Java's TimeUnit
        return min(max(int(value) * SECOND, -(1 << 63)), (1 << 63) - 1)
    return int(fit(int(value * SECOND), target))


def _from_string(text: str, raw: str, target: DataType) -> Any:
    if target.name == "BINARY":
        return raw.encode()
    if target.is_integer:
        if not _INT.fullmatch(text):
            raise RowError(BAD_CAST)
        return _or_bad_cast(int(text), target)
    if target.is_float:
        return fit(_parse_float(text), target)
    if target.name == "DECIMAL":
        return _or_bad_cast(_parse_decimal(text), target)
    if target.name == "BOOLEAN" and text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    if target.name == "DATE":
        return fit(_parse_moment(re.split("[ T]", text, maxsplit=1)[0]) // DAY, target)
    if target.name == "TIMESTAMP":
        return fit(_parse_moment(text), target)
    raise RowError(BAD_CAST)


def _or_bad_cast(value: Any, target: DataType) -> Any:
    """A number in a string that is too large for its type is an ill-formed string to Spark."""
    try:
        return fit(value, target)
    except RowError:
        raise RowError(BAD_CAST) from None


def _parse_float(text: str) -> float:
    sign, word = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if word.lower() in _SPECIAL:
        return sign * _SPECIAL[word.lower()]
    if not _FLOAT.fullmatch(text):
        raise RowError(BAD_CAST)
    return float(text.rstrip("dDfF"))


def _parse_decimal(text: str) -> Decimal:
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise RowError(BAD_CAST) from None
    if not value.is_finite() or "_" in text:
        raise RowError(BAD_CAST)
    return value


def _parse_moment(text: str) -> int:
    found = _MOMENT.fullmatch(text)
    if not found:
        raise RowError(BAD_CAST)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    days = days_from_civil(int(year), int(month or 1), int(day or 1))
    clock = (int(hour or 0), int(minute or 0), int(second or 0))
    valid_date = civil(days) == (int(year), int(month or 1), int(day or 1))
    if not valid_date or clock[0] > 23 or clock[1] > 59 or clock[2] > 59:
        raise RowError(BAD_CAST)
    seconds = clock[0] * 3600 + clock[1] * 60 + clock[2] - _offset(zone)
    return days * DAY + seconds * SECOND + int((fraction or "0")[:6].ljust(6, "0"))


def _offset(zone: str | None) -> int:
    if zone in (None, "Z", "UTC"):
        return 0
    assert zone is not None
    hours, minutes = zone[1:].split(":")
    return (-1 if zone[0] == "-" else 1) * (int(hours) * 3600 + int(minutes) * 60)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970 in the proleptic Gregorian calendar; months and days may be out of range."""
    months = np.datetime64((year - 1970) * 12 + month - 1, "M")
    return int(months.astype("datetime64[D]").astype(np.int64)) + day - 1


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of the month of a day since 1970."""
    months = int(np.datetime64(days, "D").astype("datetime64[M]").astype(np.int64))
    year, month = 1970 + months // 12, months % 12 + 1
    return year, month, days - days_from_civil(year, month, 1) + 1


def _to_string(value: Any, source: DataType) -> str:
    if source.name == "BOOLEAN":
        return "true" if value else "false"
    if source.is_float:
        return _float_text(value, source)
    if source.name == "DECIMAL":
        return format(value, "f")
    if source.name == "BINARY":
        try:
            return str(value.decode())
        except UnicodeDecodeError:
            raise RowError(BAD_CAST) from None
    if source.name == "DATE":
        return _date_text(value)
    if source.name == "TIMESTAMP":
        return _moment_text(value)
    if source.name == "INTERVAL":
        raise RowError(BAD_CAST)
    return str(value)


def _date_text(days: int) -> str:
    year, month, day = civil(days)
    return f"{'+' if year > 9999 else ''}{year:04d}-{month:02d}-{day:02d}"


def _moment_text(micros: int) -> str:
    seconds, fraction = divmod(micros % DAY, SECOND)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{_date_text(micros // DAY)} {clock}{tail}"


def _float_text(value: float, source: DataType) -> str:
    """The shortest digits that read back alike, laid out as Java does."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else "Infinity"
    typed = np.float32(value) if source.name == "FLOAT" else np.float64(value)
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(typed, unique=True, trim="0")
    mantissa, exponent = np.format_float_scientific(typed, unique=True, trim="0").split("e")
    return f"{mantissa}E{int(exponent)}"
