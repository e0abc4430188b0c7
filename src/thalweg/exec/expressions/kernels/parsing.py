"""Text parsed as values, with Spark's rules of what is well formed.

Times may carry a fixed offset from UTC; zone names such as Europe/Berlin are not accepted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.vector import CAST_FROM_TEXT, Mask, numpy_type
from thalweg.exec.expressions.kernels.calendar import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    days_from_civil,
    exists,
)
from thalweg.exec.expressions.kernels.decimals import parse_decimal
from thalweg.exec.expressions.kernels.registry import Outcome, failing, truth, whole
from thalweg.plan.types import BOOLEAN, DATE, TIMESTAMP, DataType

_BLANKS = "".join(map(chr, range(33))) + "\x7f"
_TRUE = pa.array(["t", "true", "y", "yes", "1"])
_FALSE = pa.array(["f", "false", "n", "no", "0"])
_FLOAT = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?$"
_SPECIAL = r"(?i)^[+-]?(inf|infinity|nan)$"
_DATE = r"(?s)^(?P<y>[+-]?\d{4,7})(?:-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2})(?:[ T].*)?)?)?$"
_ZONE = r" *(?:Z|UTC|GMT|(?:UTC|GMT|UT)?(?P<zs>[+-])(?P<zh>\d{1,2})(?::?(?P<zm>\d{1,2}))?)"
_CLOCK = r"(?P<h>\d{1,2})(?::(?P<mi>\d{1,2})(?::(?P<s>\d{1,2})(?:\.(?P<f>\d*))?"
_TIMESTAMP = (
    r"^(?P<y>[+-]?\d{4,6})(?:-(?P<m>\d{1,2})(?:-(?P<d>\d{1,2})"
    rf"(?:[ T]{_CLOCK}(?:{_ZONE})?)?)?)?)?)?$"
)


def parse(texts: pa.Array, target: DataType) -> Outcome:
    """Trimmed text as the wanted type; malformed text is an error of its row."""
    trimmed = pc.utf8_trim(texts, _BLANKS)
    code = CAST_FROM_TEXT[target.name]
    if target == BOOLEAN:
        return _boolean(trimmed, code)
    if target.is_integer:
        return _integer(trimmed, target, code)
    if target.is_float:
        return _checked_float(trimmed, target, code)
    if target == DATE:
        return _date(trimmed, code)
    if target == TIMESTAMP:
        return _timestamp(trimmed, code)
    return parse_decimal(trimmed, target)


def _only(texts: pa.Array, good: Mask, otherwise: str) -> pa.Array:
    return pc.if_else(pa.array(good), texts, otherwise)


def _boolean(texts: pa.Array, code: int) -> Outcome:
    small = pc.ascii_lower(texts)
    yes, no = truth(pc.is_in(small, _TRUE)), truth(pc.is_in(small, _FALSE))
    return Outcome(yes, failing(~(yes | no), code))


def _integer(texts: pa.Array, target: DataType, code: int) -> Outcome:
    good = truth(pc.match_substring_regex(texts, r"^[+-]?\d+$"))
    digits = pc.replace_substring_regex(texts, r"^[+-]?0*", "")
    good &= whole(pc.utf8_length(digits)) <= 19
    filled = _only(digits, good, "0")
    size = whole(pc.if_else(pc.equal(filled, ""), "0", filled).cast(pa.uint64()), np.uint64)
    negative = truth(pc.starts_with(texts, "-"))
    limit = np.uint64(1 << (target.bits - 1))
    good &= size < limit + negative
    value = size.view(np.int64)
    found = np.where(negative, -value, value).astype(numpy_type(target))
    return Outcome(found, failing(~good, code))


def _checked_float(texts: pa.Array, target: DataType, code: int) -> Outcome:
    good = truth(pc.match_substring_regex(texts, _FLOAT))
    special = truth(pc.match_substring_regex(texts, _SPECIAL))
    bare = pc.if_else(pa.array(special), texts, pc.utf8_rtrim(texts, "fFdD"))
    found = to_float(_only(bare, good | special, "0"), numpy_type(target) or np.float64)
    return Outcome(found, failing(~(good | special), code))


def to_float(texts: pa.Array, dtype: Any) -> Any:
    """Well-formed text as floating point, rounded once."""
    bare = pc.utf8_ltrim(texts, "+").cast(pa.from_numpy_dtype(dtype))
    return pc.fill_null(bare, 0.0).to_numpy(zero_copy_only=False)


def _fields(texts: pa.Array, pattern: str) -> tuple[dict[str, pa.Array], Mask]:
    """The named groups of a match; absent ones are empty."""
    found = pc.extract_regex(texts, pattern)
    names = [found.type.field(i).name for i in range(found.type.num_fields)]
    parts = {n: pc.fill_null(found.field(i), "") for i, n in enumerate(names)}
    return parts, truth(found.is_valid())


def _number(text: pa.Array, absent: int) -> Any:
    filled = pc.if_else(pc.equal(text, ""), str(absent), pc.utf8_ltrim(text, "+"))
    return whole(filled.cast(pa.int64()), np.int64)


def _day(parts: dict[str, pa.Array]) -> tuple[Any, Mask]:
    year, month, day = (_number(parts[n], 1) for n in ("y", "m", "d"))
    good = exists(year, month, day)
    return days_from_civil(year, np.where(good, month, 1), np.where(good, day, 1)), good


def _date(texts: pa.Array, code: int) -> Outcome:
    parts, matched = _fields(texts, _DATE)
    days, good = _day(parts)
    found = days.astype(np.int32)
    return Outcome(found, failing(~(matched & good & (found == days)), code))


def _timestamp(texts: pa.Array, code: int) -> Outcome:
    parts, matched = _fields(texts, _TIMESTAMP)
    days, good = _day(parts)
    hour, minute, second = (_number(parts[n], 0) for n in ("h", "mi", "s"))
    good &= matched & (hour < 24) & (minute < 60) & (second < 60)
    digits = pc.utf8_slice_codeunits(parts["f"], 0, 6)
    fraction = _number(pc.utf8_rpad(digits, 6, "0"), 0)
    offset, known = _offset(parts)
    clock = hour * HOUR + minute * MINUTE + second * SECOND + fraction - offset
    good &= known & (np.abs(days) < np.iinfo(np.int64).max // DAY - 1)
    return Outcome(days * DAY + clock, failing(~good, code))


def _offset(parts: dict[str, pa.Array]) -> tuple[Any, Mask]:
    """Microseconds to subtract for the zone; Java allows up to 18 hours."""
    hours, minutes = _number(parts["zh"], 0), _number(parts["zm"], 0)
    size = hours * HOUR + minutes * MINUTE
    known = (minutes < 60) & (size <= 18 * HOUR)
    return np.where(truth(pc.equal(parts["zs"], "-")), -size, size), known
