"""The scalar evaluator against Spark's ANSI semantics, written down by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from thalweg.plan.expr import Call, Column, Expr, Literal, UserCall
from thalweg.plan.types import (
    BIGINT,
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
from thalweg.testing.scalar import RowError, evaluate

LONG_MAX, LONG_MIN = (1 << 63) - 1, -(1 << 63)
DAY = 86_400_000_000
NOON = 1_000 * DAY + 45_296_789_012  # 1972-09-27 12:34:56.789012


def lit(value: Any, dtype: DataType | None = None) -> Expr:
    guessed = {bool: BOOLEAN, int: BIGINT, float: DOUBLE, str: STRING, type(None): NULL}
    return Literal(dtype or guessed[type(value)], value is None, value)


def call(function: str, *args: Any, type: DataType) -> Expr:
    parts = tuple(a if isinstance(a, Expr) else lit(a) for a in args)
    return Call(type, True, function, parts)


def run(expr: Expr, **row: Any) -> Any:
    return evaluate(expr, row)


def error(expr: Expr) -> str:
    with pytest.raises(RowError) as caught:
        evaluate(expr, {})
    return caught.value.reason


BAD = call("/", 1, 0, type=DOUBLE)
BAD_TEST = call(">", BAD, 0.0, type=BOOLEAN)


def test_columns_and_literals():
    assert run(Column(BIGINT, True, "a.k"), **{"a.k": 7}) == 7
    assert run(lit(None)) is None


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, None, False, None),
        (None, None, None, None),
        (False, False, False, False),
    ],
)
def test_three_valued_logic(left, right, both, either):
    for a, b in ((left, right), (right, left)):
        assert run(call("and", a, b, type=BOOLEAN)) is both
        assert run(call("or", a, b, type=BOOLEAN)) is either
    assert run(call("not", None, type=BOOLEAN)) is None


def test_a_decisive_side_wins_over_an_error():
    for a, b in ((False, BAD_TEST), (BAD_TEST, False)):
        assert run(call("and", a, b, type=BOOLEAN)) is False
    for a, b in ((True, BAD_TEST), (BAD_TEST, True)):
        assert run(call("or", a, b, type=BOOLEAN)) is True
    for undecided in (True, None):
        assert error(call("and", BAD_TEST, undecided, type=BOOLEAN)) == "division by zero"
    for undecided in (False, None):
        assert error(call("or", undecided, BAD_TEST, type=BOOLEAN)) == "division by zero"


def test_lazy_functions_do_not_touch_what_they_do_not_need():
    assert run(call("case", True, 1, BAD_TEST, 2, BAD, type=BIGINT)) == 1
    assert run(call("case", None, 1, False, 2, 3, type=BIGINT)) == 3
    assert run(call("if", False, BAD, 2, type=BIGINT)) == 2
    assert run(call("coalesce", None, 5, BAD, type=BIGINT)) == 5
    assert run(call("coalesce", None, None, type=BIGINT)) is None
    assert error(call("case", BAD_TEST, 1, 2, type=BIGINT)) == "division by zero"


def test_strict_functions_fail_even_beside_null():
    assert error(call("+", None, BAD, type=DOUBLE)) == "division by zero"
    assert run(call("/", None, 0, type=DOUBLE)) is None


@pytest.mark.parametrize(
    ("function", "args", "dtype", "expected"),
    [
        ("+", (LONG_MAX, 0), BIGINT, LONG_MAX),
        ("-", (3, 5), BIGINT, -2),
        ("*", (1e300, 1e300), DOUBLE, math.inf),
        ("/", (7, 2), DOUBLE, 3.5),
        ("/", (-7.5, 2.5), DOUBLE, -3.0),
        ("%", (-7, 3), BIGINT, -1),
        ("%", (7, -3), BIGINT, 1),
        ("%", (LONG_MIN, -1), BIGINT, 0),
        ("%", (-7.5, 2.0), DOUBLE, -1.5),
        ("div", (-7, 2), BIGINT, -3),
        ("div", (7, 2), BIGINT, 3),
        ("neg", (LONG_MAX,), BIGINT, -LONG_MAX),
        ("abs", (-4,), BIGINT, 4),
        ("ceil", (-1.5,), BIGINT, -1),
        ("floor", (-1.5,), BIGINT, -2),
        ("floor", (math.nan,), BIGINT, 0),
        ("round", (2.5,), DOUBLE, 3.0),
        ("round", (-2.5, 0), DOUBLE, -3.0),
        ("round", (0.145, 2), DOUBLE, 0.15),
        ("round", (1250, -2), BIGINT, 1300),
        ("sqrt", (9.0,), DOUBLE, 3.0),
    ],
)
def test_arithmetic(function, args, dtype, expected):
    assert run(call(function, *args, type=dtype)) == expected


@pytest.mark.parametrize(
    ("function", "args", "dtype", "reason"),
    [
        ("ceil", (1e300,), BIGINT, "overflow"),
        ("+", (LONG_MAX, 1), BIGINT, "overflow"),
        ("-", (LONG_MIN, 1), BIGINT, "overflow"),
        ("*", (1 << 20, 1 << 20), INT, "overflow"),
        ("+", (127, 1), TINYINT, "overflow"),
        ("neg", (LONG_MIN,), BIGINT, "overflow"),
        ("abs", (LONG_MIN,), BIGINT, "overflow"),
        ("div", (LONG_MIN, -1), BIGINT, "overflow"),
        ("/", (1, 0), DOUBLE, "division by zero"),
        ("/", (1.0, -0.0), DOUBLE, "division by zero"),
        ("/", (math.nan, 0.0), DOUBLE, "division by zero"),
        ("%", (1, 0), BIGINT, "division by zero"),
        ("div", (1, 0), BIGINT, "division by zero"),
    ],
)
def test_arithmetic_errors(function, args, dtype, reason):
    assert error(call(function, *args, type=dtype)) == reason


def test_nan_results():
    assert math.isnan(run(call("sqrt", -1.0, type=DOUBLE)))
    assert math.isnan(run(call("%", math.inf, 2.0, type=DOUBLE)))
    assert run(call("%", 5.0, math.inf, type=DOUBLE)) == 5.0


@pytest.mark.parametrize(
    ("function", "left", "right", "expected"),
    [
        ("=", math.nan, math.nan, True),
        (">", math.nan, math.inf, True),
        ("<", math.nan, 1.0, False),
        ("<", 1.0, math.nan, True),
        ("=", 0.0, -0.0, True),
        ("<>", 1, 2, True),
        ("=", None, 1, None),
        ("<=>", None, None, True),
        ("<=>", None, 1, False),
        ("<=>", math.nan, math.nan, True),
        ("<", "Z", "a", True),
        ("<", "z", "ä", True),
        ("<", "\uffff", "\U0001f600", True),
        ("<", False, True, True),
        (">=", 2, 2, True),
    ],
)
def test_comparisons(function, left, right, expected):
    assert run(call(function, left, right, type=BOOLEAN)) is expected


def test_null_aware_functions():
    assert run(call("is_null", None, type=BOOLEAN)) is True
    assert run(call("is_not_null", 0, type=BOOLEAN)) is True
    assert run(call("in", 1, 2, 1, None, type=BOOLEAN)) is True
    assert run(call("in", 3, 2, None, type=BOOLEAN)) is None
    assert run(call("in", 3, 2, 1, type=BOOLEAN)) is False
    assert run(call("in", None, 2, 1, type=BOOLEAN)) is None
    assert run(call("greatest", 1.0, None, 3.0, type=DOUBLE)) == 3.0
    assert math.isnan(run(call("greatest", 1.0, math.nan, math.inf, type=DOUBLE)))
    assert run(call("least", math.nan, 2.0, None, type=DOUBLE)) == 2.0
    assert run(call("least", None, None, type=DOUBLE)) is None
    assert run(call("nullif", 1, 1, type=BIGINT)) is None
    assert run(call("nullif", 1, None, type=BIGINT)) == 1


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("abc", "a%", True),
        ("abc", "_b_", True),
        ("abc", "b", False),
        ("a\nc", "a%c", True),
        ("", "%", True),
        ("a%", "a\\%", True),
        ("ab", "a\\%", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
    ],
)
def test_like(text, pattern, expected):
    assert run(call("like", text, pattern, type=BOOLEAN)) is expected


def test_like_refuses_a_dangling_escape():
    assert error(call("like", "a", "a\\", type=BOOLEAN)) == "bad pattern"


@pytest.mark.parametrize(
    ("function", "args", "dtype", "expected"),
    [
        ("||", ("a", "b"), STRING, "ab"),
        ("||", ("a", None), STRING, None),
        ("concat", ("a", "b", "c"), STRING, "abc"),
        ("upper", ("äb",), STRING, "ÄB"),
        ("lower", ("ÄB",), STRING, "äb"),
        ("length", ("日本",), INT, 2),
        ("trim", ("  a\t ",), STRING, "a\t"),
        ("substring", ("hello", 2, 3), STRING, "ell"),
        ("substring", ("hello", 0, 2), STRING, "he"),
        ("substring", ("hello", -3, 2), STRING, "ll"),
        ("substring", ("abc", -5, 3), STRING, "a"),
        ("substring", ("abc", 2), STRING, "bc"),
        ("substring", ("abc", 2, 0), STRING, ""),
    ],
)
def test_strings(function, args, dtype, expected):
    assert run(call(function, *args, type=dtype)) == expected


def test_time_parts():
    stamp = lit(NOON, TIMESTAMP)
    parts = [run(call(p, stamp, type=INT)) for p in ("year", "month", "day")]
    parts += [run(call(p, stamp, type=INT)) for p in ("hour", "minute", "second")]
    assert parts == [1972, 9, 27, 12, 34, 56]
    assert run(call("year", lit(-1, DATE), type=INT)) == 1969
    assert run(call("second", lit(-1, TIMESTAMP), type=INT)) == 59


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("hour", 1_000 * DAY + 43_200_000_000),
        ("DAY", 1_000 * DAY),
        ("week", 998 * DAY),  # 1972-09-25, a Monday
        ("month", 974 * DAY),
        ("quarter", 912 * DAY),
        ("year", 730 * DAY),
        ("fortnight", None),
    ],
)
def test_date_trunc(unit, expected):
    assert run(call("date_trunc", unit, lit(NOON, TIMESTAMP), type=TIMESTAMP)) == expected


def test_time_arithmetic():
    a, b = lit(10, TIMESTAMP), lit(3, TIMESTAMP)
    assert run(call("-", a, b, type=INTERVAL)) == 7
    assert run(call("+", a, lit(5, INTERVAL), type=TIMESTAMP)) == 15
    assert run(call("*", lit(5, INTERVAL), 0.5, type=INTERVAL)) == 3
    assert run(call("/", lit(5, INTERVAL), 2, type=INTERVAL)) == 3
    assert run(call("+", lit(1, DATE), lit(5, INTERVAL), type=TIMESTAMP)) == DAY + 5
    assert error(call("+", lit(LONG_MAX, TIMESTAMP), lit(1, INTERVAL), type=TIMESTAMP)) == (
        "overflow"
    )


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (1.9, DOUBLE, INT, 1),
        (-1.9, DOUBLE, BIGINT, -1),
        (True, BOOLEAN, INT, 1),
        (0.0, DOUBLE, BOOLEAN, False),
        (math.nan, DOUBLE, BOOLEAN, True),
        (2**53 + 1, BIGINT, DOUBLE, 2.0**53),
        (0.1, DOUBLE, FLOAT, 0.10000000149011612),
        (" 12 ", STRING, INT, 12),
        ("1e3", STRING, DOUBLE, 1000.0),
        ("-Infinity", STRING, DOUBLE, -math.inf),
        ("YES", STRING, BOOLEAN, True),
        ("1972-09-27", STRING, DATE, 1_000),
        ("1972-09-27 12:34:56.789012", STRING, TIMESTAMP, NOON),
        ("1972-09-27T14:34:56.789012+02:00", STRING, TIMESTAMP, NOON),
        (NOON, TIMESTAMP, DATE, 1_000),
        (-1, TIMESTAMP, DATE, -1),
        (-1, TIMESTAMP, BIGINT, -1),
        (2, BIGINT, TIMESTAMP, 2_000_000),
        (1_000, DATE, TIMESTAMP, 1_000 * DAY),
        (NOON, TIMESTAMP, STRING, "1972-09-27 12:34:56.789012"),
        (1_500_000, TIMESTAMP, STRING, "1970-01-01 00:00:01.5"),
        (1_000, DATE, STRING, "1972-09-27"),
        (1.0, DOUBLE, STRING, "1.0"),
        (1e7, DOUBLE, STRING, "1.0E7"),
        (1.25e-5, DOUBLE, STRING, "1.25E-5"),
        (-0.0, DOUBLE, STRING, "-0.0"),
        (math.nan, DOUBLE, STRING, "NaN"),
        (False, BOOLEAN, STRING, "false"),
        ("1.255", STRING, decimal(5, 2), Decimal("1.26")),
        (Decimal("-1.99"), decimal(5, 2), INT, -1),
        (None, STRING, INT, None),
    ],
)
def test_casts(value, source, target, expected):
    assert run(call("cast", lit(value, source), type=target)) == expected
    assert run(call("try_cast", lit(value, source), type=target)) == expected


@pytest.mark.parametrize(
    ("value", "source", "target", "reason"),
    [
        (3e9, DOUBLE, INT, "overflow"),
        (math.nan, DOUBLE, INT, "overflow"),
        (300, BIGINT, TINYINT, "overflow"),
        ("1.5", STRING, INT, "bad cast"),
        ("", STRING, INT, "bad cast"),
        ("9999999999", STRING, INT, "bad cast"),
        ("abc", STRING, DOUBLE, "bad cast"),
        ("maybe", STRING, BOOLEAN, "bad cast"),
        ("1972-02-30", STRING, DATE, "bad cast"),
        ("1972-02-01 25:00:00", STRING, TIMESTAMP, "bad cast"),
        (Decimal("1000"), decimal(4, 0), decimal(3, 0), "overflow"),
    ],
)
def test_bad_casts(value, source, target, reason):
    assert error(call("cast", lit(value, source), type=target)) == reason
    assert run(call("try_cast", lit(value, source), type=target)) is None


def test_try_cast_does_not_hide_errors_of_its_argument():
    assert error(call("try_cast", BAD, type=INT)) == "division by zero"


def test_decimals_are_exact():
    a, b = lit(Decimal("1.10"), decimal(3, 2)), lit(Decimal("2.2"), decimal(2, 1))
    assert run(call("+", a, b, type=decimal(5, 2))) == Decimal("3.30")
    assert run(call("*", a, b, type=decimal(6, 3))) == Decimal("2.420")
    assert run(call("/", a, b, type=decimal(8, 6))) == Decimal("0.500000")


@dataclass(frozen=True)
class Registered:
    function: Any
    vectorized: bool = False


def test_user_functions():
    functions = {
        "twice": Registered(lambda v: None if v is None else 2 * v),
        "plus": Registered(lambda a, b: pc.add(a, b), vectorized=True),
        "fails": Registered(lambda v: [][v]),
    }
    twice = UserCall(BIGINT, True, "twice", (Column(BIGINT, True, "k"),))
    plus = UserCall(TIMESTAMP, True, "plus", (lit(1, TIMESTAMP), lit(2, INTERVAL)))
    assert evaluate(twice, {"k": 4}, functions) == 8
    assert evaluate(twice, {"k": None}, functions) is None
    assert evaluate(plus, {}, functions) == 3
    with pytest.raises(RowError, match="IndexError"):
        evaluate(UserCall(BIGINT, True, "fails", (lit(1),)), {}, functions)
    with pytest.raises(RowError, match="OverflowError"):
        evaluate(twice, {"k": 1 << 62}, functions)


def test_vectorised_functions_see_one_row_arrays():
    seen: list[pa.Array] = []
    functions = {"keep": Registered(lambda a: seen.append(a) or a, vectorized=True)}
    assert evaluate(UserCall(STRING, True, "keep", (lit("a"),)), {}, functions) == "a"
    assert seen[0].type == pa.string()
    assert len(seen[0]) == 1
