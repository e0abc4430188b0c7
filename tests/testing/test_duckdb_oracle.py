"""DuckDB as an independent oracle: what a relation holds at an instant is a plain SQL answer.

The content of a relation at τ is the sum of its signed rows up to τ. DuckDB computes the same from
the rows that the windows hold at τ. Thousands of rows, so that the vectorised paths are stressed.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from thalweg.testing.compare import column_values, from_table
from thalweg.testing.runner import Runner

SECOND = 1_000_000
ORDER = "ts, k NULLS FIRST, g NULLS FIRST, n NULLS FIRST, x NULLS FIRST"


@dataclass(frozen=True)
class Oracle:
    """Random streams, registered in both engines."""

    tables: dict[str, pa.Table]
    lateness: int

    @classmethod
    def random(cls, seed: int, rows: int, streams: int, *, keys: int, span: int) -> Oracle:
        """Streams of `rows` rows over `span` seconds; some keys and values are NULL."""
        rng = np.random.default_rng(seed)
        lateness = int(rng.choice([0, 5])) * SECOND
        tables = {
            f"s{i + 1}": _random_table(rng, rows, keys, span, lateness) for i in range(streams)
        }
        return cls(tables, lateness)

    @property
    def last(self) -> int:
        return max(max(column_values(t["ts"])) for t in self.tables.values())

    def run(self, sql: str, **how: Any) -> pa.Table:
        runner = Runner(**(how or {"epochs": 7, "buckets": 3, "switches": 5}))
        for name, table in self.tables.items():
            runner.stream(name, table, "ts", lateness=self.lateness)
        query = runner.query(sql)
        runner.run()
        assert query.rejects().num_rows == 0
        return query.results()

    def duckdb(self, sql: str) -> list[tuple[Any, ...]]:
        """Time is an integer of microseconds there: no zones, no surprises."""
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            for name, table in self.tables.items():
                plain = table.set_column(0, "ts", table["ts"].cast(pa.int64()))
                connection.register(name, plain)
            return connection.execute(sql).fetchall()

    def instants(self, seed: int, count: int) -> list[int]:
        """Some instants of the input, and the last one."""
        rng = np.random.default_rng(seed)
        stamps = column_values(self.tables["s1"]["ts"])
        return [*(int(t) for t in rng.choice(stamps, count)), self.last]


def _random_table(
    rng: np.random.Generator, rows: int, keys: int, span: int, lateness: int
) -> pa.Table:
    stamps = rng.integers(0, span, rows) * SECOND
    # arrival: at most `lateness` behind the latest row before
    order = np.argsort(stamps + rng.integers(0, lateness + 1, rows), kind="stable")
    return pa.table(
        {
            "ts": pa.array(stamps[order]).cast(pa.timestamp("us", "UTC")),
            "k": _nullable(rng, rng.integers(0, keys, rows)),
            "g": _nullable(rng, rng.integers(0, 7, rows).astype(np.int32)),
            "n": _nullable(rng, rng.integers(-1000, 1000, rows)),
            "x": _nullable(rng, rng.normal(0, 1e6, rows) * 10.0 ** rng.integers(-6, 3, rows)),
        }
    )


def _nullable(rng: np.random.Generator, values: np.ndarray) -> pa.Array:
    return pa.array(values, mask=rng.random(len(values)) < 0.05)


def content(results: pa.Table, instant: int) -> list[tuple[Any, ...]]:
    """The relation's rows at an instant: what was added and not taken away."""
    bag: Counter[tuple[Any, ...]] = Counter()
    for ts, sign, values in from_table(results):
        if ts <= instant:
            bag[values] += sign
    assert all(count >= 0 for count in bag.values()), "a row was taken away that was not there"
    return list(bag.elements())


def assert_same(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> None:
    """Equal bags, floats at 1e-9 relative."""
    assert len(ours) == len(theirs)
    for mine, other in zip(sorted(ours, key=_key), sorted(theirs, key=_key), strict=True):
        for a, b in zip(mine, other, strict=True):
            if isinstance(a, float) and isinstance(b, float):
                assert math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9), (mine, other)
            else:
                assert a == b, (mine, other)


def _key(row: tuple[Any, ...]) -> list[tuple[int, Any]]:
    """Whole numbers decide the order before floats that may differ in the last bit."""
    exact = [v for v in row if not isinstance(v, float)]
    rounded = [float(f"{v:.6g}") for v in row if isinstance(v, float)]
    return [(0, 0) if v is None else (1, v) for v in (*exact, *rounded)]


