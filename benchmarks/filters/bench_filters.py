"""Adaptive filter ordering: the seed's figures, Python predicates against Spark, real data.

Counts are of runs with injected costs and repeat exactly; times are ratios within one run.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from common.harness import Report
from filters import figures, member_predicates, python_predicates, real_data


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("filters", scale="quick" if quick else "full")
    _declare(report)
    rows = 200_000 if quick else 1_000_000
    _figures(report, rows, quick)
    report.progress("memberships through SQL")
    member_predicates.run(report, rows // 2)
    root = Path(os.environ.get("THALWEG_BENCH_DATA", tempfile.gettempdir())) / "thalweg-bench-data"
    python_predicates.compare(report, root, quick)
    real_data.run(report)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _declare(report: Report) -> None:
    report.declare("converged: evaluations, times the best static order", at_most=1.05)
    report.declare("quiet: extra evaluations of auto", at_most=0.03)
    report.declare("quiet: overhead of auto, share of filter time", at_most=0.03)
    report.declare("permutation: epochs to recover", at_most=2, unit="epochs")
    report.declare("4.11: A-Greedy of Independent, worst from n = 4 on", at_most=1)
    report.declare("4.11: the gap widens by", at_least=0, unit="evaluations")
    report.declare(f"4.12: {figures.MIDDLE}", at_least=figures.POINT)
    for n in (3, 8):
        report.declare(f"4.13/14: n = {n}, {figures.RISES}", at_least=figures.POINT)
        report.declare(f"4.13/14: n = {n}, {figures.FALLS}", at_least=figures.POINT)
    report.declare("table 4.2: profile rises with n", at_least=1)
    report.declare("table 4.2: profile rises with p", at_least=1)
    report.declare("4.15: Sweep of A-Greedy at n = 10, p = 0.05", at_most=1)
    report.declare("4.15: Sweep's lead grows with n (below 0)", at_most=0)
    report.declare("4.17: A-Greedy's overhead at c = 100 (seed: 0.25)", at_least=0.1)
    report.declare("4.17: Sweep of A-Greedy at c = 100", at_most=1)
    report.declare("4.19: A-Greedy's recovery of Sweep's", at_most=1)
    report.declare("4.19: A-Greedy's recovery of LocalSwaps'", at_most=1)
    report.declare("4.22: Sweep of A-Greedy at period 10^5", at_least=1)
    report.declare("4.22: Sweep of A-Greedy at period 10^6", at_most=1)
    report.declare("4.23: A-Greedy's lead at 10^5 grows with c", at_least=0)
    report.declare("4.24: Sweep's lead at 10^6 grows with c (below 0)", at_most=0)
    python_predicates.declare(report)


def _figures(report: Report, rows: int, quick: bool) -> None:
    figures.claims(report)
    report.progress("figure 4.11")
    found = figures.figure_4_11(report, rows)
    report.measure("converged: evaluations, times the best static order", found["converged"])
    report.measure("4.11: A-Greedy of Independent, worst from n = 4 on", found["worst"])
    report.measure("4.11: the gap widens by", found["gap"])
    report.progress("figures 4.12 to 4.14, table 4.2")
    middle = figures.figure_4_12(report, rows)["middle above ends"]
    report.measure(f"4.12: {figures.MIDDLE}", middle)
    found = figures.figure_4_13(report, rows)
    for n in (3, 8):
        report.measure(f"4.13/14: n = {n}, {figures.RISES}", found[f"n = {n}"])
        report.measure(f"4.13/14: n = {n}, {figures.FALLS}", found[f"n = {n}, all"])
    found = figures.table_4_2(report, rows)
    report.measure("table 4.2: profile rises with n", found["with n"])
    report.measure("table 4.2: profile rises with p", found["with p"])
    report.progress("figures 4.15 to 4.18")
    found = figures.figure_4_15(report, rows)
    report.measure("4.15: Sweep of A-Greedy at n = 10, p = 0.05", found["sweep at 10"])
    report.measure("4.15: Sweep's lead grows with n (below 0)", found["falls with n"])
    found = figures.figure_4_17(report, rows)
    report.measure("4.17: A-Greedy's overhead at c = 100 (seed: 0.25)", found["overhead c = 100"])
    report.measure("4.17: Sweep of A-Greedy at c = 100", found["sweep c = 100"])
    report.progress("figures 4.19 to 4.24")
    found = figures.figure_4_19(report, 8 if quick else 16)
    report.measure("4.19: A-Greedy's recovery of Sweep's", found["a-greedy"] / found["sweep"])
    swaps = found["a-greedy"] / found["local-swaps"]
    report.measure("4.19: A-Greedy's recovery of LocalSwaps'", swaps)
    found = figures.figure_4_22(report, quick)
    report.measure("4.22: Sweep of A-Greedy at period 10^5", found["10/100000"])
    report.measure("4.22: Sweep of A-Greedy at period 10^6", found["10/1000000"])
    report.progress("quiet times and recovery")
    quiet = figures.overhead_when_quiet(report, rows)
    report.measure("quiet: extra evaluations of auto", quiet["evaluations"])
    report.measure("quiet: overhead of auto, share of filter time", quiet["time"])
    if not quick:
        grows = found["100/100000"] - found["10/100000"]
        report.measure("4.23: A-Greedy's lead at 10^5 grows with c", grows)
        report.measure("4.24: Sweep's lead at 10^6 grows with c (below 0)",
                       found["100/1000000"] - found["10/1000000"])  # fmt: skip
    epochs = figures.recovery_in_epochs(report, 300_000)
    report.measure("permutation: epochs to recover", epochs)
