"""Small random streams as files, one query per class of operator, and what they must emit.

Run as a script it is a driver of its own: `python cases.py MASTER FOLDER` runs the queries over the
files of the folder and writes their results there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from thalweg.testing.compare import difference, from_table
from thalweg.testing.random_streams import (
    STREAM_TYPES,
    GeneratedStream,
    Shape,
    random_stream,
    random_table,
)
from thalweg.testing.runner import Runner

SHAPE = Shape("SECONDS", 20, 0, wild=True, large=False)
SCHEMA = "ts TIMESTAMP, k BIGINT, g INT, s STRING, x DOUBLE, n BIGINT"
ROWS = 24

QUERIES = {
    "filter": "SELECT k, x * 2 AS y, upper(s) AS u FROM s1 WHERE n > 1 AND x IS NOT NULL",
    "now": "SELECT ISTREAM k, s FROM s1 [NOW]",
    "range": "SELECT k, s FROM s1 [RANGE 5 SECONDS] WHERE g < 3",
    "slide": "SELECT k, sum(x) AS t, count(*) AS c FROM s2 [RANGE 6 SECONDS SLIDE 3 SECONDS] "
    "GROUP BY k",
    "rows": "SELECT k, n FROM s1 [ROWS 3]",
    "partition": "SELECT k, s, x FROM s2 [PARTITION BY k ROWS 2]",
    "unbounded": "SELECT k, max(n) AS m, min(x) AS l FROM s1 [UNBOUNDED] GROUP BY k "
    "WITH (unbounded = true)",
    "join": "SELECT a.k, a.x, b.n FROM s1 [RANGE 4 SECONDS] a, s2 [RANGE 6 SECONDS] b "
    "WHERE a.k = b.k AND a.g <= b.g",
    "join rows": "SELECT a.n, b.n AS m FROM s1 [ROWS 4] a, s2 [PARTITION BY k ROWS 1] b "
    "WHERE a.k = b.k",
    "three, one key": "SELECT ISTREAM a.n, b.n AS bn, c.n AS cn FROM s1 [RANGE 3 SECONDS] a, "
    "s2 [RANGE 3 SECONDS] b, s2 [NOW] c WHERE a.k = b.k AND b.k = c.k",
    "three, two keys": "SELECT a.n, b.n AS bn, c.n AS cn FROM s1 [RANGE 2 SECONDS] a, "
    "s2 [RANGE 4 SECONDS] b, s1 [RANGE 3 SECONDS] c WHERE a.k = b.k AND b.g = c.g",
    "self": "SELECT ISTREAM a.n, b.n AS m FROM s1 [NOW] a, s1 [RANGE 3 SECONDS] b WHERE a.k = b.k",
    "table": "SELECT a.k, a.x, t.w FROM s1 [RANGE 5 SECONDS] a, t WHERE a.k = t.k",
    "grouped": "SELECT k, g, count(*) AS c, sum(x) AS t, avg(n) AS a, min(s) AS lo, max(n) AS hi "
    "FROM s1 [RANGE 8 SECONDS] GROUP BY k, g HAVING count(*) > 1",
    "joined groups": "SELECT RSTREAM a.k, count(*) AS c, max(b.x) AS m "
    "FROM s1 [RANGE 4 SECONDS] a, s2 [RANGE 4 SECONDS] b WHERE a.k = b.k GROUP BY a.k",
    "global": "SELECT count(*) AS c, sum(n) AS t, avg(x) AS a, min(x) AS lo, max(x) AS hi "
    "FROM s2 [RANGE 4 SECONDS]",
    "istream": "SELECT ISTREAM k, g FROM s2 [RANGE 3 SECONDS]",
    "dstream": "SELECT DSTREAM k, g FROM s2 [RANGE 3 SECONDS]",
    "rstream": "SELECT RSTREAM k, g FROM s2 [RANGE 3 SECONDS]",
    "left join": "SELECT a.k, a.n, b.n AS m FROM s1 [RANGE 4 SECONDS] a "
    "LEFT JOIN s2 [RANGE 3 SECONDS] b ON a.k = b.k AND a.x < b.x",
    "full join": "SELECT ISTREAM a.k, b.k AS j, b.n FROM s1 [RANGE 2 SECONDS] a "
    "FULL JOIN s2 [RANGE 3 SECONDS] b ON a.k = b.k",
    "anti join": "SELECT a.k, a.s FROM s1 [RANGE 4 SECONDS] a "
    "LEFT ANTI JOIN s2 [RANGE 4 SECONDS] b ON a.k = b.k",
    "distinct": "SELECT DISTINCT k, g FROM s2 [RANGE 3 SECONDS]",
    "except": "SELECT k FROM s1 [RANGE 4 SECONDS] EXCEPT ALL SELECT k FROM s2 [RANGE 4 SECONDS]",
    "union": "SELECT ISTREAM k, x FROM s1 [RANGE 4 SECONDS] UNION SELECT k, x FROM s2 [ROWS 3]",
    "subquery": "SELECT a.k, a.n, q.c FROM s1 [NOW] a, "
    "(SELECT k, count(*) AS c FROM s2 [RANGE 5 SECONDS] GROUP BY k) q WHERE a.k = q.k",
    "emitted": "SELECT q.k, count(*) AS c FROM (SELECT ISTREAM k, max(n) AS m "
    "FROM s1 [RANGE 4 SECONDS] GROUP BY k) [RANGE 3 SECONDS] q GROUP BY q.k",
    "session": "SELECT ISTREAM k, count(*) AS c, first(x) AS o, last(x) AS z "
    "FROM s1 [SESSION GAP 2 SECONDS] GROUP BY k",
    "landmark": "SELECT k, count(DISTINCT g) AS d, variance(x) AS v FROM s2 "
    "[LANDMARK EVERY 7 SECONDS] GROUP BY k",
    "lists": "SELECT k, array_agg(g) AS l, string_agg(DISTINCT s, '; ') AS t, median(n) AS m, "
    "mode(s) AS o FROM s1 [RANGE 5 SECONDS] GROUP BY k",
    "rollup": "SELECT k, g, grouping(g) AS whole, sum(n) AS t FROM s2 [RANGE 4 SECONDS] "
    "GROUP BY ROLLUP (k, g)",
    "asof": "SELECT ISTREAM a.k, a.n, b.n AS m FROM s1 [NOW] a LEFT ASOF JOIN s2 b ON a.k = b.k",
    "lag": "SELECT k, n - LAG(n) OVER (PARTITION BY k ORDER BY ts) AS rise FROM s1",
    "top": "SELECT RSTREAM k, count(*) AS c FROM s2 [RANGE 6 SECONDS SLIDE 3 SECONDS] "
    "GROUP BY k ORDER BY c DESC, k LIMIT 2",
    "closing": "SELECT date_trunc('minute', ts) AS m, k, count(*) AS c FROM s1 "
    "GROUP BY date_trunc('minute', ts), k",
    "function": "SELECT k, twice(n) AS d FROM s1 WHERE odd(n)",
}

# One of each kind of routing and state, for masters that are slow to start.
ABROAD = ("filter", "rows", "partition", "join", "three, two keys", "table", "grouped", "function",
          "left join", "subquery", "session", "asof", "lists")  # fmt: skip


def query_name(title: str) -> str:
    return title.replace(", ", "_").replace(" ", "_")


def generated(seed: str) -> GeneratedStream:
    """A random stream that has every column."""
    rng = Random(seed)
    while True:
        found = random_stream(rng, SHAPE, ROWS)
        if len(found.table.column_names) == len(STREAM_TYPES):
            return found


STREAMS = {name: generated(name) for name in ("s1", "s2", "s3")}
TABLE = random_table(Random("table"), SHAPE)


def lateness(name: str) -> int:
    """One more than the data need: even a live run never closes an instant early."""
    return STREAMS[name].lateness + 1


def add_functions(target: Any) -> None:
    target.function("twice", lambda n: n * 2, "BIGINT", arguments=["BIGINT"])
    target.function("odd", lambda n: n % 2 == 1, "BOOLEAN", arguments=["BIGINT"])


def prepare(target: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Table, functions and queries (streams come first); works on Engine and Runner alike."""
    target.table("t", TABLE)
    add_functions(target)
    wanted = QUERIES if names is None else names
    return {title: target.query(QUERIES[title], query_name(title)) for title in wanted}