def in_range(name: str, alias: str, seconds: int, instant: int) -> str:
    low = instant - seconds * SECOND
    return f"(SELECT * FROM {name} WHERE ts BETWEEN {low} AND {instant}) {alias}"


@pytest.mark.parametrize("seed", range(4))
def test_two_ranges_joined(seed: int) -> None:
    oracle = Oracle.random(seed, 4_000, 2, keys=60, span=4_000)
    results = oracle.run(
        "SELECT a.k, a.n, b.n AS m, b.x FROM s1 [RANGE 200 SECONDS] a, s2 [RANGE 120 SECONDS] b "
        "WHERE a.k = b.k AND a.n > -500 AND a.g <> b.g"
    )
    for instant in oracle.instants(seed, 4):
        sources = f"{in_range('s1', 'a', 200, instant)}, {in_range('s2', 'b', 120, instant)}"
        theirs = oracle.duckdb(
            f"SELECT a.k, a.n, b.n, b.x FROM {sources} "
            "WHERE a.k = b.k AND a.n > -500 AND a.g <> b.g"
        )
        assert theirs
        assert_same(content(results, instant), theirs)


@pytest.mark.parametrize("seed", range(3))
def test_three_ranges_joined_in_a_chain(seed: int) -> None:
    oracle = Oracle.random(seed, 2_000, 3, keys=40, span=2_000)
    where = "a.k = b.k AND b.n % 50 = c.n % 50 AND a.g + c.g > 3"
    results = oracle.run(
        "SELECT a.k, a.n, b.n AS m, c.n AS o FROM s1 [RANGE 100 SECONDS] a, "
        f"s2 [RANGE 150 SECONDS] b, s3 [RANGE 60 SECONDS] c WHERE {where}"
    )
    for instant in oracle.instants(seed, 4):
        sources = ", ".join(
            in_range(name, alias, seconds, instant)
            for name, alias, seconds in (("s1", "a", 100), ("s2", "b", 150), ("s3", "c", 60))
        )
        theirs = oracle.duckdb(f"SELECT a.k, a.n, b.n, c.n FROM {sources} WHERE {where}")
        assert theirs
        assert_same(content(results, instant), theirs)


@pytest.mark.parametrize("seed", range(2))
def test_three_ranges_joined_on_one_key_and_grouped(seed: int) -> None:
    oracle = Oracle.random(seed, 2_000, 3, keys=100, span=2_000)
    select = "a.k, count(*) AS c, sum(a.n) AS s, avg(b.x) AS m, min(c.n) AS l, max(c.x) AS h"
    results = oracle.run(
        f"SELECT {select} FROM s1 [RANGE 300 SECONDS] a, s2 [RANGE 300 SECONDS] b, "
        "s3 [RANGE 200 SECONDS] c WHERE a.k = b.k AND b.k = c.k GROUP BY a.k"
    )
    for instant in oracle.instants(seed, 4):
        sources = ", ".join(
            in_range(name, alias, seconds, instant)
            for name, alias, seconds in (("s1", "a", 300), ("s2", "b", 300), ("s3", "c", 200))
        )
        theirs = oracle.duckdb(
            f"SELECT {select} FROM {sources} WHERE a.k = b.k AND b.k = c.k GROUP BY a.k"
        )
        assert_same(content(results, instant), theirs)


AGGREGATES = "count(*) AS c, count(x) AS d, sum(n) AS s, sum(x) AS t, avg(x) AS a, avg(n) AS b, "
AGGREGATES += "min(x) AS l, max(x) AS h, min(n) AS i, max(n) AS j"


def held(window: str, instant: int) -> str:
    """The rows of s1 that a window holds at an instant, as a subquery."""
    words = window.split()
    if "SLIDE" in words:
        length, slide = int(words[1]) * SECOND, int(words[4]) * SECOND
        boundary = instant // slide * slide
        return f"(SELECT * FROM s1 WHERE ts >= {boundary - length} AND ts < {boundary})"
    if words[0] == "RANGE":
        return in_range("s1", "", int(words[1]), instant)
    partition = "PARTITION BY k" if words[0] == "PARTITION" else ""
    backwards = ", ".join(f"{part.split()[0]} DESC NULLS LAST" for part in ORDER.split(", "))
    rank = f"row_number() OVER ({partition} ORDER BY {backwards})"
    return (
        f"(SELECT * FROM (SELECT *, {rank} AS rank FROM s1 WHERE ts <= {instant}) "
        f"WHERE rank <= {int(words[-1])})"
    )


