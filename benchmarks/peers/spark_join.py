"""Spark's own stream-stream join, and Spark merely reading the rows, on the benchmark's files.

Fairness. Every run has the same cores, memory, files and triggers (one file per stream each).
`tuned=True` gives Spark the settings Thalweg runs with, as many shuffle partitions as suit the
machine instead of 200, and no empty batches; `tuned=False` leaves Spark's defaults. The watermark
delay exceeds the disorder of the rows, so nothing is dropped, and lets Spark forget rows as soon
as the join allows. Results go to the no-op sink, which counts them and costs nothing else.

As a script (`run_*` start it in a fresh process) it takes a job as JSON and prints JSON lines.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from child import command
from common.peer_process import (
    PeerError,
    PeerResult,
    Progress,
    check_count,
    emit,
    run_child,
    silent,
)
from joins.interval_data import Dataset, load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery
    from pyspark.sql.streaming.listener import StreamingQueryProgress

STORES = {
    "default": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
PARTITIONS_PER_CORE = {"default": 2, "rocksdb": 1}
CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"
BASE = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "8g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}
TUNED = {
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
    ),
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
DISORDER_MARGIN_MS = 500
POLL_S = 0.5
NEWEST_STATE = "stateOnCurrentVersionSizeBytes"  # of the default store; RocksDB has no such metric


def run_spark_join(
    data: Dataset,
    *,
    store: str = "default",
    tuned: bool = True,
    cores: int = 2,
    passes: int = 1,
    shuffle_partitions: int | None = None,
    budget_s: float = 300.0,
    batch_budget_s: float = 60.0,
    conf: dict[str, str] | None = None,
    progress: Progress = silent,
    tolerant: bool = False,
) -> PeerResult:
    """Spark's interval join of `a` and `b`, or chained joins of more streams.

    What its operators keep after the last batch is in `detail`: `state_bytes` is the least that
    Spark reports (the newest version of the state; it holds an older one besides).
    `shuffle_partitions` (tuned runs only) defaults to `PARTITIONS_PER_CORE`; `conf` adds
    settings. A `tolerant` run may fail after some batches (its state outgrows the heap).
    With several `passes` over the files in one JVM, `total_s` is the first and `batch_ms` the last.
    """
    system = f"spark-{store}-{'tuned' if tuned else 'defaults'}"
    settings = {"spark.sql.streaming.stateStore.providerClass": STORES[store]}
    if tuned:
        settings |= TUNED
        partitions = shuffle_partitions or PARTITIONS_PER_CORE[store] * cores
        settings["spark.sql.shuffle.partitions"] = str(partitions)
        system += f"-{partitions}"
    job = _job(data, "join", cores, passes, settings | (conf or {}))
    result = _run(system, job, budget_s, batch_budget_s, progress, tolerant)
    finished = len(result.batch_ms) if result.partial else data.spec.batches
    _check(result, data.expected(finished))
    return result


def run_spark_floor(
    data: Dataset,
    *,
    tuned: bool = True,
    cores: int = 2,
    passes: int = 3,
    budget_s: float = 120.0,
    batch_budget_s: float = 30.0,
    progress: Progress = silent,
) -> PeerResult:
    """Spark reading all columns of all streams into the no-op sink: no system on Spark is faster.

    With `tuned=True`, under the settings Thalweg runs with. The JVM compiles for seconds while this
    query only needs tenths, so `batch_ms` is of the last pass: a cold floor would flatter us.
    """
    settings = dict(TUNED) if tuned else {}
    job = _job(data, "read", cores, passes, settings)
    system = f"spark-floor-{'tuned' if tuned else 'defaults'}"
    result = _run(system, job, budget_s, batch_budget_s, progress)
    finished = len(result.batch_ms) if result.partial else data.spec.batches
    _check(result, finished * data.spec.stream_batch_rows * data.spec.ways)
    return result


def _check(result: PeerResult, expected: int) -> None:
    check_count(result, expected)
    for rows in result.detail.get("passes_rows_out", []):
        if rows != expected:
            raise PeerError(f"{result.system} gave {rows:,} results where {expected:,} are right")


def _job(
    data: Dataset, task: str, cores: int, passes: int, settings: dict[str, str]
) -> dict[str, Any]:
    return {
        "data": str(data.path.absolute()),
        "task": task,
        "passes": passes,
        "master": f"local[{cores}]",
        "conf": BASE | settings,
    }


def _run(
    system: str,
    job: dict[str, Any],
    budget_s: float,
    batch_budget_s: float,
    progress: Progress,
    tolerant: bool = False,
) -> PeerResult:
    return run_child(
        PeerResult(system),
        command(__name__),
        job,
        budget_s=budget_s,
        batch_budget_s=batch_budget_s,
        progress=progress,
        env={"PYTHONWARNINGS": "ignore"},
        tolerant=tolerant,
    )


# In the child process from here on.


def _session(job: dict[str, Any]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(job["master"]).appName("thalweg-bench-peer")
    for name, value in job["conf"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _stream(spark: SparkSession, data: Dataset, name: str) -> DataFrame:
    types = {"k": "BIGINT", "m": "BIGINT", "ts": "TIMESTAMP"}
    schema = ", ".join(f"{c} {types.get(c, 'DOUBLE')}" for c in data.columns(name))
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(data.path / name))


def _reading(spark: SparkSession, data: Dataset) -> DataFrame:
    """Every column of every stream, in one query."""
    wide = "m" in {c for name in data.spec.streams for c in data.columns(name)}
    parts = []
    for name in data.spec.streams:
        columns = data.columns(name)
        keys = [c if c in columns else f"0L AS {c}" for c in (("k", "m") if wide else ("k",))]
        parts.append(_stream(spark, data, name).selectExpr(*keys, "ts", f"{columns[-1]} AS v"))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.union(part)
    return whole


def _near(left: str, right: str, window_s: int) -> str:
    span = f"INTERVAL {window_s} SECONDS"
    return f"{right} >= {left} - {span} AND {right} <= {left} + {span}"


def _side(spark: SparkSession, data: Dataset, name: str) -> DataFrame:
    delay = f"{data.spec.jitter_ms + DISORDER_MARGIN_MS} milliseconds"
    renamed = [f"{c} AS {name}_{c}" for c in data.columns(name)]
    return _stream(spark, data, name).selectExpr(*renamed).withWatermark(f"{name}_ts", delay)


def _plain(frame: DataFrame, name: str) -> DataFrame:
    """The input of a stateful operator may carry one event time: this one becomes a mere value."""
    from pyspark.sql.functions import expr

    return frame.withColumn(f"{name}_ts", expr(f"timestamp_micros(unix_micros({name}_ts))"))


def _joined(spark: SparkSession, data: Dataset) -> DataFrame:
    from pyspark.sql.functions import expr

    if data.spec.is_star:
        return _star(spark, data)
    window = data.spec.window_s
    on = expr(f"a_k = b_k AND {_near('a_ts', 'b_ts', window)}")
    pairs = _side(spark, data, "a").join(_side(spark, data, "b"), on)
    if data.spec.ways == 2:
        return pairs.select("a_k", "a_x", "b_y")
    near = f"{_near('b_ts', 'c_ts', window)} AND {_near('a_ts', 'c_ts', window)}"
    triples = _plain(pairs, "a").join(_side(spark, data, "c"), expr(f"b_m = c_m AND {near}"))
    return triples.select("a_k", "b_m", "a_x", "b_y", "c_z")


def _star(spark: SparkSession, data: Dataset) -> DataFrame:
    """One join per further stream; the event time of the first goes on through all of them."""
    from pyspark.sql.functions import expr

    first, *others = data.spec.streams
    joined, known = _side(spark, data, first), [first]
    for name in others:
        near = [_near(f"{before}_ts", f"{name}_ts", data.spec.window_s) for before in known]
        on = expr(" AND ".join([f"{first}_k = {name}_k", *near]))
        joined = _plain(joined.join(_side(spark, data, name), on).drop(f"{name}_k"), name)
        known.append(name)
    return joined.drop(*(f"{name}_ts" for name in known))


def _report_new(query: StreamingQuery, seen: int) -> int:
    """Print the finished batches after `seen`; empty ones (they only move the watermark) not."""
    for batch in query.recentProgress:
        if batch.batchId <= seen:
            continue
        seen = batch.batchId
        rows_out = max(batch.sink.numOutputRows, 0)
        if batch.numInputRows or rows_out:
            took = batch.durationMs["triggerExecution"]
            emit(batch_ms=took, rows_out=rows_out, detail=_state(batch))
    return seen


def _state(batch: StreamingQueryProgress) -> dict[str, int]:
    """What all operators of the query keep after a batch."""
    operators = batch.stateOperators
    used = sum(op.memoryUsedBytes for op in operators)
    newest = sum(op.customMetrics.get(NEWEST_STATE, op.memoryUsedBytes) for op in operators)
    rows = sum(op.numRowsTotal for op in operators)
    return {"state_bytes": newest, "state_bytes_all_versions": used, "state_rows": rows}


def _pass(frame: DataFrame, report: bool) -> tuple[float, int]:
    """One run over all the files: seconds and results. Only a reported one prints its batches."""
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as checkpoint:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        start = time.perf_counter()
        query = writer.trigger(availableNow=True).start()
        seen = -1
        while not query.awaitTermination(POLL_S):
            seen = _report_new(query, seen) if report else seen
        total = time.perf_counter() - start
        if report:
            _report_new(query, seen)
        return total, sum(max(batch.sink.numOutputRows, 0) for batch in query.recentProgress)


def _child(job: dict[str, Any]) -> None:
    data = load(Path(job["data"]))
    spark = _session(job)
    frame = _reading(spark, data) if job["task"] == "read" else _joined(spark, data)
    runs = []
    for number in range(1, job["passes"] + 1):
        emit(note=f"pass {number} of {job['passes']}")
        runs.append(_pass(frame, report=number == job["passes"]))
    emit(
        done={
            "total_s": runs[0][0],
            "passes_s": [seconds for seconds, _ in runs],
            "passes_rows_out": [rows for _, rows in runs],
            "version": spark.version,
        }
    )
    spark.stop()


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
