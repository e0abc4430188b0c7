"""What expressions evaluate to; Spark itself is the judge in tests/spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.columns.vector import (
    DIVISION_BY_ZERO,
    ERROR_TEXT,
    OVERFLOW,
    USER_FUNCTION,
    USER_RESULT,
    Vector,
    from_arrow,
)
from thalweg.errors import UnknownName
from thalweg.exec.expressions.evaluate import UserFunction, evaluate, used_functions
from thalweg.exec.expressions.kernels.registry import LAZY, NULLABLE, STRICT
from thalweg.plan.expr import Call, Column, Expr, Literal, UserCall
from thalweg.plan.functions import cast, resolve
from thalweg.plan.functions.signature import DEFINITIONS
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    to_arrow,
)

N = None
DATA: dict[str, tuple[DataType, list[Any]]] = {
    "i": (INT, [1, 0, N, 2**31 - 1]),
    "j": (INT, [2, 0, 3, 1]),
    "l": (BIGINT, [1, -(2**63), N, 2**63 - 1]),
    "x": (DOUBLE, [1.5, float("nan"), N, -0.0]),
    "s": (STRING, ["abc", "", N, "äöü"]),
    "b": (BOOLEAN, [True, False, N, True]),
}
COLUMNS: dict[str, Vector] = {
    n: from_arrow(pa.array(v, to_arrow(t)), t) for n, (t, v) in DATA.items()
}


def col(name: str) -> Column:
    return Column(DATA[name][0], True, name)


def lit(value: Any) -> Literal:
    kinds: dict[type, DataType] = {int: INT, float: DOUBLE, str: STRING, bool: BOOLEAN}
    return Literal(NULL if value is None else kinds[type(value)], value is None, value)


def call(name: str, *args: Any) -> Expr:
    return resolve(name, [a if isinstance(a, Expr) else lit(a) for a in args])


def values(expr: Expr, **kwargs: Any) -> list[Any]:
    """Values with errors shown as their text."""
    found = evaluate(expr, COLUMNS, 4, **kwargs)
    shown = found.to_arrow().to_pylist()
    codes = np.zeros(4, np.uint8) if found.errors is None else found.errors
    return [ERROR_TEXT[c] if c else v for v, c in zip(shown, codes.tolist(), strict=True)]


ZERO, OVER = ERROR_TEXT[DIVISION_BY_ZERO], ERROR_TEXT[OVERFLOW]
FAILS = call(">", call("/", 1, col("j")), 0)  # true, error, true, true


def test_every_function_has_a_kernel_or_becomes_another() -> None:
    lowered = {"between", "if", "nullif", "nvl", "nvl2", "||", "to_date", "to_timestamp"}
    assert set(DEFINITIONS) - {*STRICT, *NULLABLE, *LAZY} == lowered | {"from_unixtime"}


@pytest.mark.parametrize(
    ("expr", "wanted"),
    [
        (call("+", col("i"), 1), [2, 1, N, OVER]),
        (call("+", col("l"), 1), [2, -(2**63) + 1, N, OVER]),
        (call("-", col("l"), 1), [0, OVER, N, 2**63 - 2]),
        (call("*", col("l"), 2), [2, OVER, N, OVER]),
        (call("*", col("l"), -1), [-1, OVER, N, -(2**63) + 1]),
        (call("neg", col("l")), [-1, OVER, N, -(2**63) + 1]),
        (call("/", col("i"), col("j")), [0.5, ZERO, N, 2147483647.0]),
        (call("%", col("i"), col("j")), [1, ZERO, N, 0]),
        (call("div", col("l"), -1), [-1, OVER, N, -(2**63) + 1]),
        (call("=", col("x"), 0.0), [False, False, N, True]),
        (call(">", col("x"), 1e300), [False, True, N, False]),
        (call("<=>", col("i"), lit(None)), [False, False, True, False]),
        (call("in", col("i"), 1, lit(None)), [True, N, N, N]),
        (call("not", col("b")), [False, True, N, False]),
        (call("and", col("b"), lit(None)), [N, False, N, N]),
        (call("or", col("b"), lit(None)), [True, N, N, True]),
        (call("is_null", col("s")), [False, False, True, False]),
        (call("upper", col("s")), ["ABC", "", N, "ÄÖÜ"]),
        (call("substring", col("s"), -2, 1), ["b", "", N, "ö"]),
        (call("concat_ws", "-", col("s"), col("i")), ["abc-1", "-0", "", "äöü-2147483647"]),
        (call("greatest", col("i"), col("j")), [2, 0, 3, 2**31 - 1]),
        (call("round", 2.675, 2), [2.68] * 4),
        (cast(col("s"), INT), ["cannot cast string to INT"] * 2 + [N, "cannot cast string to INT"]),
        (cast(col("s"), INT, safe=True), [N] * 4),
        (call("length", "äö"), [2] * 4),
    ],
    ids=lambda v: str(v) if isinstance(v, Expr) else "",
)
def test_values(expr: Expr, wanted: list[Any]) -> None:
    assert values(expr) == wanted


def test_a_constant_condition_beside_a_column_without_null() -> None:
    column = Vector(BIGINT, np.arange(4))
    chosen = call("case", lit(False), lit(None), Column(BIGINT, False, "v"))
    found = evaluate(chosen, {"v": column}, 4)
    assert found.to_arrow().to_pylist() == [0, 1, 2, 3]
    assert found.take(np.array([3, 1])).to_arrow().to_pylist() == [3, 1]


class TestErrors:
    def test_false_outweighs_an_error_in_and(self) -> None:
        assert values(call("and", FAILS, lit(False))) == [False] * 4
        assert values(call("and", lit(False), FAILS)) == [False] * 4
        assert values(call("and", FAILS, lit(True))) == [True, ZERO, True, True]

    def test_true_outweighs_an_error_in_or(self) -> None:
        assert values(call("or", FAILS, lit(True))) == [True] * 4
        assert values(call("or", lit(False), FAILS)) == [True, ZERO, True, True]

    def test_errors_win_over_null(self) -> None:
        assert values(call("and", FAILS, lit(None))) == [N, ZERO, N, N]
        assert values(call("+", call("/", 1, col("j")), lit(None)))[1] == ZERO
        assert values(call("is_null", call("/", 1, col("j"))))[1] == ZERO

    def test_the_first_argument_names_the_error(self) -> None:
        overflow, zero = call("+", col("i"), 2**31 - 1), call("div", 1, call("-", col("i"), 1))
        assert values(call("+", overflow, zero))[0] == OVER
        assert values(call("+", zero, overflow))[0] == ZERO

    def test_null_rows_do_not_raise(self) -> None:
        garbage = Vector(INT, np.array([2**31 - 1], np.int32), np.array([False]))
        found = evaluate(call("+", col("i"), 1), {"i": garbage}, 1)
        assert found.errors is None or not found.errors.any()

    def test_branches_not_taken_do_not_count(self) -> None:
        guarded = call("case", call("<>", col("j"), 0), call("div", 6, col("j")), -1)
        assert values(guarded) == [3, -1, 2, 6]
        assert values(call("if", call("=", col("j"), 0), 0, call("div", 6, col("j"))))[1] == 0
        assert values(call("coalesce", col("b"), FAILS)) == [True, False, True, True]
        assert values(call("coalesce", FAILS, lit(True))) == [True, ZERO, True, True]

    def test_a_failing_condition_fails_the_case(self) -> None:
        assert values(call("case", FAILS, "yes", "no")) == ["yes", ZERO, "yes", "yes"]


def user(function: Any, returns: DataType = BIGINT, vectorized: bool = False) -> dict[str, Any]:
    return {"f": UserFunction("f", function, returns, None, vectorized)}


F_OF_J = UserCall(BIGINT, True, "f", (col("j"),))


class TestUserFunctions:
    def test_scalar(self) -> None:
        assert values(F_OF_J, functions=user(lambda j: 12 // j)) == [
            6, ERROR_TEXT[USER_FUNCTION], 4, 12,
        ]  # fmt: skip

    def test_null_arrives_as_none(self) -> None:
        expr = UserCall(BOOLEAN, True, "f", (col("s"),))
        assert values(expr, functions=user(lambda s: s is None, BOOLEAN)) == [
            False, False, True, False,
        ]  # fmt: skip

    def test_wrong_results_are_errors_of_their_row(self) -> None:
        found = values(F_OF_J, functions=user(lambda j: "text" if j == 2 else j))
        assert found == [ERROR_TEXT[USER_RESULT], 0, 3, 1]

    def test_arguments_with_errors_are_not_passed(self) -> None:
        seen: list[float] = []
        expr = UserCall(BIGINT, True, "f", (call("/", 6, col("j")),))
        found = values(expr, functions=user(lambda q: seen.append(q) or 1))
        assert found == [1, ZERO, 1, 1]
        assert seen == [3.0, 2.0, 6.0]

    def test_vectorized(self) -> None:
        double = user(lambda j: np.asarray(j) * 2, vectorized=True)
        assert values(F_OF_J, functions=double) == [4, 0, 6, 2]

    def test_one_bad_row_costs_only_itself(self) -> None:
        def inverse(j: pa.Array) -> pa.Array:
            return pa.array([12 // v for v in j.to_pylist()])

        assert values(F_OF_J, functions=user(inverse, vectorized=True)) == [
            6, ERROR_TEXT[USER_FUNCTION], 4, 12,
        ]  # fmt: skip

    def test_wrong_length(self) -> None:
        found = values(F_OF_J, functions=user(lambda j: j.slice(0, 0), vectorized=True))
        assert found == [ERROR_TEXT[USER_RESULT]] * 4

    def test_unregistered(self) -> None:
        with pytest.raises(UnknownName, match="f is not registered"):
            evaluate(F_OF_J, COLUMNS, 4)

    def test_used_functions(self) -> None:
        assert used_functions(call("+", F_OF_J, 1)) == {"f"}


class TestBatching:
    """Values never depend on how rows are cut (D7)."""

    EXPRESSIONS = (
        call("+", col("i"), col("j")), FAILS, call("upper", col("s")), cast(col("s"), DOUBLE),
        call("case", col("b"), col("i"), call("div", 1, col("j"))), cast(col("x"), STRING),
        call("coalesce", col("i"), col("j")), call("instr", col("s"), "ö"),
        call("substring", col("s"), col("j"), 1), call("like", col("s"), col("s")),
        call("in", col("s"), "abc", col("s")), call("least", col("x"), col("i")),
        call("concat_ws", col("s"), col("s"), col("i")), call("split_part", col("s"), "b", 1),
        call("date_trunc", "year", cast(col("j"), TIMESTAMP)), call("replace", col("s"), col("s")),
    )  # fmt: skip

    @pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
    def test_row_by_row(self, expr: Expr) -> None:
        whole = evaluate(expr, COLUMNS, 4)
        for row in range(4):
            rows = np.array([row])
            single = evaluate(expr, {n: v.take(rows) for n, v in COLUMNS.items()}, 1)
            assert _shown(single) == _shown(whole.take(rows))

    @pytest.mark.parametrize("expr", EXPRESSIONS, ids=str)
    def test_no_rows(self, expr: Expr) -> None:
        rows = np.array([], np.int64)
        empty = evaluate(expr, {n: v.take(rows) for n, v in COLUMNS.items()}, 0)
        assert len(empty) == 0
        assert len(empty.to_arrow()) == 0


def _shown(vector: Vector) -> tuple[str, list[int]]:
    codes = [0] * len(vector) if vector.errors is None else vector.errors.tolist()
    return str(vector.to_arrow().to_pylist()), codes


@pytest.mark.parametrize("part", ["year", "month", "dayofmonth", "quarter", "dayofyear"])
def test_both_calendars_agree(part: str) -> None:
    days = np.arange(-800_000, 800_000, 37, dtype=np.int32)
    expr = resolve(part, [Column(DATE, False, "d")])
    fast = evaluate(expr, {"d": Vector(DATE, days)}, len(days)).data
    far = np.append(days, np.int32(2**31 - 1))  # one such date leaves Arrow's range
    slow = evaluate(expr, {"d": Vector(DATE, far)}, len(far)).data
    assert np.array_equal(fast, slow[:-1])


def test_constants_are_evaluated_once() -> None:
    expr = call("+", call("+", 1, 2), col("j"))
    assert isinstance(expr, Call)
    assert values(expr) == [5, 3, 6, 4]
    assert values(call("+", 1, 2)) == [3] * 4