WINDOWS = (
    "RANGE 90 SECONDS",
    "RANGE 700 SECONDS",
    "RANGE 60 SECONDS SLIDE 60 SECONDS",
    "RANGE 300 SECONDS SLIDE 40 SECONDS",
    "ROWS 1",
    "ROWS 250",
    "PARTITION BY k ROWS 3",
)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("keys", ["k", "k, g"])
def test_grouped_aggregates(window: str, keys: str) -> None:
    oracle = Oracle.random(len(window) + len(keys), 3_000, 1, keys=40, span=3_000)
    results = oracle.run(f"SELECT {keys}, {AGGREGATES} FROM s1 [{window}] GROUP BY {keys}")
    for instant in oracle.instants(1, 6):
        theirs = oracle.duckdb(
            f"SELECT {keys}, {AGGREGATES} FROM {held(window, instant)} GROUP BY {keys}"
        )
        assert_same(content(results, instant), theirs)


@pytest.mark.parametrize("window", WINDOWS)
def test_aggregates_of_everything(window: str) -> None:
    oracle = Oracle.random(len(window), 3_000, 1, keys=40, span=2_000)
    results = oracle.run(f"SELECT {AGGREGATES} FROM s1 [{window}] WHERE n <> 7")
    for instant in oracle.instants(2, 6):
        theirs = oracle.duckdb(f"SELECT {AGGREGATES} FROM {held(window, instant)} WHERE n <> 7")
        assert_same(content(results, instant), theirs)


@pytest.mark.parametrize("window", WINDOWS)
def test_rows_of_a_window(window: str) -> None:
    oracle = Oracle.random(len(window) + 50, 6_000, 1, keys=200, span=5_000)
    results = oracle.run(f"SELECT k, n, x FROM s1 [{window}] WHERE g IS NOT NULL")
    for instant in oracle.instants(3, 6):
        theirs = oracle.duckdb(f"SELECT k, n, x FROM {held(window, instant)} WHERE g IS NOT NULL")
        assert_same(content(results, instant), theirs)


def test_many_rows_in_one_go() -> None:
    oracle = Oracle.random(9, 60_000, 2, keys=5_000, span=60_000)
    results = oracle.run(
        "SELECT a.k, count(*) AS c, sum(b.x) AS s FROM s1 [RANGE 5000 SECONDS] a, "
        "s2 [RANGE 5000 SECONDS] b WHERE a.k = b.k GROUP BY a.k",
        epochs=3,
        buckets=2,
    )
    sources = f"{in_range('s1', 'a', 5000, oracle.last)}, {in_range('s2', 'b', 5000, oracle.last)}"
    theirs = oracle.duckdb(
        f"SELECT a.k, count(*), sum(b.x) FROM {sources} WHERE a.k = b.k GROUP BY a.k"
    )
    assert len(theirs) > 300
    assert_same(content(results, oracle.last), theirs)


@pytest.mark.parametrize(
    "operators",
    [("UNION", "INTERSECT"), ("EXCEPT", "INTERSECT"), ("INTERSECT", "EXCEPT"), ("EXCEPT", "UNION")],
)
def test_set_operations_bind_as_in_duckdb(operators: tuple[str, str]) -> None:
    """Over everything there is, at the end."""
    first, second = operators
    runner = Runner()
    sets = {"a": [1, 2, 3, 4], "b": [3, 4, 5, 6], "c": [4, 6, 7]}
    text = f"SELECT k FROM a {first} SELECT k FROM b {second} SELECT k FROM c"
    with duckdb.connect() as connection:
        for name, values in sets.items():
            table = pa.table(
                {"k": values, "ts": pa.array([0] * len(values), pa.timestamp("us", "UTC"))}
            )
            runner.stream(name, table)
            connection.register(name, table)
        expected = sorted(k for (k,) in connection.execute(text).fetchall())
    query = runner.query(f"{text} WITH (unbounded = true)", "q")
    runner.run()
    rows = query.results().to_pylist()
    assert all(row["__sign"] == 1 for row in rows)
    assert sorted(row["k"] for row in rows) == expected
