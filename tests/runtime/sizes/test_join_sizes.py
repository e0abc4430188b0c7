"""Sizes of joins as users ask for them: over what lives, from statistics, measured, and refused."""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError, JoinTooLarge, NotAvailableYet, UnknownName
from thalweg.testing import Runner

SECOND = 1_000_000
COLUMNS = ["sources", "rows", "kind", "basis", "degrees", "formula"]


def stamped(rows: list[dict[str, Any]]) -> pa.Table:
    ts = pa.array([r.pop("ts") for r in rows], pa.timestamp("us", "UTC"))
    return pa.Table.from_pylist(rows).append_column("ts", ts)


def some(n: int, seed: int, keys: int = 5, step: int = SECOND) -> pa.Table:
    rng = random.Random(seed)
    return stamped(
        [{"k": rng.choice([*range(keys), None]), "v": i, "ts": i * step} for i in range(n)]
    )


def tables(**columns: list[Any]) -> Runner:
    runner = Runner()
    for name, values in columns.items():
        runner.table(name, pa.table({"k": values, "v": list(range(len(values)))}))
    return runner


JOIN = "SELECT a.v FROM a JOIN b ON a.k = b.k"


def test_a_join_of_tables_alone_is_counted() -> None:
    runner = tables(a=[1, 1, 2, None], b=[1, 2, 2, None])
    found = runner.bound(JOIN)
    assert (found.rows, found.kind, found.basis) == (4, "exact", "fresh")
    assert found.table.column_names == COLUMNS
    assert found.table.to_pylist()[-1]["sources"] == ["a", "b"]
    assert runner.bound(JOIN.replace("=", "<=>")).rows == 5
    assert runner.bound(f"{JOIN} WHERE a.v < 1").rows == 1
    bounded = runner.bound(f"{JOIN} WHERE a.v < b.v")
    assert (bounded.rows, bounded.kind) == (4, "bound")


def test_every_connected_part_is_there_the_whole_last() -> None:
    runner = tables(a=[1, 1], b=[1, 1], c=[1, 1])
    sql = "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON b.v = c.v"
    found = [(r["sources"], int(r["rows"])) for r in runner.bound(sql).table.to_pylist()]
    assert found == [(["a", "b"], 4), (["b", "c"], 2), (["a", "b", "c"], 4)]


@pytest.mark.parametrize(
    "window", ["[RANGE 7 SECONDS]", "[RANGE 6 SECONDS SLIDE 4 SECONDS]", "[ROWS 6]", "[NOW]",
               "[PARTITION BY k ROWS 2]", "[SESSION GAP 3 SECONDS]", "[UNBOUNDED]"],
)  # fmt: skip
def test_rows_of_windows_are_those_that_live(window: str) -> None:
    """As many as INVOKE counts (G.1.2)."""
    for seed in range(4):
        runner = Runner(epochs=3)
        rows = some(30, seed, step=3 * SECOND if "SESSION" in window else SECOND)
        runner.stream("s", rows, retain="1 day")
        runner.table("t", pa.table({"k": [0, 1, 1, 2, None]}))
        sql = f"SELECT s.v, t.k FROM s {window} JOIN t ON s.k = t.k"
        assert runner.bound(sql).rows == 0
        query = runner.query(f"{sql} WITH (unbounded = true)", name="q")
        runner.run()
        assert runner.bound(sql).rows == query.invoke().num_rows, seed


def test_rows_that_are_not_kept_are_unknown() -> None:
    """A window over the order of a stream keeps its own rows, which only its query sees."""
    runner = Runner()
    runner.stream("s", some(30, 1))
    runner.table("t", pa.table({"k": [0, 1]}))
    sql = "SELECT s.v, t.k FROM s [ROWS 6] JOIN t ON s.k = t.k"
    runner.query(sql, name="q")
    runner.run()
    assert (runner.bound(sql).rows, runner.bound(sql).kind) == (None, "unknown")
    assert "give s a RETAIN" in runner.sql("EXPLAIN BOUND q")
    assert "give s a RETAIN" in runner.sql("EXPLAIN ANALYZE q")


def test_degrees_may_be_sketched_and_say_so() -> None:
    rng = random.Random(1)
    runner = tables(
        a=[rng.randrange(9) for _ in range(200)], b=[rng.randrange(9) for _ in range(300)]
    )
    exact = runner.bound(JOIN).rows
    assert exact is not None
    for degrees, kind in (("cm_safe", "bound"), ("mg_safe", "bound"), ("sum_of_max", "bound")):
        found = runner.bound(JOIN, degrees=degrees)
        assert found.kind == kind
        assert found.rows is not None
        assert found.rows >= exact
        assert set(found.table["degrees"].to_pylist()) == {degrees}
    assert runner.bound(JOIN, degrees="mg_raw").kind == "estimate"


