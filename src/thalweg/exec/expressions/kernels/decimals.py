"""Conversion between DECIMAL and other types, rounding half up, always through Arrow's 256-bit
decimals."""

from __future__ import annotations

from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.vector import CAST_FROM_TEXT, OUT_OF_RANGE, Mask
from thalweg.exec.expressions.kernels.printing import to_text
from thalweg.exec.expressions.kernels.registry import Outcome, failing, first_error, truth, whole
from thalweg.plan.types import BIGINT, DOUBLE, TIMESTAMP, DataType, to_arrow

_WIDE = pa.decimal256(76, 37)
_FINEST = Decimal(1).scaleb(-37)
_EXACT = Context(prec=100)
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?$"


def widened(x: pa.Array) -> pa.Array:
    """The decimal type wide enough for any whole number that a DECIMAL has."""
    return x.cast(pa.decimal256(76, x.type.scale))


def _outside(x: pa.Array, digits: int) -> Mask:
    if digits >= 76 - x.type.scale:
        return np.zeros(len(x), np.bool_)
    limit = Decimal(10) ** digits
    return truth(pc.greater_equal(pc.abs(x), pa.scalar(limit, x.type)))


def narrowed(x: pa.Array, target: DataType) -> Outcome:
    """A wide decimal as the wanted type; too many whole digits are an error of the row."""
    rounded = pc.round(x, target.scale, "half_towards_infinity")
    beyond = _outside(rounded, target.precision - target.scale)
    kept = pc.if_else(pa.array(beyond), pa.scalar(None, x.type), rounded)
    return Outcome(kept.cast(to_arrow(target)), failing(beyond, OUT_OF_RANGE))


def to_decimal(x: Any, source: DataType, target: DataType) -> Outcome:
    """Numbers, booleans and timestamps (as seconds) as decimals."""
    if source.is_float:
        finite = np.isfinite(x)
        known = np.where(finite, x, 0).astype(np.float64)  # a FLOAT has the digits of its DOUBLE
        found = parse_decimal(to_text(known, DOUBLE), target, OUT_OF_RANGE)
        return Outcome(found.data, found.errors, finite)
    whole_numbers = pa.array(x.astype(np.int64)).cast(pa.decimal128(19, 0))
    if source == TIMESTAMP:
        buffers = whole_numbers.buffers()
        whole_numbers = pa.Array.from_buffers(pa.decimal128(38, 6), len(x), buffers)
    return narrowed(widened(whole_numbers), target)


def parse_decimal(
    texts: pa.Array, target: DataType, code: int = CAST_FROM_TEXT["DECIMAL"]
) -> Outcome:
    """Text as decimals; the texts are already trimmed."""
    good = truth(pc.match_substring_regex(texts, _NUMBER))
    chosen = pc.if_else(pa.array(good), texts, pa.scalar(None, pa.string()))
    wide, unreadable = _read(chosen)
    found = narrowed(wide, target)
    bad = ~good | unreadable
    errors = np.where(bad, code, 0 if found.errors is None else found.errors)
    return Outcome(found.data, errors.astype(np.uint8) if errors.any() else None)


def _read(texts: pa.Array) -> tuple[pa.Array, Mask]:
    """Text as wide decimals. Arrow fails as a whole: texts that it refuses are parsed one by
    one."""
    try:
        return texts.cast(_WIDE), np.zeros(len(texts), np.bool_)
    except pa.ArrowInvalid:
        values = [_exact(t) for t in texts.to_pylist()]
        bad = np.array([v is None for v in values], np.bool_)
        return pa.array(values, _WIDE), bad & truth(texts.is_valid())


def _exact(text: str | None) -> Decimal | None:
    if text is None:
        return None
    value = Decimal(text)
    return None if abs(value) >= Decimal(10) ** 38 else value.quantize(_FINEST, context=_EXACT)


_DIGITS_OF_SECONDS = 13
"""Times are 64 bits of microseconds: no number of seconds with more whole digits is one."""


def nonzero(x: pa.Array) -> Mask:
    return truth(pc.not_equal(x, pa.scalar(Decimal(0), x.type)))


def to_micros(x: pa.Array) -> Outcome:
    """Seconds as microseconds, towards zero."""
    wide = widened(x)
    beyond = _outside(wide, _DIGITS_OF_SECONDS)
    wide = pc.if_else(pa.array(beyond), pa.scalar(Decimal(0), wide.type), wide)
    cut = pc.round(wide, 6, "towards_zero").cast(pa.decimal128(38, 6))
    buffers = cut.buffers()
    unscaled = pa.Array.from_buffers(pa.decimal128(38, 0), len(cut), buffers, offset=cut.offset)
    found = to_integer(unscaled, BIGINT)
    return Outcome(found.data, first_error([found.errors, failing(beyond, OUT_OF_RANGE)]))


def to_integer(x: pa.Array, target: DataType) -> Outcome:
    """Decimals as integers, towards zero."""
    cut = pc.trunc(widened(x))
    limit = Decimal(2) ** (target.bits - 1)
    low = truth(pc.less(cut, pa.scalar(-limit, cut.type)))
    beyond = low | truth(pc.greater_equal(cut, pa.scalar(limit, cut.type)))
    kept = pc.if_else(pa.array(beyond), pa.scalar(Decimal(0), cut.type), cut)
    dtype = to_arrow(target).to_pandas_dtype()
    return Outcome(whole(kept.cast(pa.int64()), dtype), failing(beyond, OUT_OF_RANGE))
