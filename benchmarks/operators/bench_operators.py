"""Single operators against Spark's own: same files, same triggers, equal numbers of results.

Stateful ones must never be slower than Spark (aim: five times as fast), stateless ones within 1.2
of it. Thalweg is judged on streaming DataFrames; FROM FILES is shown beside it. A warm batch is the
median of the second pass over the files in one JVM, for both.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from child import command
from common.harness import Report
from common.peer_process import PeerError, PeerResult, run_child
from operators.cases import CASES, Case, Shape, cutoff, ensure

SLOW_S = 300.0
LANES = ("thalweg-frame", "thalweg-files", "spark")


def goal_of(case: Case) -> str:
    return f"{case.name}: times Spark's own" if not case.stateless else f"{case.name}: of Spark"


def run(quick: bool = False, json_path: str | None = None) -> int:
    """Measure, print, write; exit code 0 whatever the goals say (they are in the report)."""
    report = Report("operators", scale="quick" if quick else "full")
    for case in CASES:
        if case.stateless:
            report.declare(goal_of(case), at_most=1.2)
        else:
            report.declare(goal_of(case), at_least=1)
            report.declare(f"{goal_of(case)} (aim)", at_least=5)
    shape = Shape(50_000, 4) if quick else Shape(100_000, 8)
    root = Path(os.environ.get("THALWEG_BENCH_DATA", tempfile.gettempdir())) / "thalweg-bench-data"
    folder = ensure(root, shape)
    lanes = [lane for lane in LANES if not quick or lane != "thalweg-files"]
    found = {lane: _lane(report, folder, lane, quick) for lane in lanes}
    for case in CASES:
        _compare(report, case, folder, shape, found)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _lane(report: Report, folder: Path, lane: str, quick: bool) -> dict[str, Any]:
    """All cases of one system, in a process of its own; cases known to take Spark for ever each in
    another one, so that a budget ends them alone."""
    slow = [c.name for c in CASES if c.slow_in_spark and lane == "spark"]
    usual = [c.name for c in CASES if c.name not in slow]
    found = _child(report, folder, lane, usual, 400 if quick else 1500)
    if len(found) < len(usual):
        raise PeerError(f"{lane} did not come to an end")
    for name in slow:
        found |= {} if quick else _child(report, folder, lane, [name], SLOW_S)
    return found


def _child(
    report: Report, folder: Path, lane: str, cases: list[str], budget_s: float
) -> dict[str, Any]:
    result = run_child(
        PeerResult(lane),
        command("operators.run_cases"),
        {"folder": str(folder.absolute()), "system": lane, "cases": cases},
        budget_s=budget_s,
        batch_budget_s=budget_s,
        progress=report.progress,
        env={"PYTHONWARNINGS": "ignore", "PYSPARK_PYTHON": sys.executable},
    )
    finished: dict[str, Any] = result.detail.get("cases", {})
    return finished


def _compare(report: Report, case: Case, folder: Path, shape: Shape, found: dict[str, Any]) -> None:
    warm = {}
    for lane in found:
        one = found[lane].get(case.name)
        if one is None:
            continue
        # Spark answers up to its last watermark, we to the end
        expected = case.expected(folder, cutoff(folder) if lane == "spark" else 1e9)
        if one["rows_out"] != expected:
            raise PeerError(
                f"{case.name}: {lane} gave {one['rows_out']:,} where {expected:,} are right"
            )
        warm[lane] = statistics.median(one["batch_ms"][1:])
        report.row(case.name, lane, "warm batch", "ms", warm[lane])
        report.row(case.name, lane, "whole run", "s", one["total_s"])
        report.row(case.name, lane, "results", "rows", one["rows_out"])
    ours, spark = warm["thalweg-frame"], warm.get("spark")
    if spark is None:
        _not_finished(report, case, shape, ours)
        return
    if case.stateless:
        report.ratio(goal_of(case), ours, spark)
    else:
        report.ratio(goal_of(case), spark, ours)
        report.ratio(f"{goal_of(case)} (aim)", spark, ours)


def _not_finished(report: Report, case: Case, shape: Shape, ours: float) -> None:
    """Spark was ended by its budget: what it would have needed is at least that, per batch."""
    least: float | None = SLOW_S * 1e3 / (2 * shape.batches) / ours
    reason = f"Spark did not finish two passes in {SLOW_S:g} s: at least so much"
    if report.scale == "quick":
        least, reason = None, "Spark needs minutes for it: measured in a full run"
    report.progress(f"{case.name}: {reason}")
    for name in (goal_of(case), f"{goal_of(case)} (aim)"):
        report.measure(name, least, reason)