def test_statistics_bound_without_rows_and_are_of_one_version() -> None:
    rng = random.Random(2)
    runner = tables(
        a=[rng.randrange(40) for _ in range(500)], b=[rng.randrange(40) for _ in range(400)]
    )
    before = runner.bound(JOIN, basis="cached")
    assert (before.rows, before.kind) == (None, "unknown")
    assert "ANALYZE TABLE" in before.advice
    runner.sql("ANALYZE TABLE a, b")
    found = runner.bound(JOIN, basis="cached")
    assert (found.kind, found.basis) == ("bound", "cached")
    assert found.rows is not None
    assert found.rows >= (runner.bound(JOIN).rows or 0)
    runner.table("b", pa.table({"k": [1] * 1_000, "v": list(range(1_000))}))
    assert runner.bound(JOIN, basis="cached").kind == "unknown"
    runner.analyze("b", limit_bytes=50_000)
    assert (runner.bound(JOIN, basis="cached").rows or 0) >= (runner.bound(JOIN).rows or 0)


def test_statistics_of_a_stream_are_of_what_is_kept() -> None:
    runner = Runner()
    runner.stream("s", some(50, 3), retain="1 day")
    runner.query("SELECT k FROM s [RANGE 1 DAY] WHERE v < 5", name="q")
    runner.run()
    runner.sql("ANALYZE TABLE s")
    sql = "SELECT x.v FROM s [RANGE 20 SECONDS] x JOIN s [RANGE 1 DAY] y ON x.k = y.k"
    assert (runner.bound(sql, basis="cached").rows or 0) >= (runner.bound(sql).rows or 0) > 0


def test_explain_bound_says_what_explodes() -> None:
    runner = tables(a=[1] * 30, b=[1] * 20)
    text = runner.sql(f"EXPLAIN BOUND {JOIN}")
    assert "a ⋈ b: exactly 600 rows" in text
    assert "a ⋈ b explodes" in text.splitlines()[-1]


def test_explain_analyze_puts_bound_estimate_and_measurement_side_by_side() -> None:
    runner = tables(a=[1] * 30 + list(range(100, 170)), b=[1] * 20 + list(range(200, 280)))
    text = runner.sql(f"EXPLAIN ANALYZE {JOIN}")
    head, line = text.splitlines()[:2]
    assert head.split() == ["join", "bound", "(fresh)", "estimate", "measurement"]
    assert "600 (exact)" in line
    assert "(estimate)" in line
    assert "600 (measured)" in line
    assert "the estimate is" in text.splitlines()[-1]
    residual = runner.core.sizes.compare(f"{JOIN} WHERE a.v < b.v")
    made = sum(i < j for i in range(30) for j in range(20))
    assert residual.table.to_pylist()[-1]["measurement"] == made
    assert residual.table.to_pylist()[-1]["kind"] == "bound"


def test_explain_analyze_measures_every_part() -> None:
    rng = random.Random(4)
    runner = tables(**{n: [rng.choice([1, 2, 3, None]) for _ in range(12)] for n in "abc"})
    sql = "SELECT a.v FROM a JOIN b ON a.k <=> b.k JOIN c ON b.v = c.v AND a.v < c.k"
    found = runner.core.sizes.compare(sql).table.to_pylist()
    assert [r["sources"] for r in found] == [["a", "b"], ["b", "c"], ["a", "b", "c"]]
    keys = {n: runner.core.storage.read_table(runner.core.state.tables[n][0].name) for n in "abc"}
    rows = {n: t.to_pylist() for n, t in keys.items()}
    pairs = [(x, y) for x in rows["a"] for y in rows["b"] if x["k"] == y["k"]]
    whole = [
        1 for x, y in pairs for z in rows["c"]
        if y["v"] == z["v"] and z["k"] is not None and x["v"] < z["k"]
    ]  # fmt: skip
    assert [int(r["measurement"]) for r in found] == [len(pairs), 12, len(whole)]
    assert all(r["bound"] >= r["measurement"] for r in found)


def test_a_registered_query_is_explained_by_name() -> None:
    runner = Runner()
    runner.stream("s", some(20, 5), retain="1 day")
    runner.query("SELECT x.v FROM s [ROWS 5] x JOIN s [ROWS 5] y ON x.k = y.k", name="pairs")
    runner.run()
    assert "x ⋈ y: exactly" in runner.sql("EXPLAIN BOUND pairs")
    assert "(measured)" in runner.sql("EXPLAIN ANALYZE pairs")


def test_a_query_whose_join_is_too_large_is_refused() -> None:
    runner = Runner()
    runner.stream("s", some(200, 6, keys=2), retain="1 day")
    runner.query("SELECT k FROM s WHERE v < 0", name="keeps")
    runner.run()
    sql = (
        "SELECT x.v FROM s [RANGE 1 DAY] x JOIN s [RANGE 1 DAY] y ON x.k = y.k WITH (max_rows = {})"
    )
    size = runner.bound(sql.format(1)).rows
    assert size is not None
    with pytest.raises(JoinTooLarge, match=f"exactly {size:,} rows, over the rows that live now"):
        runner.query(sql.format(size - 1), name="refused")
    assert "refused" not in runner.queries
    assert runner.query(sql.format(size), name="admitted").status == "running"


