"""Types, nullability and refusals of the built-in functions."""

from __future__ import annotations

import pytest

from thalweg.errors import TypeMismatch, UnknownName
from thalweg.plan.expr import Call, Column, Expr, Literal, UserCall
from thalweg.plan.functions import (
    can_raise,
    cast,
    common_type,
    function_names,
    is_deterministic,
    resolve,
)
from thalweg.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    decimal,
)


def col(dtype: DataType, nullable: bool = False) -> Column:
    return Column(dtype, nullable, dtype.name.lower())


def lit(value: object) -> Literal:
    kinds: dict[type, DataType] = {int: INT, float: DOUBLE, str: STRING, bool: BOOLEAN}
    return Literal(NULL if value is None else kinds[type(value)], value is None, value)


@pytest.mark.parametrize(
    ("types", "wanted"),
    [
        ([INT, BIGINT], BIGINT),
        ([BIGINT, FLOAT], DOUBLE),
        ([TINYINT, FLOAT], DOUBLE),
        ([FLOAT, FLOAT], FLOAT),
        ([NULL, STRING], STRING),
        ([NULL, NULL], NULL),
        ([STRING, INT], BIGINT),
        ([STRING, FLOAT], DOUBLE),
        ([STRING, DATE], DATE),
        ([DATE, TIMESTAMP], TIMESTAMP),
        ([decimal(10, 2), INT], decimal(12, 2)),
        ([decimal(10, 2), decimal(8, 4)], decimal(12, 4)),
        ([decimal(10, 2), DOUBLE], DOUBLE),
        ([BOOLEAN, INT], None),
        ([DATE, INT], None),
        ([INTERVAL, STRING], None),
    ],
)
def test_common_type(types: list[DataType], wanted: DataType | None) -> None:
    assert common_type(types) == wanted
    assert common_type(reversed(types)) == wanted


@pytest.mark.parametrize(
    ("name", "args", "wanted"),
    [
        ("+", [col(INT), col(BIGINT)], BIGINT),
        ("+", [col(TINYINT), lit(1)], INT),
        ("+", [col(TIMESTAMP), col(INTERVAL)], TIMESTAMP),
        ("+", [col(INTERVAL), col(TIMESTAMP)], TIMESTAMP),
        ("+", [col(DATE), lit(1)], DATE),
        ("-", [col(TIMESTAMP), col(TIMESTAMP)], INTERVAL),
        ("*", [lit(2), col(INTERVAL)], INTERVAL),
        ("/", [col(INT), col(INT)], DOUBLE),
        ("div", [col(INT), col(INT)], BIGINT),
        ("+", [col(decimal(10, 2)), lit(1)], DOUBLE),
        ("=", [col(STRING), col(INT)], BOOLEAN),
        ("ceil", [col(DOUBLE)], BIGINT),
        ("round", [col(INT), lit(1)], INT),
        ("sign", [col(INT)], DOUBLE),
        ("if", [col(BOOLEAN), lit(1), lit(2.5)], DOUBLE),
        ("nullif", [col(INT), col(BIGINT)], INT),
        ("length", [col(STRING)], INT),
        ("concat", [col(STRING), col(INT)], STRING),
        ("pow", [col(INT), lit(2)], DOUBLE),
        ("year", [col(TIMESTAMP)], INT),
        ("unix_micros", [col(TIMESTAMP)], BIGINT),
        ("date_trunc", [lit("day"), col(TIMESTAMP)], TIMESTAMP),
        ("greatest", [col(INT), col(DOUBLE)], DOUBLE),
    ],
)
def test_result_types(name: str, args: list[Expr], wanted: DataType) -> None:
    assert resolve(name, args).type == wanted


def test_casts_are_explicit() -> None:
    found = resolve("+", [col(INT), col(BIGINT)])
    assert str(found) == "(CAST(int AS BIGINT) + bigint)"


def test_constants_are_cast_at_once() -> None:
    assert str(resolve(">", [col(DOUBLE), lit(5)])) == "(double > 5.0)"
    assert resolve(">", [col(DATE), lit("1970-01-02")]).args[1].value == 1  # type: ignore[attr-defined]
    moment = cast(lit("1969-12-31 23:59:59.5"), TIMESTAMP)
    assert moment == Literal(TIMESTAMP, False, -500_000)
    assert cast(lit(None), STRING) == Literal(STRING, True, None)
    assert isinstance(cast(lit("2021-02-29"), DATE), Call)
    assert resolve("neg", [lit(1)]) == lit(-1)


