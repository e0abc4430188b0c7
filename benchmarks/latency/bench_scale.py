"""Epochs at a constant input rate while the windows hold more and more rows.

A window join is filled with 10 k to 10 M rows; then small batches of one size arrive and the time
of their epochs is taken. It should not depend on how much the windows hold. Then the same with one
and with two executors (`local-cluster`).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from child import command
from common.harness import Report

BATCH = 20_000
WARM = 4
GOAL = "epoch p50 at the largest state, times the smallest"
GOAL_99 = "epoch p99 at the largest state, times the smallest"


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("scale", scale="quick" if quick else "full")
    report.declare(GOAL, at_most=2)
    report.declare(GOAL_99, at_most=2)
    sizes = [10_000, 100_000, 1_000_000] if quick else [10_000, 100_000, 1_000_000, 10_000_000]
    batches = 16 if quick else 40
    found: dict[int, dict[str, float]] = {}
    for size in sizes:
        case = f"{size:,} rows in the windows"
        report.progress(case)
        found[size] = _child({"rows": size, "batches": batches, "master": "local[2,4]"})
        _rows(report, case, found[size])
    for metric, goal in (("p50", GOAL), ("p99", GOAL_99)):
        report.ratio(goal, found[sizes[-1]][metric], found[sizes[0]][metric])
    if not quick:
        for executors in (1, 2):
            case = f"local-cluster, {executors} executor(s), 1 M rows in the windows"
            report.progress(case)
            master = f"local-cluster[{executors},1,2048]"
            job = {"rows": 1_000_000, "batches": batches, "master": master, "batch": 10 * BATCH}
            _rows(report, case, _child(job))
    report.finish(Path(json_path) if json_path else None)
    return 0


def _rows(report: Report, case: str, figures: dict[str, float]) -> None:
    for metric in ("p50", "p99"):
        report.row(case, "thalweg", f"epoch {metric}", "ms", figures[metric])
    report.row(case, "thalweg", "packs kept", "", figures["packs"])


def _child(job: dict[str, Any]) -> dict[str, float]:
    """In a process of its own: a JVM for each size, so none is warmer than the others."""
    done = subprocess.run(
        command(__name__, json.dumps(job)),
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-3000:])
    return dict(json.loads(done.stdout.splitlines()[-1]))


# In the child process from here on.


def _write(folder: Path, job: dict[str, Any]) -> int:
    """One file that fills the window, then small ones; returns the window in seconds."""
    rows, batch = job["rows"], job.get("batch", BATCH)
    rate = batch / 2  # rows a second and stream: a batch is one second
    window = max(int(rows / 2 / rate), 1)
    for s, name in enumerate(("a", "b")):
        rng = np.random.default_rng(s)
        (folder / name).mkdir()
        spans = [(0.0, window)] + [(window + i, window + i + 1) for i in range(job["batches"])]
        for i, (low, high) in enumerate(spans):
            count = int((high - low) * rate)
            ts = np.sort(rng.integers(int(low * 1e6), int(high * 1e6), count))
            table = pa.table(
                {
                    "k": rng.integers(0, max(rows, 1000), count),
                    "ts": pa.array(ts, pa.timestamp("us", "UTC")),
                    "x": rng.random(count),
                }
            )
            path = folder / name / f"{i:06d}.parquet"
            pq.write_table(table, path)
            os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))
    return window


def _measure(job: dict[str, Any]) -> dict[str, float]:
    import thalweg as tw

    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as folder:
        window = _write(Path(folder), job)
        engine = tw.Engine(job["master"], path=f"{folder}/engine", parallelism=2)
        for name in ("a", "b"):
            engine.sql(
                f"CREATE STREAM {name} (k BIGINT, ts TIMESTAMP, x DOUBLE) TIMESTAMP BY ts "
                f"FROM FILES '{folder}/{name}' FORMAT parquet OPTIONS (max_files_per_trigger = 1)"
            )
        spec = f"[RANGE {window} SECONDS]"
        query = engine.query(
            f"SELECT ISTREAM a.k, a.x, b.x AS y FROM a {spec}, b {spec} WHERE a.k = b.k"
        )
        times: list[float] = []
        engine.run(progress=lambda e: times.append(e.seconds * 1e3) if e.rows_in else None)
        packs = sum(s["packs"] for s in query.stats()["streams"].values())
        engine.close()
    warm = sorted(times[1 + WARM :])
    return {
        "p50": statistics.median(warm),
        "p99": warm[min(int(len(warm) * 0.99), len(warm) - 1)],
        "packs": packs,
    }


if __name__ == "__main__":
    print(json.dumps(_measure(json.loads(sys.argv[1]))))
