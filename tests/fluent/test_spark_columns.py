"""Spark's columns at the edges of a built query."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from fluent_shop import assert_means, shop

from thalweg import col
from thalweg.errors import ConfigError

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def functions(spark: Any) -> Any:
    from pyspark.sql import functions

    import thalweg.spark.columns  # noqa: F401

    return functions


AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
COLUMNS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda f: f.col("price") > 100, "price > 100"),
    (lambda f: (f.col("t.price") + 1) * 2 <= -f.col("qty"), "(t.price + 1) * 2 <= -qty"),
    (lambda f: ~(f.col("sym") == "it's") | f.col("qty").isNull(),
     "NOT sym = 'it\\'s' OR qty IS NULL"),
    (lambda f: f.col("qty").isNotNull() & (f.col("qty") != 1), "qty IS NOT NULL AND NOT qty = 1"),
    (lambda f: f.col("sym").isin("a", "b"), "sym IN ('a', 'b')"),
    (lambda f: f.col("qty").between(1, 2), "qty >= 1 AND qty <= 2"),
    (lambda f: f.col("qty").eqNullSafe(None), "qty <=> NULL"),
    (lambda f: f.col("sym").like("a%") & f.col("sym").rlike("b"),
     "sym LIKE 'a%' AND sym RLIKE 'b'"),
    (lambda f: f.col("qty").bitwiseAND(3) % 2 == 0, "(qty & 3) % 2 = 0"),
    (lambda f: f.upper("sym"), "upper(sym)"),
    (lambda f: f.col("sym").substr(1, 2).startswith("x"), "startswith(substr(sym, 1, 2), 'x')"),
    (lambda f: f.date_trunc("hour", "ts"), "date_trunc('hour', ts)"),
    (lambda f: f.col("price").cast("bigint"), "CAST(price AS BIGINT)"),
    (lambda f: f.col("sym").try_cast("decimal(5,2)"), "TRY_CAST(sym AS DECIMAL(5, 2))"),
    (lambda f: f.when(f.col("qty") > 1, "a").when(f.col("qty") > 0, "b").otherwise("c"),
     "CASE WHEN qty > 1 THEN 'a' WHEN qty > 0 THEN 'b' ELSE 'c' END"),
    (lambda f: f.when(f.col("qty") > 1, 1), "CASE WHEN qty > 1 THEN 1 END"),
    (lambda f: f.expr("price + qty * 2"), "price + qty * 2"),
    (lambda f: f.col("ts") + f.lit(timedelta(minutes=5)), "ts + INTERVAL '5' MINUTES"),
    (lambda f: f.col("ts") < f.lit(AT), "ts < CAST('2026-01-02 03:04:05.678000' AS TIMESTAMP)"),
    (lambda f: f.lit(date(2026, 1, 2)), "CAST('2026-01-02' AS DATE)"),
    (lambda f: f.lit(Decimal("1.50")), "CAST('1.50' AS DECIMAL(3, 2))"),
    (lambda f: f.coalesce("qty", f.lit(2**40), f.lit(True)), "coalesce(qty, 1099511627776, TRUE)"),
    (lambda f: f.count("*"), "count(*)"),
    (lambda f: f.count_distinct("sym"), "count(DISTINCT sym)"),
    (lambda f: f.col("`a.b`"), "`a.b`"),
    (lambda f: f.col("t.*"), "t.*"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "text"), COLUMNS, ids=[text for _, text in COLUMNS])
def test_columns_are_read(functions: Any, column: Callable[[Any], Any], text: str) -> None:
    from thalweg.fluent.text import expression_text
    from thalweg.spark.columns import column_expression

    found = column_expression(column(functions))
    assert found is not None
    assert expression_text(found) == text


def test_columns_at_every_edge(functions: Any) -> None:
    f, home = functions, shop()
    built = (
        home["trades"].range("1 min").filter(f.col("price") > 10, col("qty") > f.lit(0))
        .group_by(f.upper("sym").alias("name"))
        .agg(f.sum("qty").alias("total"), n=f.count("*"))
        .having(f.max("price") < 1000).rstream().order_by(f.col("total").desc())
    )  # fmt: skip
    text = (
        "SELECT RSTREAM upper(sym) AS name, sum(qty) AS total, count(*) AS n "
        "FROM trades [RANGE 1 MINUTE] WHERE price > 10 AND qty > 0 GROUP BY upper(sym) "
        "HAVING max(price) < 1000 ORDER BY total DESC"
    )
    assert_means(home, built, text)
    query = built.query()
    home.run()
    assert query.results().num_rows > 0


def test_lag_over_a_window(functions: Any) -> None:
    from pyspark.sql.window import Window

    home = shop()
    spec = Window.partitionBy("sym").orderBy("ts")
    built = home["trades"].select("sym", before=functions.lag("price").over(spec))
    text = "SELECT sym, lag(price) OVER (PARTITION BY sym ORDER BY ts) AS before FROM trades"
    assert_means(home, built, text)


@pytest.mark.parametrize(
    "column",
    [
        lambda f: f.udf(lambda x: x)("sym"),
        lambda f: f.col("sym")[0],
        lambda f: f.transform("sym", lambda x: x),
        lambda f: f.lit(b"ab"),
        lambda f: f.col("a.b.c"),
        lambda f: f.lit([1, 2])[0],
    ],
)
def test_what_cannot_be_read_is_refused(functions: Any, column: Callable[[Any], Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        shop()["trades"].filter(column(functions))
    assert caught.value.remedy == "write it as SQL text"


def test_an_engine_reads_them(spark: Any) -> None:
    """`engine[...]` with nothing imported but the engine."""
    import pyarrow as pa
    from pyspark.sql import functions as f

    from thalweg import Engine

    with Engine(spark) as engine:
        engine.table("companies", pa.table({"sym": ["A"], "sector": ["tech"]}))
        assert engine["companies"].filter(f.col("sector") == "tech").sql() == (
            "SELECT *\nFROM companies\nWHERE sector = 'tech'"
        )