def test_cast_to_its_own_type_changes_nothing() -> None:
    assert cast(col(INT), INT) == col(INT)


@pytest.mark.parametrize(
    ("source", "target"),
    [(DATE, INT), (INT, DATE), (BOOLEAN, TIMESTAMP), (INT, BINARY), (INTERVAL, INT)],
)
def test_impossible_casts_are_refused(source: DataType, target: DataType) -> None:
    with pytest.raises(TypeMismatch, match=f"{source} cannot be cast to {target}"):
        cast(col(source), target)


def test_nullability() -> None:
    maybe, never = col(INT, nullable=True), col(INT)
    assert resolve("+", [maybe, never]).nullable
    assert not resolve("+", [never, never]).nullable
    assert not resolve("coalesce", [maybe, never]).nullable
    assert not resolve("is_null", [maybe]).nullable
    assert not resolve("<=>", [maybe, maybe]).nullable
    assert resolve("case", [col(BOOLEAN), never]).nullable
    assert not resolve("case", [col(BOOLEAN, True), never, never]).nullable
    assert resolve("ln", [col(DOUBLE)]).nullable
    assert resolve("nullif", [never, never]).nullable
    assert cast(col(STRING), INT, safe=True).nullable
    assert not cast(col(STRING), INT).nullable


def test_unknown_functions_suggest_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        resolve("substrng", [])
    assert caught.value.remedy == "did you mean substring?"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("upper", []),
        ("upper", [col(STRING), col(STRING)]),
        ("substring", [col(STRING), col(DOUBLE)]),
        ("+", [col(INT), col(BOOLEAN)]),
        ("+", [col(STRING), col(STRING)]),
        ("and", [col(BOOLEAN), col(INT)]),
        ("=", [col(BOOLEAN), col(INT)]),
        ("greatest", [col(STRING), col(INT)]),
        ("case", [col(INT), lit(1)]),
        ("div", [col(DOUBLE), lit(2)]),
        ("round", [col(DOUBLE), col(INT)]),
        ("in", [col(INT)]),
        ("to_date", [col(STRING), lit("yyyy")]),
    ],
)
def test_wrong_arguments_are_named(name: str, args: list[Expr]) -> None:
    with pytest.raises(TypeMismatch) as caught:
        resolve(name, args)
    assert caught.value.message.lower().startswith(name)
    assert all(str(a.type) in caught.value.message for a in args)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("expr", "raises"),
    [
        (col(INT), False),
        (resolve("+", [col(INT), col(INT)]), True),
        (resolve("+", [col(DOUBLE), col(INT)]), False),
        (resolve("/", [col(DOUBLE), col(DOUBLE)]), True),
        (resolve("/", [col(DOUBLE), lit(2)]), False),
        (resolve("%", [col(INT), lit(0)]), True),
        (resolve("=", [col(INT), col(BIGINT)]), False),
        (resolve("=", [col(INT), col(STRING)]), True),
        (resolve("and", [col(BOOLEAN), resolve(">", [col(DOUBLE), lit(1)])]), False),
        (cast(col(BIGINT), INT), True),
        (cast(col(STRING), INT, safe=True), False),
        (cast(col(INT), STRING), False),
        (cast(col(INT), decimal(10, 0)), False),
        (cast(col(INT), decimal(9, 0)), True),
        (UserCall(INT, True, "f", ()), True),
        (resolve("upper", [col(STRING)]), False),
        (resolve("ceil", [col(INT)]), False),
    ],
)
def test_can_raise(expr: Expr, raises: bool) -> None:
    assert can_raise(expr) is raises


def test_determinism_comes_from_user_functions() -> None:
    assert is_deterministic(resolve("+", [col(INT), lit(1)]))
    assert not is_deterministic(resolve("+", [UserCall(INT, True, "now", (), False), lit(1)]))


def test_function_names_can_be_called() -> None:
    names = function_names()
    assert {"substring", "substr", "coalesce", "date_trunc", "power"} <= set(names)
    assert "+" not in names
    assert "is_null" not in names