def expected_results() -> dict[str, Any]:
    runner = Runner()
    for name in ("s1", "s2"):
        runner.stream(name, STREAMS[name].table, lateness=lateness(name))
    queries = prepare(runner)
    runner.run()
    assert all(q.results().num_rows for q in queries.values())
    return queries


def assert_same(expected: dict[str, Any], found: dict[str, Any]) -> None:
    for title, query in found.items():
        what = difference(from_table(expected[title].results()), from_table(query.results()))
        assert what is None, f"{title}\n{what}"
        assert query.rejects().num_rows == expected[title].rejects().num_rows, title


# -- files -------------------------------------------------------------------------------------


def write_files(folder: Path, table: pa.Table, cuts: Sequence[int], first: int = 0) -> Path:
    """The table as Parquet files, one per piece; `first` numbers files added later."""
    folder.mkdir(parents=True, exist_ok=True)
    points = [0, *cuts, table.num_rows]
    for i, (a, b) in enumerate(pairwise(points), first):
        path = folder / f"{Random(i).randrange(1000):03d}-{i}.parquet"  # names in no order
        pa.parquet.write_table(table.slice(a, b - a), path)
        aged(path, i)
    return folder


def aged(path: Path, number: int) -> None:
    """Spark reads files in order of their times, so these say what comes first."""
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def file_frame(spark: Any, folder: Path, per_batch: int = 1, schema: str = SCHEMA) -> Any:
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch)
    return reader.parquet(str(folder))


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "waited in vain"
        sleep(0.05)


def rows_in(engine: Any, stream: str) -> int:
    """Rows of a stream that committed epochs have taken in."""
    streams = engine.core.committer.committed.get("streams", {})
    return int(streams.get(stream, {}).get("rows", 0))


# -- a driver of its own -----------------------------------------------------------------------


def main(master: str, folder: Path) -> None:
    import thalweg as tw

    with tw.Engine(master, folder / "path", parallelism=2) as engine:
        for name in ("s1", "s2"):
            frame = file_frame(engine.spark, folder / name, 2)
            engine.stream(name, frame, "ts", lateness=lateness(name))
        queries = prepare(engine, ABROAD)
        engine.run()
        for title, query in queries.items():
            pyarrow.feather.write_feather(query.results(), folder / f"{query_name(title)}.feather")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
