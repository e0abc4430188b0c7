"""From a row's arrival to the callback that sees it, at 1 k and 50 k rows a second.

A thread drops a file every 100 ms whose rows carry the time at which they were made; the callback
of a filter query takes the difference. Also: how much of an epoch is our own driver code, outside
Spark's jobs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from child import command
from common.harness import Report

TICK = 0.1
GOALS = {1_000: 1.0, 50_000: 2.0}
OVERHEAD = "own overhead per epoch (ingest and epoch code outside Spark jobs), ms"


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("latency", scale="quick" if quick else "full")
    for rate, bound in GOALS.items():
        report.declare(f"{rate:,} rows/s: p99 arrival to callback, s", at_most=bound, unit="s")
    report.declare(OVERHEAD, at_most=50, unit="ms")
    worst = 0.0
    for rate in GOALS:
        case = f"{rate:,} rows/s"
        report.progress(case)
        found = _child({"rate": rate, "seconds": 20 if quick else 60})
        for name, value in found.items():
            unit = "ms" if name.endswith("_ms") else ("rows" if name == "rows" else "s")
            report.row(case, "thalweg", name, unit, value)
        report.measure(f"{rate:,} rows/s: p99 arrival to callback, s", found["p99"])
        worst = max(worst, found["overhead_p50_ms"])
    report.measure(OVERHEAD, worst)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _child(job: dict[str, Any]) -> dict[str, float]:
    done = subprocess.run(
        command(__name__, json.dumps(job)),
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-3000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


# In the child process from here on.


def _feed(folder: Path, rate: int, until: float) -> None:
    number = 0
    rng = np.random.default_rng(0)
    count = max(int(rate * TICK), 1)
    due = time.time()
    while due < until:
        made = int(time.time() * 1e6) + np.arange(count)
        table = pa.table({"ts": pa.array(made, pa.timestamp("us", "UTC")), "x": rng.random(count)})
        draft = folder / f".{number}.parquet"
        pq.write_table(table, draft)
        draft.rename(folder / f"{number:08d}.parquet")
        number += 1
        due += TICK
        time.sleep(max(due - time.time(), 0))


def _measure(job: dict[str, Any]) -> dict[str, float]:
    import thalweg as tw

    delays: list[np.ndarray] = []
    own: list[float] = []
    warm_from = [float("inf")]

    def seen(table: pa.Table) -> None:
        now = time.time()
        if now >= warm_from[0]:
            made = table.column("__ts").cast(pa.int64()).to_numpy() / 1e6
            delays.append(now - made)

    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as scratch:
        folder = Path(scratch, "rows")
        folder.mkdir()
        engine = tw.Engine("local[2,4]", path=f"{scratch}/engine")
        engine.sql(
            "CREATE STREAM s (ts TIMESTAMP, x DOUBLE) TIMESTAMP BY ts "
            f"FROM FILES '{folder}' FORMAT parquet"
        )
        engine.query("SELECT ts, x FROM s WHERE x >= 0.0", callback=seen)
        engine.start(progress=lambda e: own.append(e.own_seconds * 1e3) if e.rows_in else None)
        end = time.time() + 10 + job["seconds"]
        warm_from[0] = time.time() + 10
        feeder = threading.Thread(target=_feed, args=(folder, job["rate"], end))
        feeder.start()
        feeder.join()
        time.sleep(3)
        engine.close()
    every = np.sort(np.concatenate(delays))
    steady = np.sort(own[len(own) // 4 :])
    return {
        "p50": float(np.quantile(every, 0.5)),
        "p99": float(np.quantile(every, 0.99)),
        "rows": float(len(every)),
        "overhead_p50_ms": float(np.quantile(steady, 0.5)),
        "overhead_p99_ms": float(np.quantile(steady, 0.99)),
    }


if __name__ == "__main__":
    print(json.dumps(_measure(json.loads(sys.argv[1]))))