def test_before_any_row_the_limits_of_windows_count() -> None:
    sql = "SELECT x.v FROM s {} x JOIN t ON x.k = t.k WITH (max_rows = 11)"
    runner = Runner()
    runner.stream("s", some(3, 7))
    runner.table("t", pa.table({"k": [1, 1]}))
    with pytest.raises(JoinTooLarge, match=r"at most 12 rows \(declared\), by the windows"):
        runner.query(sql.format("[ROWS 6]"), name="a")
    runner.query(sql.format("[ROWS 5]"), name="b")
    runner.query(sql.format("[RANGE 1 DAY]"), name="c")
    runner.run()
    runner.restart()
    assert {"b", "c"} <= set(runner.queries)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda r: r.bound(JOIN, basis="stale"), ConfigError, "fresh, cached"),
        (lambda r: r.bound(JOIN, degrees="guessed"), ConfigError, "use one of"),
        (lambda r: r.bound(JOIN, buckets=0), ConfigError, "buckets = 1"),
        (lambda r: r.analyze(), ConfigError, "name a table"),
        (lambda r: r.analyze("nope"), UnknownName, "nope"),
        (lambda r: r.bound("SELECT v FROM a UNION ALL SELECT v FROM b"), NotAvailableYet, "UNION"),
    ],
)
def test_what_cannot_be_answered_is_refused(call: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        call(tables(a=[1], b=[1]))


def test_joins_that_are_hard_have_an_answer() -> None:
    """Empty tables, constant columns, all NULL, heavy tails, disconnected, cyclic, 14 tables."""
    empty = tables(b=[1, 2])
    empty.table("a", pa.table({"k": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}))
    assert (empty.bound(JOIN).rows, empty.bound(JOIN).kind) == (0, "exact")
    assert tables(a=[7] * 9, b=[7] * 8).bound(JOIN).rows == 72
    nothing = tables(b=[None, 1])
    nothing.table("a", pa.table({"k": pa.array([None] * 4, pa.int64()), "v": list(range(4))}))
    assert nothing.bound(JOIN).rows == 0
    tail = [i for i in range(1, 60) for _ in range(120 // i)]
    assert tables(a=tail, b=tail).bound(JOIN).rows == sum((120 // i) ** 2 for i in range(1, 60))
    assert tables(a=[1, 2], b=[1, 2, 3]).bound("SELECT a.v FROM a, b").rows == 6
    ring = tables(a=[1, 2, 2], b=[2, 1, 2], c=[0, 1, 2])
    sql = "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.v = c.v AND c.k = a.v"
    found = ring.bound(sql)
    assert found.kind in ("bound", "exact")
    assert found.rows is not None
    many = tables(**{f"t{i}": [1, 1, 2] for i in range(14)})
    froms = ", ".join(f"t{i}" for i in range(14))
    on = " AND ".join(f"t{i}.k = t{i + 1}.k" for i in range(13))
    assert many.bound(f"SELECT t0.v FROM {froms} WHERE {on}").rows == 2**14 + 1


def test_outer_joins_are_bounded_with_rows_that_have_no_partner() -> None:
    runner = tables(a=[1, 1, 3, None], b=[1, 2, 2, None])
    assert (runner.bound(JOIN.replace("JOIN", "LEFT JOIN")).rows or 0) >= 4
    assert (runner.bound(JOIN.replace("JOIN", "FULL JOIN")).rows or 0) >= 7
    assert (runner.bound("SELECT v FROM a LEFT SEMI JOIN b ON a.k = b.k").rows or 0) >= 2
    assert not math.isnan(runner.bound("SELECT v FROM a WHERE k IN (SELECT k FROM b)").rows or 0)


def test_sysstream_tells_when_statistics_are_stale() -> None:
    """bounds #19: the detector fires when more is observed than the statistics bound, and a bound
    is made anew only when it is asked for, between two epochs."""
    runner = Runner(epochs=4)
    runner.stream("s", some(40, 8), retain="1 day")
    runner.query("SELECT k FROM s WHERE v < 0", name="keeps")
    watched = runner.query(
        "SELECT property, value FROM SysStream WHERE kind = 'statistics' AND entity = 's'",
        name="told",
    )
    sql = "SELECT x.v FROM s [RANGE 1 DAY] x JOIN s [RANGE 1 DAY] y ON x.k = y.k"
    kinds = []

    def analyze(number: int) -> None:
        if number == 2:
            runner.sql("ANALYZE TABLE s")
        kinds.append(runner.bound(sql, basis="cached").kind)

    runner.run(analyze)
    told = [(r["property"], r["value"]) for r in watched.results().to_pylist()]
    assert ("rows analyzed", 20.0) in told
    assert [v for n, v in told if n == "rows now"] == [30.0, 40.0]
    assert [v for n, v in told if n == "stale"] == [1.0, 1.0]
    assert kinds == ["unknown", "unknown", "bound", "unknown", "unknown"]
