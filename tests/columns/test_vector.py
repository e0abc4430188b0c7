"""Columns in and out of Arrow."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from thalweg.columns.vector import OUT_OF_RANGE, Vector, concat, constant, from_arrow, nulls
from thalweg.plan.expr import Literal
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    decimal,
    to_arrow,
)

SAMPLES: list[tuple[DataType, list[object]]] = [
    (BOOLEAN, [True, None, False]),
    (INT, [1, None, -3]),
    (BIGINT, [2**62, None, -(2**62)]),
    (DOUBLE, [1.5, None, float("inf")]),
    (STRING, ["a", None, "ü"]),
    (DATE, [dt.date(1969, 12, 31), None, dt.date(2020, 1, 1)]),
    (TIMESTAMP, [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), None, dt.datetime.now(dt.UTC)]),
    (INTERVAL, [dt.timedelta(seconds=-1), None, dt.timedelta(days=1)]),
    (decimal(10, 2), [Decimal("1.50"), None, Decimal("-0.01")]),
    (NULL, [None, None, None]),
]


@pytest.mark.parametrize(("dtype", "values"), SAMPLES, ids=lambda v: str(v)[:12])
def test_round_trip(dtype: DataType, values: list[object]) -> None:
    array = pa.array(values, to_arrow(dtype))
    for given in (array, array.slice(1), pa.chunked_array([array.slice(0, 1), array.slice(1)])):
        vector = from_arrow(given, dtype)
        assert len(vector) == len(given)
        assert vector.to_arrow().equals(
            given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
        )


@pytest.mark.parametrize(("dtype", "values"), SAMPLES, ids=lambda v: str(v)[:12])
def test_take_filter_concat(dtype: DataType, values: list[object]) -> None:
    vector = from_arrow(pa.array(values, to_arrow(dtype)), dtype)
    again = concat([vector.take(np.array([2, 1])), vector.filter(np.array([True, False, False]))])
    assert again.to_arrow().to_pylist() == [values[2], values[1], values[0]]


def test_no_copy_of_fixed_width_data() -> None:
    array = pa.array([1, 2, 3], pa.int64())
    vector = from_arrow(array, BIGINT)
    assert vector.valid is None
    assert vector.data.ctypes.data == array.buffers()[1].address
    assert vector.to_arrow().buffers()[1].address == array.buffers()[1].address


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.string()])
def test_all_kinds_of_text(kind: pa.DataType) -> None:
    array = pa.array(["a", None, "b"], pa.string()).cast(kind)
    assert from_arrow(array, STRING).to_arrow().to_pylist() == ["a", None, "b"]


def test_dictionaries_are_decoded() -> None:
    array = pa.array(["a", None, "a"]).dictionary_encode()
    assert from_arrow(array, STRING).to_arrow().equals(pa.array(["a", None, "a"]))


def test_timestamps_of_any_unit_and_zone() -> None:
    micros = [-1_500_000, 0]
    for unit, ticks in (("ms", [-1_500, 0]), ("us", micros), ("ns", [-1_500_000_000, 0])):
        for zone in (None, "Europe/Berlin", "UTC"):
            array = pa.array(ticks, pa.int64()).cast(pa.timestamp(unit, zone))
            assert from_arrow(array, TIMESTAMP).data.tolist() == micros
    nanos = pa.array([-1], pa.int64()).cast(pa.timestamp("ns"))
    assert from_arrow(nanos, TIMESTAMP).data.tolist() == [-1]  # downwards, also before 1970


def test_timestamps_beyond_microseconds_are_errors_of_their_row() -> None:
    array = pa.array([2**62, 1, None], pa.int64()).cast(pa.timestamp("s"))
    vector = from_arrow(array, TIMESTAMP)
    assert vector.errors is not None
    assert vector.errors.tolist() == [OUT_OF_RANGE, 0, 0]


def test_narrow_integers_widen() -> None:
    vector = from_arrow(pa.array([1, None], pa.int16()), BIGINT)
    assert vector.data.dtype == np.int64


def test_errors_are_null_in_arrow() -> None:
    vector = Vector(INT, np.array([1, 2], np.int32), None, np.array([0, 1], np.uint8))
    assert vector.to_arrow().to_pylist() == [1, None]


def test_constants() -> None:
    assert constant(Literal(INT, False, 7), 3).to_arrow().to_pylist() == [7, 7, 7]
    assert constant(Literal(STRING, False, "x"), 2).to_arrow().to_pylist() == ["x", "x"]
    assert constant(Literal(DATE, True, None), 2).to_arrow().to_pylist() == [None, None]
    assert len(nulls(STRING, 0)) == 0
