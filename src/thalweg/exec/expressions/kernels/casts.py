"""CAST and TRY_CAST between all types; text and decimals have modules of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.valid_text import not_utf8
from thalweg.columns.vector import BAD_TEXT, OUT_OF_RANGE, nulls, numpy_type
from thalweg.exec.expressions.kernels import decimals, parsing
from thalweg.exec.expressions.kernels.calendar import DAY, SECOND
from thalweg.exec.expressions.kernels.maths import saturated
from thalweg.exec.expressions.kernels.printing import to_text
from thalweg.exec.expressions.kernels.registry import Outcome, failing, strict
from thalweg.exec.expressions.kernels.times import scaled
from thalweg.plan.expr import Call
from thalweg.plan.types import BINARY, BOOLEAN, DATE, NULL, STRING, TIMESTAMP, DataType


@strict("cast")
def _cast(call: Call, x: Any) -> Outcome:
    return convert(x, call.args[0].type, call.type)


@strict("try_cast")
def _try_cast(call: Call, x: Any) -> Outcome:
    found = convert(x, call.args[0].type, call.type)
    if found.errors is None:
        return found
    fits = found.errors == 0
    return Outcome(found.data, valid=fits if found.valid is None else fits & found.valid)


def convert(x: Any, source: DataType, target: DataType) -> Outcome:
    """Convert data to another type; a value that does not fit is an error of its row."""
    if source == NULL:
        return Outcome(nulls(target, len(x)).data)
    if target == STRING:
        return _read(x) if source == BINARY else Outcome(to_text(x, source))
    if source == STRING:
        return Outcome(x.view(pa.binary())) if target == BINARY else parsing.parse(x, target)
    if source.name == "DECIMAL":
        return _from_decimal(x, source, target)
    if target.name == "DECIMAL":
        return decimals.to_decimal(x, source, target)
    if target == BOOLEAN:
        return Outcome(x != 0)
    if target == DATE:
        return Outcome((x // DAY).astype(np.int32))
    if target == TIMESTAMP:
        return _to_timestamp(x, source)
    return _to_number(x, source, target)


def _read(x: pa.Array) -> Outcome:
    """Bytes as text: what is no UTF-8 is an error of its row, so that all text can be read."""
    bad = not_utf8(x)
    if bad is None:
        return Outcome(x.view(pa.string()))
    kept = pc.if_else(pa.array(bad), pa.scalar(b""), x)
    return Outcome(kept.view(pa.string()), failing(bad, BAD_TEXT))


def _from_decimal(x: Any, source: DataType, target: DataType) -> Outcome:
    if target.name == "DECIMAL":
        return decimals.narrowed(decimals.widened(x), target)
    if target == BOOLEAN:
        return Outcome(decimals.nonzero(x))
    if target.is_integer:
        return decimals.to_integer(x, target)
    if target == TIMESTAMP:
        return decimals.to_micros(x)
    return Outcome(parsing.to_float(to_text(x, source), numpy_type(target)))


def _to_timestamp(x: Any, source: DataType) -> Outcome:
    if source == DATE:
        return scaled(x, DAY)
    if x.dtype.kind == "i":
        # Seconds beyond the range saturate at its end, as in Java's TimeUnit.
        ends = np.where(x > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
        found = scaled(x, SECOND)
        return Outcome(
            found.data if found.errors is None else np.where(found.errors, ends, found.data)
        )
    return _float_to_integer(x.astype(np.float64) * SECOND, np.int64)


def _to_number(x: Any, source: DataType, target: DataType) -> Outcome:
    wanted: Any = numpy_type(target)
    if source == TIMESTAMP:
        if target.is_float:
            return Outcome((x / SECOND).astype(wanted))
        x = x // SECOND
    if target.is_float or x.dtype.kind == "b":
        return Outcome(x.astype(wanted))
    return _float_to_integer(x, wanted) if x.dtype.kind == "f" else _narrowed(x, wanted)


def _narrowed(x: Any, wanted: Any) -> Outcome:
    found = x.astype(wanted)
    if found.itemsize >= x.itemsize:
        return Outcome(found)
    return Outcome(found, failing(found != x, OUT_OF_RANGE))


def _float_to_integer(x: Any, wanted: Any) -> Outcome:
    """Towards zero; 2^63 itself passes as the largest BIGINT because it is that bound as DOUBLE."""
    info = np.iinfo(wanted)
    x = x.astype(np.float64)
    inside = (np.floor(x) <= float(info.max)) & (np.ceil(x) >= float(info.min))
    return Outcome(saturated(np.trunc(x)).astype(wanted), failing(~inside, OUT_OF_RANGE))
