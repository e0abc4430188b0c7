"""Every method, against the SQL it stands for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from fluent_shop import assert_means, assert_round_trip, shop

from thalweg import col, fn, lit, when
from thalweg.fluent.streams import Stream
from thalweg.testing.runner import Runner

CET = timezone(timedelta(hours=1))
Form = Callable[[Runner], Stream]


@pytest.fixture(scope="module")
def home() -> Runner:
    return shop()


def trades(r: Runner) -> Stream:
    return r["trades"]


CASES: list[tuple[Form, str]] = [
    # windows
    (lambda r: trades(r).now(), "SELECT * FROM trades [NOW]"),
    (lambda r: trades(r).unbounded(), "SELECT * FROM trades [UNBOUNDED]"),
    (lambda r: trades(r).range(1_500_000), "SELECT * FROM trades [RANGE 1500 MILLISECONDS]"),
    (lambda r: trades(r).range("0 s"), "SELECT * FROM trades [RANGE 0 SECONDS]"),
    (lambda r: trades(r).range("1 week", "1 d"), "SELECT * FROM trades [RANGE 7 DAYS SLIDE 1 DAY]"),
    (lambda r: trades(r).rows(2, by=["sym", col("qty")]),
     "SELECT * FROM trades [PARTITION BY sym, qty ROWS 2]"),
    (lambda r: trades(r).session("30 min", by="sym"),
     "SELECT * FROM trades [PARTITION BY sym SESSION GAP 30 MINUTES]"),
    (lambda r: trades(r).session("30 min").group_by("sym").agg(n=fn.count()),
     "SELECT sym, count(*) AS n FROM trades [SESSION GAP 30 MINUTES] GROUP BY sym"),
    (lambda r: trades(r).landmark("2026-01-01"), "SELECT * FROM trades [LANDMARK '2026-01-01']"),
    (lambda r: trades(r).landmark(date(2026, 1, 1)),
     "SELECT * FROM trades [LANDMARK DATE '2026-01-01']"),
    (lambda r: trades(r).landmark(every="1 day"), "SELECT * FROM trades [LANDMARK EVERY 1 DAY]"),
    (lambda r: trades(r).between("2026-01-01", datetime(2026, 1, 2, 3, tzinfo=UTC)),
     "SELECT * FROM trades [FROM TIMESTAMP '2026-01-01' TO TIMESTAMP '2026-01-02 03:00:00']"),
    # names
    (lambda r: trades(r).alias("t").select("t.sym"), "SELECT t.sym FROM trades t"),
    (lambda r: r["Trades"].select("Trades.sym"), "SELECT Trades.sym FROM Trades"),
    (lambda r: r["odd stream"].select(col("unit price"), col("select"), col("`a``b`")),
     "SELECT `unit price`, `select`, `a``b` FROM `odd stream`"),
    (lambda r: trades(r).alias("order").select("`order`.sym"),
     "SELECT `order`.sym FROM trades AS `order`"),
    (lambda r: trades(r).select(**{"from": "sym", "a b": col("qty")}),
     "SELECT sym AS `from`, qty AS `a b` FROM trades"),
    # filters
    (lambda r: trades(r).filter("price > 1 OR qty > 2", col("sym") == "A"),
     "SELECT * FROM trades WHERE (price > 1 OR qty > 2) AND sym = 'A'"),
    (lambda r: trades(r).filter("price > 1").filter("qty > 2").where(col("sym") != "x"),
     "SELECT * FROM trades WHERE price > 1 AND qty > 2 AND sym <> 'x'"),
    (lambda r: trades(r).filter(True), "SELECT * FROM trades WHERE TRUE"),
    (lambda r: trades(r).now().filter("sym NOT IN (SELECT sym FROM companies)"),
     "SELECT * FROM trades [NOW] WHERE sym NOT IN (SELECT sym FROM companies)"),
    (lambda r: trades(r).now().filter(~col("sym").isin(r["companies"].select("sym"))),
     "SELECT * FROM trades [NOW] WHERE sym NOT IN (SELECT sym FROM companies)"),
    # each method applies to what stands before it
    (lambda r: trades(r).filter("price > 1").rows(3),
     "SELECT * FROM (SELECT * FROM trades WHERE price > 1) [ROWS 3] trades"),
    (lambda r: trades(r).select("sym", "price").filter("price > 1"),
     "SELECT * FROM (SELECT sym, price FROM trades) trades WHERE price > 1"),
    (lambda r: trades(r).now().group_by("sym").agg(n=fn.count()).filter("n > 2"),
     "SELECT * FROM (SELECT sym, count(*) AS n FROM trades [NOW] GROUP BY sym) trades WHERE n > 2"),
    (lambda r: trades(r).now().select("sym").select(s="sym"),
     "SELECT sym AS s FROM (SELECT sym FROM trades [NOW]) trades"),
    (lambda r: trades(r).now().distinct().select("sym"),
     "SELECT sym FROM (SELECT DISTINCT * FROM trades [NOW]) trades"),
    (lambda r: trades(r).now().select("sym").distinct(), "SELECT DISTINCT sym FROM trades [NOW]"),
    (lambda r: trades(r).now().select("sym").istream().rows(2).dstream(),
     "SELECT DSTREAM * FROM (SELECT ISTREAM sym FROM trades [NOW]) [ROWS 2] trades"),
    (lambda r: trades(r).select("sym").with_options(unbounded=True).alias("x").distinct(),
     "SELECT DISTINCT * FROM (SELECT sym FROM trades) x WITH (unbounded = true)"),
    # joins
    (lambda r: trades(r).now().join(r["quotes"].now(), on="sym").select("bid"),
     "SELECT bid FROM trades [NOW] JOIN quotes [NOW] ON trades.sym = quotes.sym"),
    (lambda r: trades(r).now().alias("t").join("companies", ["sym", "t.qty > 1"]).select("sector"),
     "SELECT sector FROM trades [NOW] t JOIN companies ON t.sym = companies.sym AND t.qty > 1"),
    (lambda r: trades(r).now().alias("t").join(r["quotes"].now().alias("q"), how="cross")
     .select("bid"),
     "SELECT bid FROM trades [NOW] t CROSS JOIN quotes [NOW] q"),
    (lambda r: trades(r).now().join(r["quotes"].now(), "sym", "right").select("bid"),
     "SELECT bid FROM trades [NOW] RIGHT JOIN quotes [NOW] ON trades.sym = quotes.sym"),
    (lambda r: trades(r).now().join(r["quotes"].now(), "sym", "FULL OUTER").select("bid"),
     "SELECT bid FROM trades [NOW] FULL JOIN quotes [NOW] ON trades.sym = quotes.sym"),
    (lambda r: trades(r).now().join(r["quotes"].now(), "sym", "left_semi").select("qty"),
     "SELECT qty FROM trades [NOW] LEFT SEMI JOIN quotes [NOW] ON trades.sym = quotes.sym"),
    (lambda r: trades(r).alias("t").now().join(r["quotes"].alias("q"), ["sym", "t.ts >= q.ts"],
                                               "asof").select("t.sym", "bid"),
     "SELECT t.sym, bid FROM trades [NOW] t ASOF JOIN quotes q ON t.sym = q.sym AND t.ts >= q.ts"),
    (lambda r: trades(r).alias("t").now().join(r["quotes"].alias("q").range("5 s"),
                                               ["sym", "t.ts >= q.ts"], "left asof").select("bid"),
     "SELECT bid FROM trades [NOW] t LEFT ASOF JOIN quotes [RANGE 5 SECONDS] q "
     "ON t.sym = q.sym AND t.ts >= q.ts"),
    # ... and what was filtered before a join means the same after it
    (lambda r: trades(r).now().filter("sym = 'A'").join(r["quotes"].now().filter("ts > ts"), "sym")
     .select("bid"),
     "SELECT bid FROM trades [NOW] JOIN quotes [NOW] ON trades.sym = quotes.sym "
     "WHERE trades.sym = 'A' AND quotes.ts > quotes.ts"),
    (lambda r: trades(r).now().filter("sym = 'A'").join(r["quotes"].now().filter("bid > 1"), "sym",
                                                        "left").select("bid"),
     "SELECT bid FROM trades [NOW] LEFT JOIN (SELECT * FROM quotes [NOW] WHERE bid > 1) quotes "
     "ON trades.sym = quotes.sym WHERE trades.sym = 'A'"),
    (lambda r: trades(r).now().filter("sym = 'A'").join(r["quotes"].now(), "sym", "full")
     .select("bid"),
     "SELECT bid FROM (SELECT * FROM trades [NOW] WHERE sym = 'A') trades FULL JOIN quotes [NOW] "
     "ON trades.sym = quotes.sym"),
    (lambda r: trades(r).now().join(
        r["quotes"].now().alias("q").join(r["companies"].alias("c"), "sym"),
        "trades.sym = q.sym").select("bid"),
     "SELECT bid FROM trades [NOW] JOIN (quotes [NOW] q JOIN companies c ON q.sym = c.sym) "
     "ON trades.sym = q.sym"),
    # groups
    (lambda r: trades(r).now().group_by(hour=fn.hour(col("ts"))).agg(n=fn.count()),
     "SELECT hour(ts) AS hour, count(*) AS n FROM trades [NOW] GROUP BY hour(ts)"),
    (lambda r: trades(r).now().group_by("hour(ts) AS h").agg("count(*)"),
     "SELECT hour(ts) AS h, count(*) FROM trades [NOW] GROUP BY hour(ts)"),
    (lambda r: trades(r).now().group_by("sym").having("count(*) > 1", fn.sum(col("qty")) > 2)
     .having("max(price) > 3").select(n=fn.count()),
     "SELECT count(*) AS n FROM trades [NOW] GROUP BY sym "
     "HAVING count(*) > 1 AND sum(qty) > 2 AND max(price) > 3"),
    (lambda r: trades(r).now().rollup("sym", "qty").agg(n=fn.count()),
     "SELECT sym, qty, count(*) AS n FROM trades [NOW] GROUP BY ROLLUP (sym, qty)"),
    (lambda r: trades(r).now().cube(("sym", "qty"), "price").agg(g=fn.grouping(col("sym"))),
     "SELECT sym, qty, price, grouping(sym) AS g FROM trades [NOW] "
     "GROUP BY CUBE ((sym, qty), price)"),
    (lambda r: trades(r).now().grouping_sets(("sym", "qty"), ["sym"], ()).agg(n=fn.count()),
     "SELECT sym, qty, count(*) AS n FROM trades [NOW] GROUP BY GROUPING SETS ((sym, qty), (sym), "
     "())"),
    (lambda r: trades(r).now().agg(n=fn.count(col("sym")).distinct(),
                                   big=fn.sum(col("qty")).filter(col("price") > 1)),
     "SELECT count(DISTINCT sym) AS n, sum(qty) FILTER (WHERE price > 1) AS big FROM trades [NOW]"),
    (lambda r: trades(r).now().agg(m=fn.percentile_cont(0.5).within_group("price")),
     "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS m FROM trades [NOW]"),
    (lambda r: trades(r).select("sym", before=fn.lag(col("price"), 1, 0.5).over("sym", "ts"),
                                n=fn.row_number().over()),
     "SELECT sym, lag(price, 1, 0.5) OVER (PARTITION BY sym ORDER BY ts) AS before, "
     "row_number() OVER () AS n FROM trades"),
    # set operations
    (lambda r: trades(r).now().select("sym").union(r["quotes"].now().select("sym"), all=True)
     .intersect(r["busy"]).istream(),
     "(SELECT ISTREAM sym FROM trades [NOW] UNION ALL SELECT sym FROM quotes [NOW]) "
     "INTERSECT SELECT * FROM busy"),
    (lambda r: r["busy"].except_(r["busy"].union("busy"), all=True),
     "SELECT * FROM busy EXCEPT ALL (SELECT * FROM busy UNION SELECT * FROM busy)"),
    (lambda r: trades(r).select("sym").with_options(unbounded=True)
     .union(r["quotes"].select("sym")),
     "SELECT sym FROM trades UNION SELECT sym FROM quotes WITH (unbounded = true)"),
    (lambda r: trades(r).select("sym").union(r["busy"].union("busy")).with_options(unbounded=True),
     "SELECT sym FROM trades UNION (SELECT * FROM busy UNION SELECT * FROM busy) "
     "WITH (unbounded = true)"),
    (lambda r: trades(r).now().select("sym").istream().union(r["busy"])
     .with_options(unbounded=True),
     "SELECT * FROM (SELECT ISTREAM sym FROM trades [NOW]) trades UNION SELECT * FROM busy "
     "WITH (unbounded = true)"),
    (lambda r: r["busy"].union("busy").filter("sym > 'A'"),
     "SELECT * FROM (SELECT * FROM busy UNION SELECT * FROM busy) WHERE sym > 'A'"),
    (lambda r: r["busy"].union("busy").rstream().order_by("sym").limit(2),
     "SELECT RSTREAM * FROM busy UNION SELECT * FROM busy ORDER BY sym LIMIT 2"),
    # order and options
    (lambda r: trades(r).now().select("sym", "price").rstream()
     .order_by(col("price").desc(), "sym DESC NULLS FIRST", col("sym").asc()).limit(3),
     "SELECT RSTREAM sym, price FROM trades [NOW] "
     "ORDER BY price DESC, sym DESC NULLS FIRST, sym LIMIT 3"),
    (lambda r: trades(r).select("sym").with_options(filters="a-greedy").with_options(
        state_limit=10, filters="fixed"),
     "SELECT sym FROM trades WITH (filters = 'fixed', state_limit = 10)"),
    (lambda r: trades(r).now().select("sym").into("files", "out", format="CSV").istream(),
     "SELECT ISTREAM sym FROM trades [NOW] INTO FILES 'out' FORMAT csv"),
    (lambda r: r["busy"].union("busy").with_options(state_limit=9).into("changelog", "it's"),
     "SELECT * FROM busy UNION SELECT * FROM busy INTO CHANGELOG 'it\\'s' WITH (state_limit = 9)"),
    (lambda r: trades(r).select("sym").into("spark", "kafka", **{"kafka.topic-x": "t", "n": 2}),
     "SELECT sym FROM trades INTO SPARK 'kafka' OPTIONS (kafka.`topic-x` = 't', n = 2)"),
    (lambda r: trades(r).select("sym").into("console"), "SELECT sym FROM trades INTO CONSOLE"),
    (lambda r: r["trades.rejects"].select("sym"), "SELECT sym FROM trades.rejects"),
    # values
    (lambda r: trades(r).filter(col("ts") < datetime(2026, 1, 1, tzinfo=CET)),
     "SELECT * FROM trades WHERE ts < CAST('2025-12-31 23:00:00' AS TIMESTAMP)"),
    (lambda r: trades(r).select(a=lit(None).cast("INT"), b=1, c=-2.5, d=True, e=lit("x")),
     "SELECT CAST(NULL AS INT) AS a, 1 AS b, -2.5 AS c, TRUE AS d, 'x' AS e FROM trades"),
    (lambda r: trades(r).select(a=when("qty > 1", 1).when(col("qty") > 0, 2),
                                b=fn.if_(col("qty") > 1, "a", "b")),
     "SELECT CASE WHEN qty > 1 THEN 1 WHEN qty > 0 THEN 2 END AS a, if(qty > 1, 'a', 'b') AS b "
     "FROM trades"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "text"), CASES, ids=[text for _, text in CASES])
def test_built_is_written(home: Runner, form: Form, text: str) -> None:
    assert_means(home, form(home), text)


def test_values_do_not_change() -> None:
    home = shop()
    base = home["trades"].now()
    price = col("price")
    before = (base.sql(), price.sql())
    base.filter(price > 1).join(home["quotes"].now(), "sym").select(price).istream()
    _ = (price + 1).alias("x"), price.desc(), price.isin(1)
    assert (base.sql(), price.sql()) == before


def test_conditions_of_a_join_leave_the_sides_alone() -> None:
    home = shop()
    left = home["trades"].now().filter("sym = 'A'")
    left.join(home["quotes"].now(), "sym")
    assert left.sql().endswith("WHERE sym = 'A'")


def test_a_view_is_read_on() -> None:
    home = shop()
    many = home["trades"].range("1 min").group_by("sym").agg(n=fn.count()).view("many trades")
    assert many.sql() == "SELECT *\nFROM `many trades`"
    query = many.filter("n > 1").istream().query("more")
    home.run()
    assert {r["sym"] for r in query.results().to_pylist()} == {"AAA", "BBB"}
    assert home["more"].select("sym").sql() == "SELECT sym\nFROM more"


def test_queries_are_those_of_the_engine() -> None:
    """Name, callback, attaching again and going on after restarts: all as with text."""
    home = shop(epochs=4, restarts=(1, 2))
    seen: list[int] = []
    built = home["trades"].range("8 s").group_by("sym").agg(n=fn.count())
    built.query(name="counts")
    query = built.query(name="counts", callback=lambda table: seen.append(table.num_rows))
    assert query.text == built.sql()
    assert home["trades"].select("sym").query().name == "q1"
    home.run()
    assert sum(seen) >= query.results().num_rows > 0  # after a restart the last one comes again
    plain = shop()
    other = plain.query(built.sql())
    plain.run()
    assert sorted(map(repr, query.results().to_pylist())) == sorted(
        map(repr, other.results().to_pylist())
    )


def test_explain_is_that_of_the_text(home: Runner) -> None:
    built = home["trades"].now().select("sym")
    assert built.explain() == home.explain("SELECT sym FROM trades [NOW]")


@pytest.mark.parametrize(
    "text", ["EXISTS (SELECT sym FROM busy)", "qty = (SELECT 1 AS a FROM busy)"]
)
def test_what_the_binder_does_not_know_is_written_all_the_same(home: Runner, text: str) -> None:
    assert_round_trip(home["trades"].now().filter(text))
