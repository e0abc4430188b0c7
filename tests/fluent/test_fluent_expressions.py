"""Expressions: what is built is what is read, and constants are what they were."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from fluent_shop import assert_round_trip, shop
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from thalweg import col, fn, lit, when
from thalweg.fluent.expressions import Expression, sql
from thalweg.fluent.text import expression_text
from thalweg.lang.binding.scope import Scope
from thalweg.lang.parsing.expression_parser import Dialect
from thalweg.lang.parsing.fragments import parse_expression
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Literal
from thalweg.testing.runner import Runner

WORDS = sorted(w for w in Dialect.Tokenizer.KEYWORDS if w.isidentifier())
OURS = (
    "istream rstream dstream now slide landmark gap to session error sample qos within by".split()
)

names = st.one_of(
    st.sampled_from(["a", "b", "price", "_x", "Sym", "t1"]),
    st.sampled_from([*WORDS, *OURS]).map(str.lower),
    st.text("ab .,'\"`-é0", min_size=1, max_size=6),
)
moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["it's", "a\\b", 'say "x"', "--", "/* */", "\n\t\0", "%_\\%", "\\'"]),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9
    ),
    moments,
    moments.map(lambda m: m.date()),
    st.timedeltas(timedelta(days=-9999), timedelta(days=9999)),
)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


columns = st.builds(
    lambda parts: col(".".join(map(quoted, parts))), st.lists(names, min_size=1, max_size=2)
)


@st.composite
def combined(draw: st.DrawFn, inner: st.SearchStrategy[Expression]) -> Expression:
    a, b, c = draw(inner), draw(inner), draw(st.one_of(inner, values))
    choice = draw(st.integers(0, 33))
    made: list[Any] = [
        lambda: a + b, lambda: a - b, lambda: a * b, lambda: a / b, lambda: a % b,
        lambda: a == b, lambda: a != b, lambda: a < b, lambda: a <= c, lambda: a > c,
        lambda: a >= b, lambda: a & b, lambda: a | b, lambda: ~a, lambda: -a,
        lambda: a.is_null(), lambda: a.is_not_null(), lambda: a.is_true(), lambda: a.isin(b, c),
        lambda: ~a.isin(c), lambda: a.between(b, c), lambda: a.like(b), lambda: a.rlike(b),
        lambda: a.concat(b), lambda: a.div(b), lambda: a.bit_and(b) + a.bit_or(c),
        lambda: a.bit_xor(b).bit_not(), lambda: a.same_as(b), lambda: a.cast("DECIMAL(9, 2)"),
        lambda: a.try_cast("timestamp"), lambda: fn.coalesce(a, b, c), lambda: fn.if_(a, b, c),
        lambda: when(a, b).when(b, c).otherwise(a), lambda: fn.sum(a).filter(b),
    ]  # fmt: skip
    found: Expression = made[choice]()
    return found


expressions = st.recursive(
    st.one_of(columns, values.map(lit)), lambda inner: combined(inner), max_leaves=12
)


@settings(max_examples=400, deadline=None)
@given(expressions)
def test_text_is_read_as_the_same_tree(built: Expression) -> None:
    assert parse_expression(built.sql()) == built.node, built.sql()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whole_queries_are_read_as_the_same_tree(data: st.DataObject) -> None:
    """Also names of columns, sources and options, wherever they stand."""
    home = HOME
    one, two, other = (data.draw(expressions) for _ in range(3))
    name, alias = data.draw(names), data.draw(names)
    first = home["trades"].now().alias(alias).filter(one).select(one, **{name: two})
    assert_round_trip(first)
    assert_round_trip(
        first.alias(name).filter(other).group_by(fn.abs(other).alias(alias)).agg(**{name: one})
    )
    assert_round_trip(
        first.union(first, all=True).rstream().order_by(fn.abs(other).desc()).limit(3)
    )


HOME = shop()


@settings(max_examples=300, deadline=None)
@given(values)
def test_constants_are_what_they_were(value: Any) -> None:
    bound = Scope(Catalog(), (), "").bind(parse_expression(lit(value).sql()))
    assert bound == Scope(Catalog(), (), "").bind(lit(value).node)
    if isinstance(value, str | bool | int | None):
        assert isinstance(bound, Literal)
        assert bound.value == value
        assert type(bound.value) is type(value)
    elif isinstance(value, float) and math.isfinite(value):
        assert isinstance(bound, Literal)
        assert repr(bound.value) == repr(value)
    elif isinstance(value, timedelta):
        assert isinstance(bound, Literal)
        assert timedelta(microseconds=bound.value) == value


@pytest.mark.parametrize(
    "value",
    [
        datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        date(2026, 2, 28),
        Decimal("-12.340"),
        Decimal("1E+3"),
        Decimal("0.001"),
        float("inf"),
        float("-inf"),
        1e300,
        -(2**63),
    ],
)
def test_constants_come_out_as_they_went_in(value: Any) -> None:
    home = shop()
    query = home["trades"].select(x=lit(value)).query()
    home.run()
    assert query.results().column("x").to_pylist()[0] == value


def test_nan_comes_out_as_it_went_in() -> None:
    home = shop()
    query = home["trades"].select(x=float("nan")).query()
    home.run()
    assert math.isnan(query.results().column("x").to_pylist()[0])


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (col("a") + col("b") * 2, "a + b * 2"),
        ((col("a") + col("b")) * 2, "(a + b) * 2"),
        (col("a") - (col("b") - 1), "a - (b - 1)"),
        (col("a") - col("b") - 1, "a - b - 1"),
        (2 - col("a"), "2 - a"),
        (2 + 3 * (1 / col("a")) % 4, "2 + 3 * (1 / a) % 4"),
        ((col("a") > 1) & (col("b") < 2) | ~col("c"), "a > 1 AND b < 2 OR NOT c"),
        ((col("a") > 1) & ((col("b") < 2) | col("c")), "a > 1 AND (b < 2 OR c)"),
        (True & col("a") | False, "TRUE AND a OR FALSE"),
        (False | col("a"), "FALSE OR a"),
        ((col("a") == 1) == col("b"), "(a = 1) = b"),
        (~(col("a") == 1), "NOT a = 1"),
        (~(col("a") & col("b")), "NOT (a AND b)"),
        (-(-col("a")), "-(-a)"),  # noqa: B002
        (col("a") - -5, "a - -5"),
        ((col("a") + 1).is_null(), "a + 1 IS NULL"),
        ((col("a") > 1).is_not_null(), "(a > 1) IS NOT NULL"),
        (col("a").isin([1, 2]), "a IN (1, 2)"),
        (~col("a").isin({3}), "a NOT IN (3)"),
        (col("a").isin(range(2)), "a IN (0, 1)"),
        (col("a").same_as(None), "a <=> NULL"),
        (col("order"), "`order`"),
        (col("t.*"), "t.*"),
        (col("*"), "*"),
        (col("my table.x"), "`my table`.x"),
        (sql("a OR b") & col("c"), "(a OR b) AND c"),
        (sql("a /* why */ + b"), "a + b"),
        (col("ts") - timedelta(hours=36), "ts - INTERVAL '36' HOURS"),
        (fn.count(), "count(*)"),
        (fn.My_Function(1), "My_Function(1)"),
        (fn.count(col("a")).distinct().filter("b > 1"), "count(DISTINCT a) FILTER(WHERE b > 1)"),
        (fn.lead(col("a"), 2).over(["b", col("c")], col("ts").asc()),
         "lead(a, 2) OVER (PARTITION BY b, c ORDER BY ts)"),
        (col("a").cast("decimal(5,2)"), "CAST(a AS DECIMAL(5, 2))"),
    ],
)  # fmt: skip
def test_text(built: Expression, text: str) -> None:
    assert built.sql() == text == repr(built)


def test_text_given_is_text_kept() -> None:
    """Odd but valid text, too, is written as what it was read as."""
    for text in (
        "a NOT IN (1) = TRUE",
        "a LIKE 'x' ESCAPE '!'",
        "a NOT LIKE 'b' AND NOT c",
        "EXTRACT(YEAR FROM ts)",
        "a IS NOT DISTINCT FROM b",
        "a NOT BETWEEN 1 AND 2",
        "CASE a WHEN 1 THEN 2 END",
        "a::int + 1",
        "a RLIKE 'b'",
        "'it''s' || \"x\"",
        "DATE '2026-01-01'",
        "a IS NOT TRUE",
        "mode() WITHIN GROUP (ORDER BY 1)",
    ):
        node = parse_expression(text)
        assert parse_expression(expression_text(node)) == node, text


def test_functions_are_listed() -> None:
    assert {"avg", "upper", "lag", "if_", "date_trunc"} <= set(dir(fn))
    assert "if" not in dir(fn)
    assert isinstance(fn.upper(col("a")).node, exp.Anonymous)


def test_expressions_can_be_shared() -> None:
    price = col("price")
    both = (price > 1) & (price < 2)
    assert both.sql() == "price > 1 AND price < 2"
    assert price.node.parent is None


def test_results_through_a_runner() -> None:
    home: Runner = shop(epochs=2)
    query = (
        home["trades"]
        .filter((col("price") * 2 > 200) & ~col("sym").isin("CCC"))
        .select("sym", twice=col("price") * 2, kind=when(col("price") > 200, "big").otherwise("-"))
        .query()
    )
    home.run()
    rows = [(r["sym"], r["twice"], r["kind"]) for r in query.results().to_pylist()]
    assert rows == [("AAA", 240.0, "-"), ("AAA", 203.0, "-"), ("AAA", 600.0, "big")]


def test_operators_take_their_operand_by_name() -> None:
    assert col("a").like(pattern="x%").sql() == "a LIKE 'x%'"
    assert col("a").same_as(other=1).sql() == "a <=> 1"
    assert (2 - col("a")).sql() == "2 - a"
