"""The value of an expression on a row depends on that row alone: all rows at once give what each
gives by itself, whatever is NULL, not finite or fails beside it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.columns.vector import Vector, from_arrow
from thalweg.errors import ThalwegError
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.plan.expr import Column, Expr, Literal
from thalweg.plan.functions import cast, resolve
from thalweg.plan.functions.signature import DEFINITIONS
from thalweg.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    decimal,
    to_arrow,
)

AS_LONG_AS_ASKED = {"repeat", "space", "lpad", "rpad"}
"""Functions whose result has as many characters as a number says."""
NAN, INFINITE = float("nan"), float("inf")
MOMENT = dt.datetime(2024, 2, 28, 23, 59, 59, 999_999, tzinfo=dt.UTC)
EDGES: dict[DataType, list[Any]] = {
    BOOLEAN: [True, False],
    TINYINT: [-128, 127, 0],
    SMALLINT: [-(2**15), 2**15 - 1],
    INT: [-(2**31), 2**31 - 1, 1, 0],
    BIGINT: [-(2**63), 2**63 - 1, -1, 0, 10],
    FLOAT: [0.1, -0.0, NAN, INFINITE, 3e38],
    DOUBLE: [0.1, -0.0, NAN, INFINITE, -INFINITE, 5e-324, 1e300, -1.5, 2.5],
    STRING: ["", "a", "12", " 1.5 ", "true", "2024-02-29", "äöü", "%_", "1e400", "x" * 40],
    BINARY: [b"", b"\x00", b"\xff\x00", b"12"],
    DATE: [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1970, 1, 1)],
    TIMESTAMP: [MOMENT, MOMENT.replace(year=1), MOMENT.replace(year=1969)],
    decimal(5, 2): [Decimal("999.99"), Decimal("-0.01"), Decimal(0)],
    decimal(38, 0): [Decimal(10**38 - 1), Decimal(-1)],
    decimal(38, 37): [Decimal("1." + "3" * 37), Decimal(0)],
}


def column(values: list[Any], dtype: DataType) -> Vector:
    return from_arrow(pa.array(values, to_arrow(dtype)), dtype)


def plain(values: pa.Array) -> pa.Array:
    """Times as numbers and text as bytes: Python has not all that there are."""
    if pa.types.is_string(values.type):
        return values.view(pa.binary())
    if pa.types.is_timestamp(values.type):
        return values.view(pa.int64())
    return values.view(pa.int32()) if pa.types.is_date32(values.type) else values


def outcomes(expr: Expr, columns: dict[str, tuple[DataType, list[Any]]], rows: int) -> list[str]:
    """Per row its value, or the code of its error."""
    found = evaluate(expr, {n: column(v, t) for n, (t, v) in columns.items()}, rows)
    shown = plain(found.to_arrow()).to_pylist()
    codes = np.zeros(len(shown), np.uint8) if found.errors is None else found.errors
    every = [f"error {c}" if c else repr(v) for v, c in zip(shown, codes.tolist(), strict=True)]
    return every * rows if len(every) < rows else every


def check(expr: Expr, columns: dict[str, tuple[DataType, list[Any]]]) -> None:
    rows = len(next(iter(columns.values()))[1])
    together = outcomes(expr, columns, rows)
    alone = [
        outcomes(expr, {n: (t, [v[i]]) for n, (t, v) in columns.items()}, 1)[0] for i in range(rows)
    ]
    assert together == alone, str(expr)


@pytest.mark.parametrize("safe", [False, True], ids=["CAST", "TRY_CAST"])
@pytest.mark.parametrize("source", EDGES, ids=str)
def test_casts(source: DataType, safe: bool) -> None:
    values = [*EDGES[source], None, *EDGES[source][::-1]]
    tried = 0
    for target in EDGES:
        try:
            expr = cast(Column(source, True, "x"), target, safe=safe)
        except ThalwegError:
            continue
        check(expr, {"x": (source, values)})
        tried += 1
    assert tried > 1


@pytest.mark.parametrize("name", sorted(DEFINITIONS.keys() - AS_LONG_AS_ASKED))
def test_functions_of_one_and_two_columns(name: str) -> None:
    """Of two arguments a sample of the types, always the same."""
    rng = Random(name)
    pairs = list(product(EDGES, EDGES))
    for types in [*((t,) for t in EDGES), *rng.sample(pairs, 12)]:
        arguments = [Column(t, True, "xy"[i]) for i, t in enumerate(types)]
        try:
            expr = resolve(name, arguments)
        except ThalwegError:
            continue
        given = {a.name: (a.type, [*EDGES[a.type], None]) for a in arguments}
        drawn = [tuple(rng.choice(values) for _, values in given.values()) for _ in range(12)]
        columns = {n: (t, [row[i] for row in drawn]) for i, (n, (t, _)) in enumerate(given.items())}
        check(expr, columns)


@pytest.mark.parametrize("name", sorted(DEFINITIONS.keys() - AS_LONG_AS_ASKED))
def test_functions_of_a_column_and_a_constant(name: str) -> None:
    """Of a constant the result is that of a column of it: POW(0.1, 2) had another last digit."""
    values = [*EDGES[DOUBLE], 0.3, 7.1, -2.2, 1e-3]
    x, y = Column(DOUBLE, True, "x"), Column(DOUBLE, True, "y")
    for constant in (2.0, -0.5, 0.1):
        known = Literal(DOUBLE, False, constant)
        for given, plain_columns in (([x, known], [x, y]), ([known, x], [y, x])):
            try:
                expr, same = resolve(name, given), resolve(name, plain_columns)
            except ThalwegError:
                continue
            columns = {"x": (DOUBLE, values), "y": (DOUBLE, [constant] * len(values))}
            check(expr, {"x": columns["x"]})
            assert outcomes(expr, columns, len(values)) == outcomes(same, columns, len(values))
