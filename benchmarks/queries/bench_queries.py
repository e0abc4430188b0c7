"""Many queries at once: how fast rows are matched with 1 to 100,000 registered filters, and what a
query over the past does to those that follow the present.

Beside it one streaming query of Spark per query, as far as Spark goes, and one streaming query with
all predicates in one projection. Rates are rows a second between the ends of two batches, reading
included; the results of some queries are counted by DuckDB. Then the figures of PSoup and Fjords,
in shape (`psoup.py`, `fjords.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from child import command
from common.harness import Report
from queries import fjords, psoup

FULL = (1, 10, 100, 1_000, 10_000, 100_000)
QUICK = (1, 100, 1_000, 10_000)
AT = 10_000
ALONE = "data rate at 10,000 queries, times one query of Spark for each (estimated)"
PROJECTED = "data rate at 10,000 queries, times one query of Spark with all predicates"
SUBLINEAR = "cost of a row at 10,000 queries, times that at 1,000"
BESIDE = "p99 of live epochs while an ad-hoc query goes through the past, times without (worst)"
LIMIT_S = 420


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("queries", scale="quick" if quick else "full")
    report.declare(ALONE, at_least=100)
    report.declare(PROJECTED, at_least=10)
    report.declare(SUBLINEAR, at_most=10)
    report.declare(BESIDE, at_most=1.5)
    psoup.declare(report)
    fjords.declare(report)
    files, rows = (8, 50_000) if quick else (10, 100_000)
    size = {"files": files, "rows": rows}
    shared = _ours(report, QUICK if quick else FULL, size, "on")
    _ours(report, (1, 10, 100) if quick else (1, 10, 100, 1_000), size, "off")
    if 1_000 in shared and AT in shared:
        report.ratio(SUBLINEAR, shared[1_000], shared[AT])
    each = _spark(
        report, "spark_each", "one Spark query each", (1, 4, 16) if quick else (1, 4, 16, 64), size
    )
    if each and AT in shared:
        most = max(each)
        estimated = each[most] * most / AT
        report.row(
            f"{AT:,} queries",
            "one Spark query each",
            "rate, estimated from its largest run",
            "rows/s",
            estimated,
        )
        report.ratio(ALONE, shared[AT], estimated)
    one = _spark(
        report,
        "spark_one",
        "one Spark query, all predicates",
        (10, 100, 1_000, AT),
        {**size, "files": 4},
    )
    if AT in one and AT in shared:
        report.ratio(PROJECTED, shared[AT], one[AT])
    elif one and AT in shared:
        most = max(one)
        report.progress(f"{AT:,} predicates are too many for one Spark query: "
                        f"compared with its rate at {most:,}")  # fmt: skip
        report.ratio(PROJECTED, shared[AT], one[most])
    _adhoc(report, 2_000_000 if quick else 10_000_000, epochs=60 if quick else 300)
    psoup.measure(report, quick)
    fjords.measure(report, quick)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _adhoc(report: Report, rows: int, epochs: int) -> None:
    """Ad-hoc queries over the past, beside live ones: one after the other, with rests between."""
    worst = None
    for kind in ("filter", "key", "groups"):
        case = f"ad-hoc query ({kind}) over {rows:,} rows"
        job = {"rows": rows, "epochs": epochs, "adhoc": kind}
        done = _child(report, {"run": case, "queries": 1, **job}, "queries.run_adhoc")
        if done is None:
            continue
        for metric in ("first result", "caught up"):
            report.row(case, "thalweg", metric, "s", done[metric])
        for when in ("before", "between", "beside"):
            for metric in ("p50", "p99", "delay p50", "delay p99"):
                value = 1e3 * done[f"{when} {metric}"]
                report.row(case, "thalweg", f"live epochs {when}, {metric}", "ms", value)
        worst = max(worst or 0, done["beside p99"] / done["without p99"])
    report.measure(BESIDE, worst)


def _ours(
    report: Report, counts: tuple[int, ...], size: dict[str, int], share: str
) -> dict[int, float]:
    found = {}
    system = "thalweg" if share == "on" else "thalweg, each by itself"
    for count in counts:
        done = _child(report, {"run": "ours", "queries": count, "share": share, **size})
        if done is None:
            break
        case = f"{count:,} queries"
        report.row(case, system, "rate", "rows/s", done["rate"])
        report.row(case, system, "rate of the whole run", "rows/s", done["whole"])
        report.row(case, system, "registering a query", "ms", done["register"])
        found[count] = done["rate"]
    return found


def _spark(
    report: Report, kind: str, system: str, counts: tuple[int, ...], size: dict[str, int]
) -> dict[int, float]:
    found = {}
    for count in counts:
        done = _child(report, {"run": kind, "queries": count, **size})
        if done is None:
            report.row(f"{count:,} queries", system, "rate", "rows/s", None)
            break
        report.row(f"{count:,} queries", system, "rate", "rows/s", done["rate"])
        if "warm" in done:
            report.row(f"{count:,} queries", system, "rate, warm", "rows/s", done["warm"])
        found[count] = done["rate"]
    return found


def _reason(stderr: str) -> str:
    """The line that names the error, among many of plans and traces."""
    lines = stderr.strip().splitlines() or ["no message"]
    named = [line for line in lines if "Error:" in line or "Exception:" in line]
    named = [line for line in named if "Memory" in line] or named
    return (named[-1] if named else lines[-1]).strip()[:200]


def _child(
    report: Report, job: dict[str, Any], module: str = "queries.run_filters"
) -> dict[str, float] | None:
    """A run in a process of its own; None if it took too long or failed."""
    how = {"off": ", each by itself"}.get(job.get("share", ""), "")
    report.progress(f"{job['run']}, {job['queries']:,} queries{how}")
    try:
        done = subprocess.run(
            command(module, json.dumps(job)),
            capture_output=True, text=True, timeout=LIMIT_S,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        report.progress(f"given up after {LIMIT_S} s")
        return None
    if done.returncode != 0:
        report.progress(f"failed: {_reason(done.stderr)}")
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))
