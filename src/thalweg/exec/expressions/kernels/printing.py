"""Values formatted as text, the way Java and Spark print them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.exec.expressions.kernels.calendar import DAY, HOUR, MINUTE, SECOND, civil
from thalweg.plan.types import BINARY, BOOLEAN, DATE, TIMESTAMP, DataType

_TWO_DIGITS = pa.array([f"{n:02d}" for n in range(100)])
_BOOLEANS = pa.array(["false", "true"])


def to_text(x: Any, source: DataType) -> pa.Array:
    if source == BINARY:
        return x.view(pa.string())
    if source == BOOLEAN:
        return _BOOLEANS.take(pa.array(x.astype(np.int8)))
    if source == DATE:
        return _date(x)
    if source == TIMESTAMP:
        return _timestamp(x)
    if source.name == "DECIMAL":
        return _decimal(x, source.scale)
    return _float(x) if source.is_float else pa.array(x).cast(pa.string())


def _joined(separator: str, *parts: Any) -> pa.Array:
    return pc.binary_join_element_wise(*parts, separator)


def _two(x: Any) -> pa.Array:
    return _TWO_DIGITS.take(pa.array(x))


def _date(days: Any) -> pa.Array:
    year, month, day = civil(days)
    digits = pc.utf8_lpad(pa.array(np.abs(year)).cast(pa.string()), 4, "0")
    if len(year) and (year.min() < 0 or year.max() > 9999):
        sign = pa.array(["", "+", "-"]).take(pa.array(np.where(year < 0, 2, year > 9999)))
        digits = _joined("", sign, digits)
    return _joined("-", digits, _two(month), _two(day))


def _timestamp(micros: Any) -> pa.Array:
    hour, minute, second = micros // HOUR % 24, micros // MINUTE % 60, micros // SECOND % 60
    clock = _joined(":", _two(hour), _two(minute), _two(second))
    text = _joined(" ", _date(micros // DAY), clock)
    rest = micros % SECOND
    if not rest.any():
        return text
    digits = pc.utf8_lpad(pa.array(rest).cast(pa.string()), 6, "0")
    fraction = pc.utf8_rtrim(_joined("", pa.scalar("."), digits), "0")
    return _joined("", text, pc.utf8_rtrim(fraction, "."))


def _decimal(x: pa.Array, scale: int) -> pa.Array:
    """Plain digits, never an exponent: the unscaled integer with a point put in."""
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), len(x), x.buffers(), offset=x.offset)
    text = unscaled.cast(pa.string())
    if scale <= 0:
        return text
    negative = pc.starts_with(text, "-")
    digits = pc.utf8_lpad(pc.utf8_ltrim(text, "-"), scale + 1, "0")
    sign = pc.if_else(negative, "-", "")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    return _joined("", sign, whole, pa.scalar("."), fraction)


def _float(x: Any) -> pa.Array:
    """Plain from 0.001 to 10 million, otherwise with an exponent: 1.0E7, 1.0E-4."""
    size = np.abs(x)
    plain = ((size >= 1e-3) & (size < 1e7)) | (x == 0)
    text = pa.array(np.ascontiguousarray(x)).cast(pa.string())
    if plain.all():
        return _pointed(text)
    rows = np.flatnonzero(~plain)
    special = pc.replace_substring(_scientific(text.take(pa.array(rows))), "inf", "Infinity")
    order = np.arange(len(x))
    order[rows] = len(x) + np.arange(len(rows))
    return pa.concat_arrays([_pointed(text), special]).take(pa.array(order))


def _pointed(text: pa.Array) -> pa.Array:
    return pc.if_else(pc.match_substring(text, "."), text, _joined("", text, pa.scalar(".0")))


def _scientific(text: pa.Array) -> pa.Array:
    """`123456789.5` and `1.5e+20` (as Arrow prints) as `1.234567895E8` and `1.5E20`."""
    parts = pc.extract_regex(
        text, r"^(?P<sign>-?)(?P<whole>\d+)\.?(?P<fraction>\d*)(?:e(?P<power>[+-]\d+))?$"
    )
    sign, whole, fraction, power = (parts.field(i) for i in range(4))
    digits = _joined("", whole, fraction)
    leading = pc.utf8_length(digits).to_numpy(zero_copy_only=False)
    bare = pc.utf8_ltrim(digits, "0")
    dropped = leading - pc.utf8_length(bare).to_numpy(zero_copy_only=False)
    given = pc.if_else(pc.equal(pc.utf8_length(power), 0), "0", pc.utf8_ltrim(power, "+"))
    shift = pc.utf8_length(whole).to_numpy(zero_copy_only=False) - 1 - dropped
    exponent = pc.add(given.cast(pa.int64()), pa.array(np.nan_to_num(shift).astype(np.int64)))
    rest = pc.utf8_rtrim(pc.utf8_slice_codeunits(bare, 1), "0")
    rest = pc.if_else(pc.equal(pc.utf8_length(rest), 0), "0", rest)
    mantissa = _joined("", sign, pc.utf8_slice_codeunits(bare, 0, 1), pa.scalar("."), rest)
    printed = _joined("E", mantissa, exponent.cast(pa.string()))
    named = pc.replace_substring(text, "nan", "NaN")
    return pc.if_else(parts.is_valid(), printed, named)
