"""Results leave for Spark: INTO SPARK, to_stream(), and format("thalweg")."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg import Engine
from thalweg.errors import ConfigError

pytestmark = pytest.mark.spark
UTC = pa.timestamp("us", "UTC")
SCHEMA = "k BIGINT, x DOUBLE, s STRING, ts TIMESTAMP"


def drop(folder: Path, number: int, rows: int = 20) -> pa.Table:
    """One more file for the stream."""
    first = number * rows
    table = pa.table(
        {
            "k": pa.array([i % 5 for i in range(rows)], pa.int64()),
            "x": pa.array([None if i % 7 == 0 else i / 4 for i in range(rows)]),
            "s": pa.array([f"row {first + i}" for i in range(rows)]),
            "ts": pa.array([(first + i) * 1_000_000 for i in range(rows)], UTC),
        }
    )
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / f"{number:04d}.parquet")
    return table


def engine_on(spark: Any, path: Path, source: Path) -> Engine:
    engine = Engine(spark, path, parallelism=2)
    engine.stream("s", spark.readStream.schema(SCHEMA).parquet(str(source)), timestamp="ts")
    return engine


def bag(rows: Any) -> Counter[str]:
    return Counter(repr(sorted(r.items())) for r in rows)


def plain(table: pa.Table) -> Counter[str]:
    return bag({**r, "__ts": r["__ts"].timestamp()} for r in table.to_pylist())


def of_spark(frame: Any) -> Counter[str]:
    rows = [r.asDict() for r in frame.collect()]
    return bag({**r, "__ts": r["__ts"].timestamp()} for r in rows)


def test_a_job_follows_a_query_exactly_once(spark: Any, tmp_path: Path) -> None:
    """Batch by batch and across restarts of the engine and of the follower."""
    source, path, out = tmp_path / "in", tmp_path / "engine", tmp_path / "out"
    text = "SELECT k, count(*) AS n, max(s) AS last FROM s [RANGE 3 SECONDS] GROUP BY k"
    for number in range(3):
        drop(source, number)
        with engine_on(spark, path, source) as engine:
            query = engine.query(text, name="q")
            stream = query.to_stream()
            engine.run()
            follow = (
                stream.writeStream.format("parquet")
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(availableNow=True)
                .start(str(out))
            )
            follow.awaitTermination()
            results = query.results()
            outputs = engine.core.state.outputs
    assert results.num_rows > 60
    assert of_spark(spark.read.parquet(str(out))) == plain(results)
    again = spark.read.format("thalweg").option("query", "q").load(str(path))
    assert of_spark(again) == plain(results)
    epochs = sorted(int(key.split("/")[1]) for key in outputs)
    first = spark.read.format("thalweg").option("query", "q").option("ending_epoch", epochs[1])
    assert 0 < first.load(str(path)).count() < results.num_rows


def test_reading_what_is_not_there_says_what_is(spark: Any, tmp_path: Path) -> None:
    source = tmp_path / "in"
    drop(source, 0)
    with engine_on(spark, tmp_path / "engine", source) as engine:
        engine.query("SELECT k FROM s", name="some")
        engine.run()
    reader = spark.read.format("thalweg")
    with pytest.raises(Exception, match="there is no query sum on this path"):
        reader.option("query", "sum").load(str(tmp_path / "engine"))
    with pytest.raises(Exception, match="needs the option query"):
        spark.read.format("thalweg").load(str(tmp_path / "engine"))


def test_into_spark_writes_a_folder_per_epoch(spark: Any, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    drop(source, 0)
    with engine_on(spark, tmp_path / "engine", source) as engine:
        query = engine.query(
            f"SELECT k, x, s FROM s WHERE x > 1 INTO SPARK 'parquet' OPTIONS (path = '{out}')",
            name="q",
        )
        assert "exactly once" in engine.explain(query)
        engine.run()
        state = engine.core.state.queries["q"]
        state.progress.delivered = 0  # as after a crash before the mark
        engine.run()
        found = spark.read.parquet(str(out)).drop("epoch")
        assert of_spark(found) == plain(query.results())
        other = engine.query("SELECT k FROM s INTO SPARK 'noop'", name="other")
        assert "at least once" in engine.explain(other)
        with pytest.raises(ConfigError, match="needs a path"):
            engine.query("SELECT k FROM s INTO SPARK 'csv'")


def test_one_among_many_is_followed_for_good(spark: Any, tmp_path: Path) -> None:
    """It gets output of its own, and does not go back to the others though it only filters."""
    source, path, out = tmp_path / "in", tmp_path / "engine", tmp_path / "out"
    drop(source, 0)
    with engine_on(spark, path, source) as engine:
        engine.core.settings.share_from = 0
        queries = [engine.query(f"SELECT k, s FROM s WHERE k = {i}", f"q{i}") for i in range(3)]
        assert len(engine.core.cohorts.by_name) == 3
        stream = queries[1].to_stream()
        for number in range(1, 5):
            drop(source, number)
            engine.run()
        assert set(engine.core.cohorts.by_name) == {"q0", "q2"}
        writer = stream.writeStream.format("parquet").option("path", str(out))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        assert of_spark(spark.read.parquet(str(out))) == plain(queries[1].results())
        assert queries[1].results().num_rows == 5 * 4
