"""Queries over models on Spark emit what the Runner says: files, tasks, a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import wait_until, write_files

import thalweg as tw
from thalweg.testing.runner import Runner

pytestmark = pytest.mark.spark

LINE = "MODEL (x = x + v*t) FOR 6 SECONDS"
QUERIES = {
    "filter": f"SELECT k, x FROM s {LINE} WHERE x > 1 AND x < 6",
    "sample": f"SELECT k, x * x AS square FROM s {LINE} SAMPLE EVERY 2 SECONDS",
    "join": f"SELECT a.k, a.x - 2 * b.x AS d FROM s a {LINE} JOIN s b {LINE} ON a.k = b.k "
    "WHERE a.x >= 2 * b.x",
    "absorbed": "SELECT k, x FROM s MODEL (x = x) ERROR x WITHIN 1",
    "fitted": "SELECT k, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5 EVERY 10 SECONDS) WHERE x > 3",
    "mean": "SELECT k, avg(x) AS m FROM s [RANGE 5 SECONDS] MODEL (x = x) GROUP BY k",
    "largest": "SELECT max(x) AS most FROM s MODEL (x = x)",
    "eager": f"SELECT k FROM s {LINE} WHERE x > 4 WITH (release = 'eager')",
}


def rows() -> pa.Table:
    random = np.random.default_rng(8)
    stamps = np.cumsum(random.integers(100_000, 900_000, 60))
    return pa.table(
        {
            "k": random.integers(0, 5, 60),
            "x": np.round(random.normal(3, 2, 60), 2),
            "v": np.round(random.normal(0, 1, 60), 2),
            "ts": pa.array(stamps, pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    runner = Runner()
    runner.stream("s", rows(), key=("k",))
    for name, sql in QUERIES.items():
        runner.query(sql, name)
    runner.run()
    return {name: sorted_rows(runner.queries[name].results()) for name in QUERIES}


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def test_files_tasks_and_a_restart(spark: Any, tmp_path: Path, expected: dict[str, Any]) -> None:
    script = (
        "CREATE STREAM s (k BIGINT, x DOUBLE, v DOUBLE, ts TIMESTAMP) TIMESTAMP BY ts KEY (k) "
        f"FROM FILES '{tmp_path / 's'}' FORMAT parquet OPTIONS (max_files_per_trigger = 1)"
    )
    table = rows()
    write_files(tmp_path / "s", table.slice(0, 35), (10, 11, 30))
    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:
        engine.sql(script)
        for name, sql in QUERIES.items():
            engine.query(sql, name)
        reports: list[Any] = []
        engine.start(reports.append)
        wait_until(lambda: engine.core.state.streams["s"].rows == 35)
        engine.stop()
    write_files(tmp_path / "s", table.slice(35), (5, 20), first=4)
    with tw.Engine(spark, tmp_path / "path", parallelism=3) as engine:
        engine.sql(script)
        engine.run(final=False)
        for name in QUERIES:
            assert sorted_rows(engine.queries[name].results()) == expected[name], name
