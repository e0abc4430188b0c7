"""Plain Spark's sliding windows over the same rows, as a script in a process of its own.

MACD: one sliding window of 60 s, in which the mean of the last 10 s is a conditional mean: cheaper
than two windows and their join. Following: positions are joined with those of the same second, so
that no pair is made twice, and means are of sliding windows. Structured Streaming, `availableNow`,
one file a batch, the no-op sink, the settings of our own engine, two cores; each query goes through
the files twice in one JVM, the second pass is measured.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.peer_process import emit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMAS = {
    "trades": "symbol BIGINT, price DOUBLE, slope DOUBLE, ts TIMESTAMP",
    "o": "id BIGINT, x DOUBLE, y DOUBLE, vx DOUBLE, vy DOUBLE, ts TIMESTAMP",
}


def _stream(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    reader = spark.readStream.schema(SCHEMAS[name]).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(folder / name)).withWatermark("ts", "0 seconds")


def _macd(spark: SparkSession, folder: Path, window: int) -> DataFrame:
    from pyspark.sql.functions import avg, col, expr
    from pyspark.sql.functions import window as windows

    trades = _stream(spark, folder, "trades")
    over = trades.withColumn("w", windows("ts", "60 seconds", "2 seconds"))
    late = expr("CASE WHEN ts >= w.end - INTERVAL 10 SECONDS THEN price END")
    means = over.withColumn("late", late).groupBy("w", "symbol")
    found = means.agg(avg("late").alias("s"), avg("price").alias("l"))
    return found.where(col("s") > col("l")).selectExpr("symbol", "s - l AS diff")


def _following(spark: SparkSession, folder: Path, window: int) -> DataFrame:
    from pyspark.sql.functions import avg, col, expr
    from pyspark.sql.functions import window as windows

    sides = []
    for side in "ab":
        one = _stream(spark, folder, "o")
        sides.append(one.selectExpr(*(f"{c} AS {side}_{c}" for c in ("id", "x", "y", "ts"))))
    pairs = sides[0].join(sides[1], expr("a_ts = b_ts AND a_id < b_id"))
    apart = pairs.withColumn("d", expr("sqrt(pow(a_x - b_x, 2) + pow(a_y - b_y, 2))"))
    over = apart.groupBy(windows("a_ts", f"{window} seconds", "10 seconds"), "a_id", "b_id")
    return over.agg(avg("d").alias("d")).where(col("d") < 1_000)


QUERIES = {"macd": _macd, "following": _following}


def _child(job: dict[str, Any]) -> None:
    from peers.spark_join import BASE, STORES, TUNED, _session

    store = {"spark.sql.streaming.stateStore.providerClass": STORES["default"]}
    settings = BASE | TUNED | store | {"spark.sql.shuffle.partitions": "4"}
    spark = _session({"master": "local[2]", "conf": settings})
    begun, found = time.perf_counter(), {}
    for name in job["queries"]:
        for number in (1, 2):
            emit(note=f"{name}, pass {number}")
            frame = QUERIES[name](spark, Path(job["folder"]), job["window"])
            found[name] = _pass(frame)
    emit(done={"total_s": time.perf_counter() - begun, "rows_out": 0, "queries": found})
    spark.stop()


def _pass(frame: DataFrame) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as checkpoint:
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        begun = time.perf_counter()
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        seconds = time.perf_counter() - begun
        rows = sum(max(p.sink.numOutputRows, 0) for p in query.recentProgress)
    return {"seconds": seconds, "rows": rows}


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
