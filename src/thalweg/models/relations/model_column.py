"""`__model`: the functions of time in a row of the answer.

A field has the coefficients of each modeled column, ascending, in seconds since `start`. A quotient
that is no polynomial has NULL there, and its parts in two further fields; of a square root there is
what it is taken of.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Frame
from thalweg.columns.vector import Mask, Vector
from thalweg.models.functions.curve import START, Curve, Curves
from thalweg.models.functions.time_functions import TimeFunctions
from thalweg.models.polynomials import Floats
from thalweg.plan.logical import Field, Schema
from thalweg.plan.types import DOUBLE, TIMESTAMP, DataType, StructType, array_of, struct_of

MODEL = "__model"
_CLOSE = 1e-12
UTC = pa.timestamp("us", "UTC")


def model_field(curves: Curves) -> Schema:
    """The field of the column, if there is anything for it."""
    names = [name for pair in _modeled(curves) for name in _names(*pair)]
    if not names:
        return ()
    parts = [("start", TIMESTAMP), *((name, array_of(DOUBLE)) for name in names)]
    return (Field(MODEL, struct_of(*parts), False),)


def _modeled(curves: Curves) -> list[tuple[str, Curve]]:
    return [(n, c) for n, c in curves if not c.is_instant]


def _names(name: str, curve: Curve) -> Iterator[str]:
    shown = f"{name}_squared" if curve.is_root else name
    yield shown
    if curve.divisor:
        yield f"{shown}_numerator"
        yield f"{shown}_divisor"


def models_of(frame: Frame, curves: Curves, dtype: DataType) -> Vector:
    parts = [pa.array(np.asarray(frame.columns[START].data), UTC)]
    for _, curve in _modeled(curves):
        top, valid = _stacked(frame, curve.coefficients)
        if not curve.divisor:
            parts.append(_arrays(top, valid))
            continue
        bottom, _ = _stacked(frame, curve.divisor)
        found, exact = divided(top, bottom)
        parts += [
            _arrays(found, valid & exact),
            _arrays(top, valid & ~exact),
            _arrays(bottom, valid & ~exact),
        ]
    assert isinstance(dtype, StructType)
    return Vector(dtype, pa.StructArray.from_arrays(parts, [name for name, _ in dtype.fields]))


def divided(top: Floats, bottom: Floats) -> tuple[Floats, Mask]:
    """Quotients of polynomials row by row, and which of them are polynomials."""
    degree = np.where(bottom != 0, np.arange(bottom.shape[1]), 0).max(axis=1)
    found, rest = np.zeros_like(top), top.copy()
    rows = np.arange(len(top))
    with np.errstate(all="ignore"):
        for power in range(top.shape[1] - 1, -1, -1):
            at = power + degree
            inside = at < top.shape[1]
            place = np.where(inside, at, 0)
            share = np.where(inside, rest[rows, place] / bottom[rows, degree], 0.0)
            found[:, power] = share
            for lower in range(min(bottom.shape[1], top.shape[1] - power)):
                used = inside & (lower <= degree)
                rest[rows[used], power + lower] -= (share * bottom[:, lower])[used]
            rest[rows[inside], place[inside]] = 0.0
        left = np.abs(rest).max(axis=1, initial=0.0)
        size = np.abs(top).max(axis=1, initial=0.0)
        exact: Mask = np.isfinite(found).all(axis=1) & (left <= _CLOSE * size)
    return found, exact


def _stacked(frame: Frame, names: tuple[str, ...]) -> tuple[Floats, Mask]:
    values = np.stack([np.asarray(frame.columns[n].data) for n in names], axis=1)
    valid = frame.columns[names[0]].valid
    return values, np.ones(frame.length, np.bool_) if valid is None else valid


def _arrays(values: Floats, valid: Mask) -> pa.Array:
    offsets = np.arange(0, values.size + 1, values.shape[1], dtype=np.int32)
    arrays = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))
    return arrays if valid.all() else arrays.take(pa.array(np.arange(len(valid)), mask=~valid))


# -- answers at an instant -------------------------------------------------------------------------


def values_at(rows: pa.Table, curves: Curves, instant: int) -> pa.Table:
    """Rows of an answer, modeled columns with their values at an instant."""
    for name, curve in curves:
        at = np.full(rows.num_rows, instant)
        values = pa.array(at, UTC) if curve.is_instant else _values(rows, name, curve, at)
        rows = rows.set_column(rows.column_names.index(name), name, values)
    return rows


def _values(rows: pa.Table, name: str, curve: Curve, at: np.ndarray) -> pa.Array:
    structs = rows.column(MODEL).combine_chunks()
    start = structs.field("start").cast(pa.int64()).to_numpy()
    names = list(_names(name, curve))
    width = len(curve.coefficients)
    found = TimeFunctions(_part(structs, names[0], width), start).at(at)
    if curve.divisor:
        top = _part(structs, names[1], width)
        bottom = _part(structs, names[2], len(curve.divisor))
        found = np.where(np.isnan(found), TimeFunctions(top, start, bottom).at(at), found)
    if curve.is_root:
        found = np.sqrt(np.maximum(found, 0.0))
    return pa.array(found, mask=np.isnan(found))


def _part(structs: pa.StructArray, name: str, width: int) -> Floats:
    lists = structs.field(name)
    found = np.full((len(lists), width), np.nan)
    there = lists.is_valid().to_numpy(zero_copy_only=False)
    found[there] = lists.flatten().to_numpy().reshape(-1, width)
    return found
