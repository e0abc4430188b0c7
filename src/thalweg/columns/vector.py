"""A column of values of an expression: data, validity, and errors per row.

Fixed-width types live in NumPy arrays, text, binary and decimals in Arrow arrays. The content of
`data` where a row is not valid, or has an error, is undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.plan.expr import Literal
from thalweg.plan.types import (
    INTERVAL,
    LONGEST_TEXT,
    NULL,
    TIMESTAMP,
    DataType,
    of_result,
    to_arrow,
)

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]

DIVISION_BY_ZERO = 1
OVERFLOW = 2
BAD_CAST = 3
OUT_OF_RANGE = 4
BAD_PATTERN = 5
BAD_INDEX = 6
BAD_DATE = 7
USER_FUNCTION = 8
USER_RESULT = 9
BAD_TEXT = 10
TOO_LONG = 11
CAST_FROM_TEXT = {
    "BOOLEAN": 16,
    "TINYINT": 17,
    "SMALLINT": 18,
    "INT": 19,
    "BIGINT": 20,
    "FLOAT": 21,
    "DOUBLE": 22,
    "DECIMAL": 23,
    "DATE": 24,
    "TIMESTAMP": 25,
}

ERROR_TEXT: dict[int, str] = {
    DIVISION_BY_ZERO: "division by zero",
    OVERFLOW: "integer overflow",
    BAD_CAST: "the value cannot be cast to the wanted type",
    OUT_OF_RANGE: "the value is out of range of the wanted type",
    BAD_PATTERN: "the pattern is not valid",
    BAD_INDEX: "the index must not be 0",
    BAD_DATE: "there is no such date or time",
    USER_FUNCTION: "user function raised",
    BAD_TEXT: "the text is no UTF-8",
    TOO_LONG: f"the text would have more than {LONGEST_TEXT} characters",
    USER_RESULT: "user function returned something else than it declares",
    **{code: f"cannot cast string to {name}" for name, code in CAST_FROM_TEXT.items()},
}

_NUMPY: dict[str, type[np.generic]] = {
    "NULL": np.bool_,
    "BOOLEAN": np.bool_,
    "TINYINT": np.int8,
    "SMALLINT": np.int16,
    "INT": np.int32,
    "BIGINT": np.int64,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
    "DATE": np.int32,
    "TIMESTAMP": np.int64,
    "INTERVAL": np.int64,
}
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_INT64 = np.iinfo(np.int64)


def numpy_type(dtype: DataType) -> type[np.generic] | None:
    """The NumPy type of a vector's data; None where Arrow holds it."""
    return _NUMPY.get(dtype.name)


@dataclass(slots=True)
class Vector:
    """One value per row. `valid` None means no NULL, `errors` None means no error."""

    type: DataType
    data: Any
    valid: Mask | None = None
    errors: Codes | None = None

    def __len__(self) -> int:
        return len(self.data)

    @property
    def usable(self) -> Mask:
        """The rows that hold a value: neither NULL nor an error."""
        mask = np.ones(len(self), np.bool_) if self.valid is None else self.valid
        return mask if self.errors is None else mask & (self.errors == 0)

    def take(self, indices: npt.NDArray[np.int64]) -> Vector:
        """The rows at these positions, in this order."""
        if isinstance(self.data, np.ndarray):
            data: Any = self.data[indices]
        else:
            data = self.data.take(pa.array(indices, pa.int64()))
        return Vector(self.type, data, _pick(self.valid, indices), _pick(self.errors, indices))

    def slice(self, low: int, high: int) -> Vector:
        """The rows in [low, high), without copying."""
        if isinstance(self.data, np.ndarray):
            data: Any = self.data[low:high]
        else:
            data = self.data.slice(low, high - low)
        rows = slice(low, high)
        return Vector(self.type, data, _pick(self.valid, rows), _pick(self.errors, rows))

    def filter(self, mask: Mask) -> Vector:
        """The rows where the mask is true."""
        if isinstance(self.data, np.ndarray):
            data: Any = self.data[mask]
        else:
            data = self.data.filter(pa.array(mask))
        return Vector(self.type, data, _pick(self.valid, mask), _pick(self.errors, mask))

    def stretch(self, length: int) -> Vector:
        """A one-row vector repeated; any other is left as it is."""
        if len(self) == length or len(self) != 1:
            return self
        if isinstance(self.data, np.ndarray):
            data: Any = np.broadcast_to(self.data, length)
        else:
            data = pa.repeat(self.data[0], length)
        return Vector(self.type, data, fit(self.valid, length), fit(self.errors, length))

    def to_arrow(self) -> pa.Array:
        """An Arrow array; rows with an error are NULL in it."""
        arrow = to_arrow(self.type)
        if self.type == NULL:
            return pa.nulls(len(self), arrow)
        usable = None if self.valid is None and self.errors is None else self.usable
        if not isinstance(self.data, np.ndarray):
            return _masked(self.data, usable)
        if self.data.dtype == np.bool_:
            return pa.array(self.data, arrow, mask=None if usable is None else ~usable)
        bitmap = None
        if usable is not None:
            bitmap = pa.py_buffer(np.packbits(usable, bitorder="little"))
        values = pa.py_buffer(np.ascontiguousarray(self.data))
        return pa.Array.from_buffers(arrow, len(self), [bitmap, values])


