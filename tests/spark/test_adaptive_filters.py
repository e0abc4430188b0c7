"""Filters that adapt on Spark: orders travel to the workers, observations come back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import file_frame, wait_until, write_files

import thalweg as tw

pytestmark = pytest.mark.spark

SCHEMA = "a BIGINT, b BIGINT, ts TIMESTAMP"
ROWS, FILES = 30_000, 6


def drifting() -> pa.Table:
    """First `a` passes nearly always and `b` seldom, then the other way."""
    rng = np.random.default_rng(2)
    early = np.arange(ROWS) < ROWS // 2
    often, seldom = rng.random(ROWS) < 0.9, rng.random(ROWS) < 0.1
    return pa.table(
        {
            "a": np.where(early, often, seldom).astype(np.int64),
            "b": np.where(early, seldom, often).astype(np.int64),
            "ts": pa.array(np.arange(ROWS), pa.timestamp("us", "UTC")),
        }
    )


def cuts() -> tuple[int, ...]:
    return tuple(ROWS * i // FILES for i in range(1, FILES))


def test_functions_are_reordered_in_the_workers(spark: Any, tmp_path: Path) -> None:
    """User functions run in Spark's workers; what these observe moves the driver's plan."""
    folder = write_files(tmp_path / "files", drifting(), cuts())

    def work(values: pa.Array) -> pa.Array:
        for _ in range(len(values) * 50):
            pass
        return pa.array([v == 1 for v in values.to_pylist()])

    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:
        engine.stream("s", file_frame(spark, folder, schema=SCHEMA), "ts")
        for name in ("is_one", "is_one_too"):
            engine.function(name, work, "BOOLEAN", arguments=["BIGINT"], vectorized=True)
        query = engine.query("SELECT a FROM s WHERE is_one(a) AND is_one_too(b)", "q")
        engine.run()
        table = drifting()
        expected = int(((table["a"].to_numpy() == 1) & (table["b"].to_numpy() == 1)).sum())
        assert query.results().num_rows == expected
        assert query.plan_log[0].new[0] == "is_one_too(b)"
        assert str(query.plan.leaves[0].filters[0]) == "is_one(a)"
        counts = query.stats()["counts"]
        asked = counts["evaluations:is_one(a)"] + counts["evaluations:is_one_too(b)"]
        assert asked < 1.35 * ROWS  # the order of the text asks 1.5 times per row, the best 1.1
        assert query.stats()["adapt"]["filters"][0]["overhead"]["extra_evaluations"] > 0


def test_options_change_while_the_engine_runs(spark: Any, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "files", drifting().slice(0, ROWS // 2), ())
    with tw.Engine(spark, tmp_path / "path", parallelism=1) as engine:
        engine.stream("s", file_frame(spark, folder, schema=SCHEMA), "ts")
        sql = "SELECT a FROM s WHERE a = 1 AND b = 1 WITH (filters = 'fixed')"
        query = engine.query(sql, "q")
        watch = engine.query("SELECT ISTREAM entity, property, value FROM SysStream [NOW]", "watch")
        engine.start()
        wait_until(lambda: query.stats()["emitted"] > 0, 30)
        engine.sql("ALTER QUERY q SET (filters = 'a-greedy', profile = 0.2)")
        write_files(folder, drifting().slice(ROWS // 2), (), first=10)
        wait_until(lambda: query.stats()["counts"].get("profiled:b = 1", 0) > 0, 30)
        wait_until(lambda: watch.results().num_rows > 0, 30)
        engine.stop()
        assert query.stats()["adapt"]["filters"][0]["ordering"] == "a-greedy"
        seen = {(r["entity"], r["property"]) for r in watch.results().to_pylist()}
        assert ("q: b = 1", "selectivity") in seen
