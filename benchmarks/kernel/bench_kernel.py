"""The step alone, on one core, beside DuckDB answering the equivalent batch question.

Rows per second of CPU time for filter and projection, sliding sum and min by key, and two- and
three-way window joins, through the same code that Spark tasks run; packs stay in memory, results
are dropped once they are counted. DuckDB
computes the same result set over all rows at once with one thread: a batch engine that sees
everything in advance, as a yardstick for the kernels, not a competitor. In the sliding cases it
gives one row for each input row, while we give each change of a group; how many changes there are
it is asked beside, without a clock.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from common.harness import Report
from thalweg.spark.worker import keep_memory, warm_up
from thalweg.testing import Runner

SPAN = 10_000_000
WARM = 4


@dataclass(frozen=True)
class Case:
    """A query, its streams' shapes, and DuckDB's way to ask for the same rows; `changes` is its way
    to count ours, where its own rows are others."""

    name: str
    sql: str
    streams: dict[str, dict[str, int]]
    duckdb: str
    goal: float | None = None
    changes: str | None = None


def changes_of(aggregate: str) -> str:
    """Count the instants at which a sliding aggregate of `a` changes and is not empty: rows of a
    key come at their time, and go just after two seconds."""
    return (
        "WITH ends AS (SELECT k, ts + INTERVAL 2000001 MICROSECONDS AS ts, NULL AS x FROM a), "
        "moments AS (SELECT k, ts, x FROM a UNION ALL SELECT * FROM ends "
        "WHERE ts <= (SELECT max(ts) FROM a)), "
        f"sliding AS (SELECT k, ts, {aggregate}(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN "
        "INTERVAL 2 SECONDS PRECEDING AND CURRENT ROW) AS s FROM moments), "
        "once AS (SELECT k, ts, any_value(s) AS s FROM sliding GROUP BY k, ts), "
        "beside AS (SELECT s, lag(s) OVER (PARTITION BY k ORDER BY ts) AS before FROM once) "
        "SELECT count(*) FROM beside WHERE s IS NOT NULL AND s IS DISTINCT FROM before"
    )


CASES = (
    Case(
        "filter + project",
        "SELECT k, x * 2 AS y FROM a WHERE x > 0.5 AND k < 100000",
        {"a": {"k": 250_000}},
        "SELECT k, x * 2 AS y FROM a WHERE x > 0.5 AND k < 100000",
    ),
    Case(
        "sliding sum by key",
        "SELECT ISTREAM k, sum(x) AS s FROM a [RANGE 2 SECONDS] GROUP BY k",
        {"a": {"k": 10_000}},
        "SELECT k, sum(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 2 SECONDS "
        "PRECEDING AND CURRENT ROW) AS s FROM a",
        5.0,
        changes=changes_of("sum"),
    ),
    Case(
        "sliding min by key",
        "SELECT ISTREAM k, min(x) AS s FROM a [RANGE 2 SECONDS] GROUP BY k",
        {"a": {"k": 10_000}},
        "SELECT k, min(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL 2 SECONDS "
        "PRECEDING AND CURRENT ROW) AS s FROM a",
        changes=changes_of("min"),
    ),
    Case(
        "two-way window join",
        "SELECT ISTREAM a.k, a.x, b.x AS y FROM a [RANGE 2500 MILLISECONDS], "
        "b [RANGE 2500 MILLISECONDS] WHERE a.k = b.k",
        {"a": {"k": 250_000}, "b": {"k": 250_000}},
        "SELECT a.k, a.x, b.x AS y FROM a, b WHERE a.k = b.k AND b.ts BETWEEN "
        "a.ts - INTERVAL 2500 MILLISECONDS AND a.ts + INTERVAL 2500 MILLISECONDS",
        3.0,
    ),
    Case(
        "three-way window join, two keys",
        "SELECT ISTREAM a.k, b.m, a.x, c.x AS z FROM a [RANGE 2500 MILLISECONDS], "
        "b [RANGE 2500 MILLISECONDS], c [RANGE 2500 MILLISECONDS] "
        "WHERE a.k = b.k AND b.m = c.m",
        {"a": {"k": 250_000}, "b": {"k": 250_000, "m": 250_000}, "c": {"m": 250_000}},
        "SELECT a.k, b.m, a.x, c.x AS z FROM a, b, c WHERE a.k = b.k AND b.m = c.m AND b.ts "
        "BETWEEN a.ts - INTERVAL 2500 MILLISECONDS AND a.ts + INTERVAL 2500 MILLISECONDS AND c.ts "
        "BETWEEN b.ts - INTERVAL 2500 MILLISECONDS AND b.ts + INTERVAL 2500 MILLISECONDS AND c.ts "
        "BETWEEN a.ts - INTERVAL 2500 MILLISECONDS AND a.ts + INTERVAL 2500 MILLISECONDS",
    ),
)


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("kernel", scale="quick" if quick else "full")
    rows, batches = (100_000, 10) if quick else (500_000, 14)
    for case in CASES:
        if case.goal is not None:
            report.declare(f"{case.name}: M rows/s per core", at_least=case.goal, unit="M/s")
    keep_memory()
    warm_up()
    for case in CASES:
        report.progress(case.name)
        data = {s: _batches(s, keys, rows, batches) for s, keys in case.streams.items()}
        ours, spread, emitted = _ours(case, data)
        theirs, counted = _duckdb(case, data)
        if emitted != counted:
            raise AssertionError(f"{case.name}: {emitted:,} results, DuckDB has {counted:,}")
        total = rows * len(data)
        report.row(case.name, "thalweg", "rows/s per core", "M/s", total / ours / 1e6)
        report.row(case.name, "thalweg", "spread of batches", "±%", spread)
        report.row(case.name, "duckdb", "rows/s per core", "M/s", total * batches / theirs / 1e6)
        if case.goal is not None:
            report.measure(f"{case.name}: M rows/s per core", total / ours / 1e6)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _batches(stream: str, keys: dict[str, int], rows: int, batches: int) -> list[pa.Table]:
    rng = np.random.default_rng(ord(stream[0]))
    scale = rows / 500_000
    found = []
    for i in range(batches):
        ts = np.sort(rng.integers(i * SPAN, (i + 1) * SPAN, rows))
        columns = {k: rng.integers(0, max(int(n * scale), 1), rows) for k, n in keys.items()}
        stamps = pa.array(ts, pa.timestamp("us", "UTC"))
        found.append(pa.table({**columns, "ts": stamps, "x": rng.random(rows)}))
    return found


def _ours(case: Case, data: dict[str, list[pa.Table]]) -> tuple[float, float, int]:
    """CPU seconds of a warm epoch (median), its spread in percent, and the number of results."""
    runner = Runner()
    for name, tables in data.items():
        runner.stream(name, tables[0].slice(0, 0))
    query = runner.query(case.sql, name="q")
    times = []
    for i in range(len(next(iter(data.values())))):
        entry = runner.entry({s: t[i] for s, t in data.items()})
        begun = time.process_time()
        runner.epoch([entry])
        times.append(time.process_time() - begun)
        _forget_results(runner)
    runner.close()
    warm = times[WARM:]
    middle = statistics.median(warm)
    spread = 100 * (max(warm) - min(warm)) / 2 / middle
    return middle, spread, query.stats()["emitted"]


def _forget_results(runner: Runner) -> None:
    """Results have been counted; kept in this process they would make every epoch pay for fresh
    memory, which on the way to a file they do not."""
    for name in runner.storage.listing("q"):
        if "-out-" in name:
            runner.storage.delete(name)


def _duckdb(case: Case, data: dict[str, list[pa.Table]]) -> tuple[float, int]:
    """CPU seconds for the whole input at once, best of two, and the number of results that are
    right."""
    found = []
    rows = 0
    for _ in range(2):
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute("SET enable_progress_bar = false")
            for name, tables in data.items():
                whole = pa.concat_tables(tables)
                connection.register(f"{name}_arrow", whole)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_arrow")
            begun = time.process_time()
            connection.execute(f"CREATE TABLE result AS {case.duckdb}")
            found.append(time.process_time() - begun)
            asked = case.changes or "SELECT count(*) FROM result"
            if not found[1:]:
                rows = connection.execute(asked).fetchone()[0]
    return min(found), rows