def _pick(mask: Any, rows: Any) -> Any:
    return None if mask is None else mask[rows]


def fit(mask: Any, length: int) -> Any:
    """A mask or code array of one row expanded to `length` rows."""
    return mask if mask is None or len(mask) == length else np.broadcast_to(mask, length)


def _masked(array: pa.Array, usable: Mask | None) -> pa.Array:
    if usable is None or bool(usable.all()):
        return array
    rows = np.arange(len(array), dtype=np.int64)
    return array.take(pa.array(rows, mask=~usable))


def from_arrow(array: pa.Array | pa.ChunkedArray, dtype: DataType) -> Vector:
    """The vector of an Arrow column, without copying where the layouts agree."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if dtype == NULL:
        return nulls(NULL, len(array))
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if dtype == TIMESTAMP and pa.types.is_timestamp(array.type):
        return _from_units(array, dtype, valid)
    if dtype == INTERVAL and pa.types.is_duration(array.type):
        return _from_units(array, dtype, valid)
    if array.type != to_arrow(dtype):
        array = array.cast(to_arrow(dtype))
    wanted = numpy_type(dtype)
    if wanted is None:
        return Vector(dtype, array, valid)
    if wanted is np.bool_:
        filled = array.fill_null(False) if array.null_count else array
        return Vector(dtype, filled.to_numpy(zero_copy_only=False), valid)
    return Vector(dtype, _values(array, wanted), valid)


def _values(array: pa.Array, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """The value buffer of a fixed-width array, NULL slots included."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype)
    size = np.dtype(dtype).itemsize
    return np.frombuffer(buffer, dtype, count=len(array), offset=array.offset * size)


def _from_units(array: pa.Array, dtype: DataType, valid: Mask | None) -> Vector:
    """Time of any unit as microseconds; what does not fit becomes an error of its row."""
    ticks = _values(array, np.int64)
    if array.type.unit == "us":
        return Vector(dtype, ticks, valid)
    if array.type.unit == "ns":
        return Vector(dtype, np.floor_divide(ticks, 1000), valid)
    factor = _UNITS[array.type.unit]
    beyond = (ticks > _INT64.max // factor) | (ticks < -(_INT64.max // factor))
    if valid is not None:
        beyond &= valid
    errors = np.where(beyond, OUT_OF_RANGE, 0).astype(np.uint8) if beyond.any() else None
    with np.errstate(over="ignore"):
        return Vector(dtype, ticks * factor, valid, errors)


def nulls(dtype: DataType, length: int) -> Vector:
    """A vector of NULLs."""
    valid = np.zeros(length, np.bool_)
    wanted = numpy_type(dtype)
    if wanted is None:
        return Vector(dtype, pa.nulls(length, to_arrow(dtype)), valid)
    return Vector(dtype, np.zeros(length, wanted), valid)


def constant(literal: Literal, length: int) -> Vector:
    """The literal on every row."""
    if literal.value is None:
        return nulls(literal.type, length)
    wanted = numpy_type(literal.type)
    if wanted is None:
        return Vector(
            literal.type, pa.repeat(pa.scalar(literal.value, to_arrow(literal.type)), length)
        )
    return Vector(literal.type, np.broadcast_to(np.array([literal.value], wanted), length))


def arrow_vector(table: pa.Table, name: str) -> Vector:
    """A column of a table by its own type."""
    return from_arrow(table.column(name), of_result(table.schema.field(name).type))


def concat(vectors: Sequence[Vector]) -> Vector:
    """Vectors of one type end to end."""
    first = vectors[0]
    if len(vectors) == 1:
        return first
    if isinstance(first.data, np.ndarray):
        data: Any = np.concatenate([v.data for v in vectors])
    else:
        data = pa.concat_arrays([v.data for v in vectors])
    return Vector(first.type, data, _joined_valid(vectors), _joined_errors(vectors))


def _joined_valid(vectors: Sequence[Vector]) -> Mask | None:
    if all(v.valid is None for v in vectors):
        return None
    parts = [np.ones(len(v), np.bool_) if v.valid is None else v.valid for v in vectors]
    return np.concatenate(parts)


def _joined_errors(vectors: Sequence[Vector]) -> Codes | None:
    if all(v.errors is None for v in vectors):
        return None
    parts = [np.zeros(len(v), np.uint8) if v.errors is None else v.errors for v in vectors]
    return np.concatenate(parts)
