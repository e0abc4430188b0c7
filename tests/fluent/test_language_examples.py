"""The examples of the language page, built in Python: the same logical plan, node by node."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from fluent_shop import assert_means, shop

from thalweg import col, fn, when
from thalweg.fluent.streams import Stream
from thalweg.fluent.text import query_text
from thalweg.lang.parsing.parser import parse_query
from thalweg.testing.runner import Runner

LANGUAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sql run\n(.*?)^```", LANGUAGE, re.M | re.S)
EXAMPLES = [
    " ".join(s.split())
    for b in BLOCKS
    for s in re.split(r";\s*\n", b)
    if s.strip() and not s.strip().startswith("CREATE")
]

Form = Callable[[Runner], Stream]
FORMS: dict[str, Form] = {
    "SELECT id, x FROM cars MODEL (x = x)":
    lambda r: r["cars"].model(x="x").select("id", "x"),

    "SELECT ISTREAM id, x FROM cars MODEL (x = x + v*t) FOR 10 SECONDS WHERE x > 100":
    lambda r: r["cars"].model(x="x + v*t", horizon="10 s").filter(col("x") > 100)
    .select("id", "x").istream(),

    "SELECT RSTREAM id, x, derivative(x) AS speed "
    "FROM cars MODEL (FIT x DEGREE 1 WITHIN 0.5 EVERY 5 MINUTES) SAMPLE EVERY 10 SECONDS":
    lambda r: r["cars"].fit("x", within=0.5, every="5 min")
    .select("id", "x", speed=fn.derivative(col("x"))).sample(every="10 s").rstream(),

    "SELECT RSTREAM id, avg(x) AS mean, integral(x) AS area, coverage(x) AS known "
    "FROM cars [RANGE 10 SECONDS SLIDE 5 SECONDS] MODEL (x = x) GROUP BY id "
    "HAVING coverage(x) > 0.9":
    lambda r: r["cars"].range("10 s", slide="5 s").model(x="x").group_by("id")
    .having(fn.coverage(col("x")) > 0.9)
    .agg(mean=fn.avg(col("x")), area=fn.integral(col("x")), known=fn.coverage(col("x"))).rstream(),

    "SELECT sum(x) AS total FROM cars MODEL (x = x)":
    lambda r: r["cars"].model(x="x").agg(total=fn.sum(col("x"))),

    "SELECT id FROM cars MODEL (x = x + v*t) WHERE x > 100 ERROR x WITHIN 0.5":
    lambda r: r["cars"].model(x=col("x") + col("v") * col("t")).filter("x > 100").select("id")
    .error(x=0.5),

    "SELECT a.id AS one, b.id AS other FROM cars a MODEL (x = x + v*t) FOR 1 MINUTE "
    "JOIN cars b MODEL (x = x + v*t) FOR 1 MINUTE ON a.id < b.id "
    "WHERE abs(a.x - b.x) < 5 WITH (release = 'eager')":
    lambda r: r["cars"].model(x="x + v*t", horizon="1 min").alias("a")
    .join(r["cars"].model(x="x + v*t", horizon="1 min").alias("b"), "a.id < b.id")
    .filter(fn.abs(col("a.x") - col("b.x")) < 5).select(one="a.id", other="b.id")
    .with_options(release="eager"),

    "SELECT RSTREAM t.sym, c.x FROM trades [NOW] t JOIN cars c MODEL (x = x) ON t.sym = c.id":
    lambda r: r["trades"].now().alias("t")
    .join(r["cars"].model(x="x").alias("c"), col("t.sym") == col("c.id"))
    .select("t.sym", "c.x").rstream(),

    "SELECT ISTREAM id, count(*) AS n FROM (SELECT id, x FROM cars MODEL (x = x) SAMPLE RATE 2) "
    "[RANGE 1 MINUTE] c GROUP BY id":
    lambda r: r["cars"].model(x="x").select("id", "x").sample(rate=2).range("1 min").alias("c")
    .group_by("id").agg(n=fn.count()).istream(),

    "SELECT ISTREAM sym, avg(price) AS mean FROM trades [RANGE 1 MINUTE] GROUP BY sym":
    lambda r: r["trades"].range("1 min").group_by("sym").agg(mean=fn.avg(col("price"))).istream(),

    "SELECT RSTREAM sym, count(*) AS n FROM trades [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY sym":
    lambda r: r["trades"].range("1 minute", slide=timedelta(seconds=10)).group_by(col("sym"))
    .agg(n=fn.count()).rstream(),

    "SELECT DSTREAM sym, price FROM trades [ROWS 3]":
    lambda r: r["trades"].rows(3).select("sym", col("price")).dstream(),

    "SELECT RSTREAM sym, max(price) AS top FROM trades [PARTITION BY sym ROWS 2] GROUP BY sym":
    lambda r: r["trades"].rows(2, by="sym").group_by("sym").agg("max(price) AS top").rstream(),

    "SELECT ISTREAM t.sym, t.price, q.bid FROM trades [NOW] t, quotes [RANGE 5 SECONDS] q "
    "WHERE t.sym = q.sym":
    lambda r: r["trades"].now().alias("t").join(r["quotes"].range("5 s").alias("q"), on="sym")
    .select("t.sym", "t.price", "q.bid").istream(),

    "SELECT sym, price FROM trades WHERE price > 100":
    lambda r: r["trades"].filter(col("price") > 100).select("sym", "price"),

    "SELECT sym, count(*) AS n FROM trades [RANGE 10 SECONDS] GROUP BY sym":
    lambda r: r["trades"].range("10 s").group_by("sym").agg(fn.count().alias("n")),

    "SELECT ISTREAM t.sym, t.price, q.bid FROM trades [NOW] t LEFT JOIN quotes [RANGE 5 SECONDS] q "
    "ON t.sym = q.sym":
    lambda r: r["trades"].now().alias("t")
    .join(r["quotes"].range("5 seconds").alias("q"), col("t.sym") == col("q.sym"), how="left")
    .select("t.sym", "t.price", "q.bid").istream(),

    "SELECT ISTREAM t.sym FROM trades [NOW] t LEFT ANTI JOIN companies c ON t.sym = c.sym":
    lambda r: r["trades"].now().alias("t").join(r["companies"].alias("c"), "sym", how="anti")
    .select("t.sym").istream(),

    "SELECT ISTREAM sym, price FROM trades [NOW] "
    "WHERE sym IN (SELECT sym FROM companies WHERE sector = 'tech')":
    lambda r: r["trades"].now()
    .filter(col("sym").isin(r["companies"].filter(col("sector") == "tech").select("sym")))
    .select("sym", "price").istream(),

    "SELECT sym FROM trades [RANGE 10 SECONDS] EXCEPT SELECT sym FROM quotes [RANGE 5 SECONDS]":
    lambda r: r["trades"].range("10 s").select("sym")
    .except_(r["quotes"].range("5 s").select("sym")),

    "SELECT RSTREAM max(b.n) AS busiest "
    "FROM (SELECT sym, count(*) AS n FROM trades [RANGE 1 MINUTE] GROUP BY sym) b":
    lambda r: r["trades"].range("1 min").group_by("sym").agg(n=fn.count()).alias("b")
    .agg(busiest=fn.max(col("b.n"))).rstream(),

    "SELECT ISTREAM t.sym, t.price FROM trades [NOW] t JOIN busy b ON t.sym = b.sym":
    lambda r: r["trades"].now().alias("t").join(r["busy"].alias("b"), "sym")
    .select("t.sym", "t.price").istream(),

    "SELECT ISTREAM s.sym, count(*) AS rises "
    "FROM (SELECT ISTREAM sym, max(price) AS top FROM trades [RANGE 1 MINUTE] GROUP BY sym) "
    "[RANGE 10 MINUTES] s GROUP BY s.sym":
    lambda r: r["trades"].range("1 min").group_by("sym").agg(top=fn.max(col("price"))).istream()
    .alias("s").range("10 min").group_by("s.sym").agg(rises=fn.count()).istream(),

    "SELECT ISTREAM t.sym, c.sector, sum(t.qty) AS volume "
    "FROM trades [RANGE 30 SECONDS] t JOIN companies c ON t.sym = c.sym WHERE c.sector = 'tech' "
    "GROUP BY t.sym, c.sector HAVING sum(t.qty) > 100":
    lambda r: r["trades"].range("30 s").alias("t").join(r["companies"].alias("c"), "sym")
    .filter(col("c.sector") == "tech").group_by("t.sym", "c.sector")
    .agg(volume=fn.sum(col("t.qty"))).having(fn.sum(col("t.qty")) > 100).istream(),

    "SELECT count(*) AS n, min(price) AS low, max(price) AS high FROM trades":
    lambda r: r["trades"].agg(n=fn.count(), low=fn.min(col("price")), high="max(price)"),

    "SELECT t.sym, q.bid FROM trades t, quotes q WHERE t.sym = q.sym WITH (unbounded = true)":
    lambda r: r["trades"].alias("t").join(r["quotes"].alias("q"), "t.sym = q.sym")
    .select("t.sym", "q.bid").with_options(unbounded=True),

    "SELECT sym, CASE WHEN price > 100 THEN 'high' ELSE 'low' END AS class FROM trades":
    lambda r: r["trades"].select("sym", when(col("price") > 100, "high").otherwise("low")
                                 .alias("class")),

    "SELECT sym, ts + INTERVAL 5 MINUTES AS later FROM trades WHERE price BETWEEN 10.5 AND 1e3":
    lambda r: r["trades"].filter(col("price").between(10.5, 1e3))
    .select("sym", later=col("ts") + timedelta(minutes=5)),

    "SELECT sym, CAST(price AS BIGINT) AS whole, TRY_CAST(sym AS INT) AS number FROM trades":
    lambda r: r["trades"].select("sym", whole=col("price").cast("BIGINT"),
                                 number=col("sym").try_cast("INT")),

    "SELECT sym FROM trades WHERE sym IN ('AAA', 'BBB') AND qty IS NOT NULL AND sym NOT LIKE 'Z%'":
    lambda r: r["trades"].filter(col("sym").isin("AAA", "BBB"), col("qty").is_not_null())
    .filter(~col("sym").like("Z%")).select("sym"),

    "SELECT upper(sym) AS name, round(price, 1) AS about, date_trunc('hour', ts) AS hour "
    "FROM trades WHERE length(sym) = 3 AND coalesce(qty, 0) > 0":
    lambda r: r["trades"].filter((fn.length(col("sym")) == 3) & (fn.coalesce(col("qty"), 0) > 0))
    .select(name=fn.upper(col("sym")), about=fn.round(col("price"), 1),
            hour=fn.date_trunc("hour", col("ts"))),

    "SELECT sym, 100 / qty AS share FROM trades WHERE price > 0":
    lambda r: r["trades"].where("price > 0").select("sym", share=100 / col("qty")),
}  # fmt: skip


@pytest.fixture(scope="module")
def home() -> Runner:
    return shop()


@pytest.mark.parametrize("text", FORMS)
def test_built_is_written(home: Runner, text: str) -> None:
    assert_means(home, FORMS[text](home), text)


@pytest.mark.parametrize("text", FORMS)
def test_built_gives_what_written_gives(text: str) -> None:
    home = shop(epochs=3, buckets=2)
    built = FORMS[text](home).query(name="built")
    written = home.query(text, name="written")
    home.run()
    rows = [sorted(map(repr, q.results().to_pylist())) for q in (built, written)]
    assert rows[0] == rows[1] != []


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_written_as_it_was_read(home: Runner, text: str) -> None:
    """Also those that have no form above: the text made of the tree means what was written."""
    again = query_text(parse_query(text))
    assert home.core.planner.bind(again).root == home.core.planner.bind(text).root


def test_the_examples_are_those_of_the_page() -> None:
    assert len(FORMS.keys() & set(EXAMPLES)) >= 20
