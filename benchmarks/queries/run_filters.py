"""One run of `bench queries` in a process of its own: takes a job as JSON, prints JSON."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from queries.data import SCHEMA, expected, queries, write_files

WARM = 2
CHECKED = 5


def ours(job: dict[str, Any], folder: Path) -> dict[str, float]:
    """All queries in one engine; with `share` off each runs by itself."""
    import thalweg as tw

    asked = queries(job["queries"])
    share = job["share"]
    with tw.Engine("local[2,4]", path=folder / "engine", parallelism=2) as engine:
        engine.sql(
            f"CREATE STREAM s ({SCHEMA}) TIMESTAMP BY ts FROM FILES '{folder}/s' FORMAT parquet "
            "OPTIONS (max_files_per_trigger = 1)"
        )
        begun = time.perf_counter()
        for i, one in enumerate(asked):
            engine.query(f"SELECT a, b FROM s WHERE {one.text} WITH (share = '{share}')", f"q{i}")
        registered = time.perf_counter() - begun
        ends: list[float] = []  # of epochs: reading is part of what lies between two
        started = time.perf_counter()
        engine.run(progress=lambda e: ends.append(time.perf_counter()) if e.rows_in else None)
        whole = time.perf_counter() - started
        picked = _picked(len(asked))
        found = sum(engine.queries[f"q{i}"].results().num_rows for i in picked)
        wanted = expected([asked[i] for i in picked], folder / "s")
    _refuse_others(found, wanted, picked)
    warm = [after - before for before, after in pairwise(ends)][WARM:]
    return {
        "rate": job["rows"] / statistics.median(warm),
        "whole": job["rows"] * job["files"] / whole,
        "register": registered / len(asked) * 1e3,
        "found": found,
    }


def _picked(count: int) -> list[int]:
    """The queries whose results are counted."""
    return list(range(0, count, count // CHECKED or 1))[:CHECKED]


def _refuse_others(found: int, wanted: int, picked: list[int]) -> None:
    if found != wanted:
        raise RuntimeError(f"{found} results of the queries {picked}, {wanted} expected")


def spark_each(job: dict[str, Any], folder: Path) -> dict[str, float]:
    """One streaming query of Spark for each query, all at once, over the same files. `rate` is of
    the whole run, `warm` of the median batch of the median query after the first ones."""
    from pyspark.sql import functions as fn

    spark, source = _spark(folder)
    asked = queries(job["queries"])
    running = []
    begun = time.perf_counter()
    for i, one in enumerate(asked):
        counted = fn.count(fn.lit(1)).alias("rows")
        passing = source().where(one.text).select("a", "b").observe("passed", counted)
        writer = passing.writeStream.format("noop")
        running.append(
            writer.option("checkpointLocation", f"{folder}/c{i}").trigger(availableNow=True).start()
        )
    for query in running:
        query.awaitTermination()
    seconds = time.perf_counter() - begun
    picked = _picked(len(asked))
    found = sum(_observed(running[i]) for i in picked)
    _refuse_others(found, expected([asked[i] for i in picked], folder / "s"), picked)
    batches = [statistics.median(_durations(query)[WARM:]) for query in running]
    spark.stop()
    warm = job["rows"] / statistics.median(batches)
    return {"rate": job["rows"] * job["files"] / seconds, "warm": warm, "found": found}


def _observed(query: Any) -> int:
    """The rows that a streaming query of Spark put out."""
    told = [p["observedMetrics"] for p in query.recentProgress if p["numInputRows"]]
    return sum(int(metrics["passed"]["rows"]) for metrics in told)


def _durations(query: Any) -> list[float]:
    return [p["batchDuration"] / 1e3 for p in query.recentProgress if p["numInputRows"]]


def spark_one(job: dict[str, Any], folder: Path) -> dict[str, float]:
    """One streaming query of Spark whose projection has all predicates; who matches is exploded."""
    from pyspark.sql import functions as fn

    spark, source = _spark(folder)
    asked = queries(job["queries"])
    numbers = [fn.when(fn.expr(one.text), fn.lit(i)) for i, one in enumerate(asked)]
    matching = fn.filter(fn.array(*numbers), lambda n: n.isNotNull())
    frame = source().select("a", "b", fn.explode(matching).alias("query"))
    picked = _picked(len(asked))
    counted = fn.count(fn.when(fn.col("query").isin(picked), 1)).alias("rows")
    query = (
        frame.observe("passed", counted)
        .writeStream.format("noop")
        .option("checkpointLocation", f"{folder}/one")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    times = _durations(query)
    _refuse_others(_observed(query), expected([asked[i] for i in picked], folder / "s"), picked)
    spark.stop()
    return {"rate": job["rows"] / statistics.median(times[WARM:] or times)}


def _spark(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")

    def source() -> Any:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(f"{folder}/s")

    return spark, source


RUNS = {"ours": ours, "spark_each": spark_each, "spark_one": spark_one}


def main(job: dict[str, Any]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        write_files(Path(folder) / "s", job["files"], job["rows"])
        return RUNS[job["run"]](job, Path(folder))


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
