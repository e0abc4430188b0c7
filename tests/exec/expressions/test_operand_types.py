"""Every function over operands of every type: refused when bound, or evaluated as defined."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from thalweg.columns.vector import Vector, from_arrow
from thalweg.errors import TypeMismatch
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.plan.expr import Column, Expr, Literal
from thalweg.plan.functions import can_cast, cast, resolve
from thalweg.plan.functions.signature import DEFINITIONS
from thalweg.plan.types import INT, NULL, STRING, DataType, decimal
from thalweg.plan.types import from_arrow as type_of
from thalweg.testing.compare import column_values
from thalweg.testing.random_statements.rows import COLUMNS
from thalweg.testing.scalar import RowError
from thalweg.testing.scalar import evaluate as by_definition

ROWS = 6
VECTORS: dict[str, Vector] = {}
VALUES: dict[str, list[Any]] = {}
for _name, (_, _type, _values) in COLUMNS.items():
    _array = pa.array(_values, _type)
    VECTORS[_name] = from_arrow(_array, type_of(_type))
    VALUES[_name] = column_values(_array)
OPERANDS: list[Expr] = [
    *(Column(v.type, True, name) for name, v in VECTORS.items()),
    Literal(NULL, True, None),
    Literal(INT, False, 1),
    Literal(STRING, False, "a"),
]
TYPES = [v.type for v in VECTORS.values()] + [decimal(5, 1)]


def check(expr: Expr) -> None:
    """The same values and failing rows as the reference has."""
    found = evaluate(expr, VECTORS, ROWS)
    values = column_values(found.stretch(ROWS).to_arrow())
    failed = [False] * ROWS if found.errors is None else [bool(c) for c in found.errors]
    for i in range(ROWS):
        row = {name: column[i] for name, column in VALUES.items()}
        try:
            wanted = by_definition(expr, row)
        except RowError:
            assert failed[i % len(failed)], f"{expr} does not fail on row {i}: {values[i]}"
            continue
        assert not failed[i % len(failed)], f"{expr} fails on row {i}, expected {wanted}"
        assert same(values[i], wanted), f"{expr} on row {i}: {values[i]}, expected {wanted}"


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def accepted(name: str, count: int) -> Iterator[Expr]:
    for args in product(OPERANDS, repeat=count):
        try:
            yield resolve(name, list(args))
        except TypeMismatch as refusal:
            assert refusal.remedy  # noqa: PT017


@pytest.mark.parametrize("name", DEFINITIONS)
def test_one_operand_and_two_of_every_type(name: str) -> None:
    for count in (1, 2):
        for expr in accepted(name, count):
            check(expr)


@pytest.mark.parametrize("target", TYPES, ids=str)
def test_casts_from_every_type(target: DataType) -> None:
    for operand in OPERANDS:
        for safe in (False, True):
            if can_cast(operand.type, target):
                check(cast(operand, target, safe=safe))
            else:
                with pytest.raises(TypeMismatch):
                    cast(operand, target, safe=safe)


@pytest.mark.parametrize("name", ["<", "<=", ">", ">=", "greatest", "least", "between"])
def test_arrays_have_no_order(name: str) -> None:
    array = Column(VECTORS["xs"].type, True, "xs")
    with pytest.raises(TypeMismatch, match="does not take"):
        resolve(name, [array] * (3 if name == "between" else 2))


@pytest.mark.parametrize("name", ["=", "<>", "<=>", "in", "nullif", "coalesce"])
def test_arrays_are_equal_or_not(name: str) -> None:
    for column in ("xs", "words"):
        array = Column(VECTORS[column].type, True, column)
        check(resolve(name, [array, array]))
