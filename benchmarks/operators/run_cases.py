"""One system through all operator cases in one process, which gets its job as JSON.

Each case is run twice over the files in one JVM: the first pass compiles and warms up, the second
is measured. Both systems write results where they cost least: Spark into its no-op sink, Thalweg
into result packs (it has no cheaper way).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common.peer_process import emit
from operators.cases import CASES, SCHEMAS, Case


def _thalweg_pass(spark: Any, folder: Path, case: Case, lane: str) -> dict[str, Any]:
    import thalweg as tw

    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as path:
        engine = tw.Engine(spark, path=path, parallelism=2, durable=False)
        for name, schema in SCHEMAS.items():
            if f" {name} " in f"{case.sql} " or f" {name}," in case.sql:
                _stream(engine, folder, name, schema, lane)
        if "users" in case.sql:
            engine.table("users", spark.read.parquet(str(folder / "users")))
        query = engine.query(case.sql, name="q")
        begun = last = time.perf_counter()
        batches: list[float] = []

        def progress(epoch: Any) -> None:
            nonlocal last
            now = time.perf_counter()
            if epoch.rows_in:
                batches.append((now - last) * 1e3)
            last = now

        engine.run(progress=progress)
        total = time.perf_counter() - begun
        results = query.results()
        engine.close()
    found = results.num_rows
    if case.pairs_only:
        found -= results.column("w").null_count
    return {"batch_ms": batches, "total_s": total, "rows_out": found, "all_rows": results.num_rows}


def _stream(engine: Any, folder: Path, name: str, schema: str, lane: str) -> None:
    if lane == "files":
        engine.sql(
            f"CREATE STREAM {name} ({schema}) TIMESTAMP BY ts FROM FILES '{folder / name}' "
            "FORMAT parquet OPTIONS (max_files_per_trigger = 1)"
        )
        return
    reader = engine.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    engine.stream(name, reader.parquet(str(folder / name)), timestamp="ts")


def _spark_pass(spark: Any, folder: Path, case: Case) -> dict[str, Any]:
    def stream(name: str) -> Any:
        reader = spark.readStream.schema(SCHEMAS[name]).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(folder / name))

    users = spark.read.parquet(str(folder / "users"))
    frame = case.spark(spark, stream, users)
    rows: list[int] = []
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as checkpoint:
        writer = frame.writeStream.option("checkpointLocation", checkpoint)
        if case.pairs_only:  # the no-op sink cannot tell pairs from rows that stay alone

            def count(batch: Any, _: int) -> None:
                rows.append(batch.where("w IS NOT NULL").count())

            writer = writer.foreachBatch(count)
        else:
            writer = writer.format("noop")
        begun = time.perf_counter()
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        total = time.perf_counter() - begun
        progress = [p for p in query.recentProgress if p.numInputRows]
        found = sum(rows) if rows else sum(max(p.sink.numOutputRows, 0) for p in progress)
    batches = [float(p.durationMs["triggerExecution"]) for p in progress]
    return {"batch_ms": batches, "total_s": total, "rows_out": found, "all_rows": found}


def _child(job: dict[str, Any]) -> None:
    folder, system = Path(job["folder"]), job["system"]
    if system == "spark":
        from peers.spark_join import BASE, STORES, TUNED, _session

        store = {"spark.sql.streaming.stateStore.providerClass": STORES["default"]}
        settings = BASE | TUNED | store | {"spark.sql.shuffle.partitions": "4"}
        spark = _session({"master": "local[2]", "conf": settings})
    else:
        from thalweg.spark.settings import create_session

        spark = create_session("local[2,4]", {"spark.driver.memory": "8g"})
    begun, cases = time.perf_counter(), {}
    for case in CASES:
        if job["cases"] and case.name not in job["cases"]:
            continue
        emit(note=f"{system}: {case.name}")
        for number in range(2):
            if system == "spark":
                found = _spark_pass(spark, folder, case)
            else:
                found = _thalweg_pass(spark, folder, case, system.removeprefix("thalweg-"))
            if number == 1:
                cases[case.name] = found
    emit(done={"total_s": time.perf_counter() - begun, "rows_out": 0, "cases": cases})
    spark.stop()


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
