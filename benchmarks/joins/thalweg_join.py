"""Thalweg's own lane of the join benchmarks, in a process of its own like every peer.

A warm batch is the time from one committed epoch to the next: ingest of the following batch and
the epoch of this one run side by side, as they do in production, so the distance of commits is
what a batch costs.

State is what streams and queries keep after an epoch, the most of all epochs: the bytes of packs,
with the indexes they bring along. What is derived from packs and remembered is not in it, except
that caches of subresults count with all they may take once one is in use.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

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

TYPES = {"k": "BIGINT", "m": "BIGINT", "ts": "TIMESTAMP"}


def run_thalweg_join(
    data: Dataset,
    *,
    source: str = "frame",
    cores: int = 2,
    passes: int = 3,
    budget_s: float = 300.0,
    progress: Progress = silent,
) -> PeerResult:
    """The window join over a streaming DataFrame (`frame`) or FROM FILES (`files`)."""
    job = {
        "data": str(data.path.absolute()),
        "source": source,
        "passes": passes,
        "cores": cores,
    }
    result = run_child(
        PeerResult(f"thalweg-{source}"),
        command(__name__),
        job,
        budget_s=budget_s,
        batch_budget_s=60.0,
        progress=progress,
        env={"PYTHONWARNINGS": "ignore"},
    )
    check_count(result, data.expected())
    for rows in result.detail.get("passes_rows_out", []):
        if rows != data.expected():
            raise PeerError(f"a pass gave {rows:,} results where {data.expected():,} are right")
    return result


def net_s(ours: PeerResult, floor: PeerResult) -> float | None:
    """Our warm run minus the floor's warm run, in seconds for all batches. Of ours, reading is what
    the floor does: everything in, nothing done. None where the floor was the slower one, which
    says something of the machine and nothing of us."""
    if ours.warm_ms is None or floor.warm_ms is None or ours.warm_ms <= floor.warm_ms:
        return None
    return (ours.warm_ms - floor.warm_ms) * len(ours.batch_ms) / 1e3


WHOLE_RUNS = "times Flink, whole runs of both"


def whole_runs(ours: PeerResult, flink: PeerResult) -> float | None:
    """How many times our whole run, first pass and start of the query included, Flink's takes."""
    if flink.partial or not ours.total_s or flink.total_s is None:
        return None
    return flink.total_s / ours.total_s


def query_text(data: Dataset) -> str:
    """The join in our SQL."""
    window = f"[RANGE {data.spec.window_s} SECONDS]"
    if data.spec.is_star:
        return _star_text(data, window)
    if data.spec.ways == 2:
        return f"SELECT ISTREAM a.k, a.x, b.y FROM a {window}, b {window} WHERE a.k = b.k"
    return (
        f"SELECT ISTREAM a.k, b.m, a.x, b.y, c.z FROM a {window}, b {window}, c {window} "
        "WHERE a.k = b.k AND b.m = c.m"
    )


def _star_text(data: Dataset, window: str) -> str:
    streams = data.spec.streams
    shown = ", ".join(f"{s}.{data.columns(s)[-1]}" for s in streams)
    where = " AND ".join(f"{left}.k = {right}.k" for left, right in pairwise(streams))
    windows = ", ".join(f"{s} {window}" for s in streams)
    return f"SELECT ISTREAM a.k, {shown} FROM {windows} WHERE {where}"


# In the child process from here on.


def _add_streams(engine: Any, data: Dataset, source: str) -> None:
    lateness = f"{data.spec.jitter_ms} milliseconds"
    for name in data.spec.streams:
        columns = ", ".join(f"{c} {TYPES.get(c, 'DOUBLE')}" for c in data.columns(name))
        if source == "files":
            engine.sql(
                f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts LATENESS {lateness} "
                f"FROM FILES '{data.path / name}' FORMAT parquet "
                "OPTIONS (max_files_per_trigger = 1)"
            )
        else:
            reader = engine.spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
            frame = reader.parquet(str(data.path / name))
            engine.stream(name, frame, timestamp="ts", lateness=lateness)


def _pass(spark: Any, data: Dataset, job: dict[str, Any], report: bool) -> tuple[float, int, dict]:
    import thalweg as tw

    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as path:
        engine = tw.Engine(spark, path=path, parallelism=job["cores"], durable=False)
        _add_streams(engine, data, job["source"])
        query = engine.query(query_text(data), name="join")
        begun = time.perf_counter()
        last = begun
        steps: list[float] = []
        kept: list[int] = []

        def progress(epoch: Any) -> None:
            nonlocal last
            now = time.perf_counter()
            steps.append(epoch.step_seconds * 1e3)
            kept.append(epoch.state_bytes)
            if report and epoch.rows_in:
                batches = max(1, round(epoch.rows_in / data.spec.batch_rows))
                for _ in range(batches):
                    emit(batch_ms=(now - last) * 1e3 / batches, rows_out=0)
            last = now

        engine.run(progress=progress)
        total = time.perf_counter() - begun
        stats = query.stats()
        engine.close()
        state = {
            "state_bytes": max(kept) + _cache_bytes(stats),
            "kept_bytes": {s: v["kept_bytes"] for s, v in stats["streams"].items()},
        }
        return total, stats["emitted"], {"step_ms": steps, **state}


def _cache_bytes(stats: dict[str, Any]) -> int:
    from thalweg.adapt.constants import CACHE_BYTES

    used = any(cache["state"] == "used" for cache in stats["adapt"]["caches"])
    return CACHE_BYTES if used else 0


def _child(job: dict[str, Any]) -> None:
    from thalweg.spark.settings import create_session

    data = load(Path(job["data"]))
    spark = create_session(f"local[{job['cores']},4]", {"spark.driver.memory": "8g"})
    runs = []
    for number in range(1, job["passes"] + 1):
        emit(note=f"pass {number} of {job['passes']}")
        runs.append(_pass(spark, data, job, report=number == job["passes"]))
    emit(
        done={
            "total_s": runs[0][0],
            "rows_out": runs[-1][1],
            "passes_s": [r[0] for r in runs],
            "passes_rows_out": [r[1] for r in runs],
            **runs[-1][2],
        }
    )
    spark.stop()


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
