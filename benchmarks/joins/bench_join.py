"""The interval join: Thalweg, Spark's stream-stream join, Flink, and the floor, on the same rows.

One command generates the rows, runs every system in a process of its own on the same files with
the same triggers, asserts that all give the same number of results, and prints whole runs and warm
batches. `--quick` cuts the number of batches and leaves out Spark with its defaults.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from common.harness import Report
from common.peer_process import PeerResult
from joins.interval_data import Dataset, Spec, ensure
from joins.thalweg_join import WHOLE_RUNS, net_s, run_thalweg_join, whole_runs
from peers.flink_join import run_flink_join
from peers.spark_join import run_spark_floor, run_spark_join

GOALS: dict[str, dict[str, float]] = {
    "1 M: times Spark's default store": {"at_least": 50},
    "1 M: times Flink (run minus read, both)": {"at_least": 8},
    "1 M: times the floor": {"at_most": 2},
    "200 k: times Spark's default store": {"at_least": 8},
    "200 k: times Spark's RocksDB store": {"at_least": 25},
    "200 k: times the floor": {"at_most": 1.7},
    "three-way 300 k: times Spark's chained joins": {"at_least": 8},
}


def run(quick: bool = False, json_path: str | None = None) -> int:
    """Measure, print, write; exit code 0 whatever the goals say (they are in the report)."""
    report = Report("join", scale="quick" if quick else "full")
    for name, bound in GOALS.items():
        report.declare(name, **bound)
    root = Path(os.environ.get("THALWEG_BENCH_DATA", tempfile.gettempdir())) / "thalweg-bench-data"
    _small_batches(report, root, quick)
    _large_batches(report, root, quick)
    _three_way(report, root, quick)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _small_batches(report: Report, root: Path, quick: bool) -> None:
    case = "200 k per batch"
    data = ensure(root, Spec(batch_rows=200_000, batches=8 if quick else 20))
    ours = _ours(report, case, data)
    floor = _shown(report, case, run_spark_floor(data, progress=report.progress))
    spark = _fastest_spark(report, case, data, quick, 300)
    report.ratio("200 k: times the floor", ours.warm_ms, floor.warm_ms)
    report.ratio("200 k: times Spark's default store", spark.warm_ms, ours.warm_ms)
    rocks = _shown(
        report,
        case,
        run_spark_join(
            data, store="rocksdb", shuffle_partitions=2, budget_s=90 if quick else 400,
            progress=report.progress,
        ),
    )  # fmt: skip
    report.ratio("200 k: times Spark's RocksDB store", rocks.warm_ms, ours.warm_ms)
    if not quick:
        for store in ("default", "rocksdb"):
            _shown(
                report,
                case,
                run_spark_join(
                    data, store=store, tuned=False, budget_s=300, batch_budget_s=200,
                    progress=report.progress,
                ),
            )  # fmt: skip


def _large_batches(report: Report, root: Path, quick: bool) -> None:
    case = "1 M per batch"
    data = ensure(root, Spec(batch_rows=1_000_000, batches=4 if quick else 8))
    ours = _ours(report, case, data)
    floor = _shown(report, case, run_spark_floor(data, progress=report.progress))
    report.ratio("1 M: times the floor", ours.warm_ms, floor.warm_ms)
    spark = _fastest_spark(report, case, data, quick, 150 if quick else 400)
    report.ratio("1 M: times Spark's default store", spark.warm_ms, ours.warm_ms)
    if not quick:
        defaults = run_spark_join(
            data, tuned=False, budget_s=300, batch_budget_s=200, progress=report.progress
        )
        _shown(report, case, defaults)
    flink = run_flink_join(
        data,
        repeats=1 if quick else 2,
        budget_s=300 if quick else 900,
        progress=report.progress,
    )
    report.peer(case, flink)
    report.row(case, "thalweg", WHOLE_RUNS, "x", whole_runs(ours, flink))
    goal = "1 M: times Flink (run minus read, both)"
    report.ratio(goal, flink.net_s, net_s(ours, floor), flink.skipped or "")


def _three_way(report: Report, root: Path, quick: bool) -> None:
    case = "three-way, two keys, 300 k per batch"
    data = ensure(root, Spec(ways=3, batch_rows=300_000, batches=5 if quick else 10))
    ours = run_thalweg_join(data, progress=report.progress)
    report.peer(case, ours)
    spark = _fastest_spark(report, case, data, quick, 90 if quick else 400)
    report.ratio("three-way 300 k: times Spark's chained joins", spark.warm_ms, ours.warm_ms)


def _fastest_spark(
    report: Report, case: str, data: Dataset, quick: bool, budget_s: float
) -> PeerResult:
    """Spark's default store; a full run tries one and two partitions per core and counts the
    faster."""
    found = [
        _shown(
            report,
            case,
            run_spark_join(
                data, shuffle_partitions=partitions, budget_s=budget_s, progress=report.progress
            ),
        )
        for partitions in ((4,) if quick else (2, 4))
    ]
    return min(found, key=lambda result: result.warm_ms or float("inf"))


def _ours(report: Report, case: str, data: Dataset) -> PeerResult:
    """Both lanes; the goals are judged on the streaming DataFrame, the harder one."""
    _shown(report, case, run_thalweg_join(data, source="files", progress=report.progress))
    return _shown(report, case, run_thalweg_join(data, progress=report.progress))


def _shown(report: Report, case: str, result: PeerResult) -> PeerResult:
    report.peer(case, result)
    return result
