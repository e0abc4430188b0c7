"""An ad-hoc query over a long past, beside live queries: in a process of its own.

A stream keeps some million rows. Small batches arrive at a steady pace, live queries follow them;
then a query comes that wants to see the whole past. How long until its first result, until it has
caught up, and what happens to the epochs of the others meanwhile?
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

SCHEMA = "dev BIGINT, x DOUBLE, ts TIMESTAMP"
CHUNK = 500_000
BATCH = 20_000
PAUSE_S = 0.15
LIVE = (
    "SELECT dev, count(*) AS n, avg(x) AS mean FROM s [RANGE 2 SECONDS] WHERE x > 0.9 GROUP BY dev",
    "SELECT ISTREAM dev, x FROM s WHERE x > 0.999",
)
ADHOC = {
    "filter": "SELECT ISTREAM dev, x FROM s WHERE x > 0.9999",
    "key": "SELECT ISTREAM x FROM s WHERE dev = 77",
    "groups": "SELECT dev, count(*) AS n FROM s [RANGE 1 HOUR] WHERE x > 0.99 GROUP BY dev",
}


def rows(since: int, count: int) -> pa.Table:
    rng = np.random.default_rng(since)
    return pa.table(
        {
            "dev": rng.integers(0, 10_000, count),
            "x": rng.random(count),
            "ts": pa.array(np.arange(since, since + count) * 10, pa.timestamp("us", "UTC")),
        }
    )


def measure(job: dict[str, Any]) -> dict[str, float]:
    import thalweg as tw

    stop, loaded = threading.Event(), threading.Event()

    def source() -> Iterator[pa.Table]:
        at = 0
        while at < job["rows"]:
            yield rows(at, CHUNK)
            at += CHUNK
        loaded.set()
        while not stop.is_set():
            yield rows(at, BATCH)
            at += BATCH
            time.sleep(PAUSE_S)

    epochs: list[tuple[float, float]] = []
    found: dict[str, float] = {}
    turns: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:  # noqa: SIM117
        with tw.Engine("local[2,4]", path=Path(folder) / "engine", parallelism=2) as engine:
            engine.feed("s", source, SCHEMA, "ts", key=("dev",), retain="1 day", idle=None)
            for sql in LIVE:
                engine.query(sql)
            engine.add_listener(
                lambda e: epochs.append((time.perf_counter(), e.seconds)) if e.rows_in else None
            )
            engine.start()
            loaded.wait()
            time.sleep(5)
            found["before p50"], found["before p99"] = _epochs(epochs, job["seconds"])
            during: list[float] = []
            for turn in range(job["turns"]):
                told = _one(engine, ADHOC[job["adhoc"]], f"adhoc{turn}")
                since = told.pop("begun")
                during += [s for at, s in list(epochs) if at >= since]
                for name, seconds in told.items():
                    turns.setdefault(name, []).append(seconds)
                time.sleep(1)
            found["during p50"], found["during p99"] = _percentiles(during)
            found["epochs during"] = len(during)
            stop.set()
            engine.stop()
    return found | {name: float(np.median(each)) for name, each in turns.items()}


def _one(engine: Any, sql: str, name: str) -> dict[str, float]:
    """Register a query, wait until it has caught up, drop it again."""
    begun = time.perf_counter()
    query = engine.query(sql, name)
    registered = time.perf_counter()
    while not query.results().num_rows:
        time.sleep(0.005)
    first = time.perf_counter()
    while engine.session.is_behind(name):
        time.sleep(0.005)
    caught_up = time.perf_counter()
    query.drop()
    return {
        "begun": begun,
        "registered": registered - begun,
        "first result": first - begun,
        "caught up": caught_up - begun,
    }


def _epochs(epochs: list[tuple[float, float]], seconds: float) -> tuple[float, float]:
    """Of the epochs of the next seconds."""
    begun = time.perf_counter()
    time.sleep(seconds)
    return _percentiles([s for at, s in epochs if at >= begun])


def _percentiles(seconds: list[float]) -> tuple[float, float]:
    return float(np.percentile(seconds, 50)), float(np.percentile(seconds, 99))


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
