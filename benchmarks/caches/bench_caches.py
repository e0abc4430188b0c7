"""Subresult caches: the seed's figures 5.11 to 5.23, in operations and time, and how joins adapt.

Counts repeat exactly; times are CPU time of one core. The engine chooses caches by counted
operations here, so that its choices repeat too. For figures 5.19 and 5.20, which drop an index, a
pair of inequalities takes the place of an equality.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np

from caches import run_plans as cr
from caches.adaptive_joins import ADAPTING_GOALS, measure_adapting
from caches.run_plans import Outcome, Planned, Workload
from caches.workloads import POINTS, Q1_SCANNED, in_order, point, q1, q2, uniform
from common.harness import Report
from thalweg.adapt.constants import CACHE_QUOTA

GOALS: dict[str, tuple[str, dict[str, float]]] = {
    "5.11": ("cached of MJoin's operations at multiplicity 1", {"at_most": 1}),
    "5.12": ("the gain grows from multiplicity 1 to the highest, by", {"at_least": 0}),
    "5.13": ("cached of MJoin's operations, worst selectivity", {"at_most": 1}),
    "5.15": ("cached of MJoin's operations, most updates a probe", {"at_most": 1}),
    "5.16": ("the gain falls as updates grow, by", {"at_least": 0}),
    "5.17": ("cached of MJoin's operations, worst n", {"at_most": 1}),
    "5.19": ("cached of MJoin's time without an index, largest window", {"at_most": 1}),
    "5.20": ("the gain grows with the size of the window, by", {"at_least": 0}),
    "5.21a": ("share of the points at which X, P and G are below M", {"at_least": 1}),
    "5.21b": ("G of X, worst point", {"at_most": 1.1}),
    "5.22a": ("epochs until the plan follows the burst", {"at_most": 10}),
    "5.22b": ("afterwards, times the best static plan", {"at_most": 1.1}),
    "5.22c": ("slowest epoch of the switch, times the median", {"at_most": 3}),
    "5.23a": ("operations at full memory of those at none", {"at_most": 0.95}),
    "5.23b": ("most that operations rise from one size of memory to the next", {"at_most": 1.02}),
}


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("caches", scale="quick" if quick else "full")
    for name, (text, bound) in (GOALS | ADAPTING_GOALS).items():
        report.declare(f"{name}: {text}", **bound)
    _hit_probability(report, (1, 5) if quick else (1, 2, 5, 10))
    _selectivity(report, (0.2, 1.0) if quick else (0.1, 0.25, 0.5, 0.75, 1.0))
    _updates(report, (1, 10) if quick else (1, 2, 5, 10, 20))
    _joins(report, (3, 5) if quick else (3, 4, 5, 6, 7))
    _scans(report, (50, 200) if quick else (50, 100, 200, 400, 800))
    _points(report, ("D1", "D4") if quick else tuple(POINTS))
    _burst(report)
    _memory(report, (0, 2, 64) if quick else (0, 1, 2, 4, 8, 16, 64))
    measure_adapting(report, quick)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _measure(report: Report, name: str, value: float) -> None:
    report.measure(f"{name}: {GOALS[name][0]}", value)


def _compared(report: Report, case: str, work: Workload) -> tuple[float, float]:
    """Cached of MJoin's operations, and of its time; the engine chooses caches by itself."""
    plain, cached = cr.run(work), cr.run(work, joins="cached")
    assert plain.results == cached.results, case
    for name, found in (("mjoin", plain), ("cached", cached)):
        report.row(case, f"thalweg {name}", "operations a row", "", found.per_row)
        report.row(case, f"thalweg {name}", "rows a second (CPU)", "rows/s", found.rate)
    return cached.per_row / plain.per_row, plain.rate / cached.rate


# -- Q1 ------------------------------------------------------------------------------------------


def _hit_probability(report: Report, multiplicities: tuple[int, ...]) -> None:
    report.progress("figures 5.11 and 5.12: hit probability")
    found = {
        times: _compared(report, f"5.11/12 multiplicity {times}", q1(2000, times))[0]
        for times in multiplicities
    }
    _measure(report, "5.11", found[1])
    _measure(report, "5.12", found[1] - found[max(multiplicities)])


def _selectivity(report: Report, shares: tuple[float, ...]) -> None:
    report.progress("figures 5.13 and 5.14: join selectivity")
    found = [
        _compared(report, f"5.13/14 {share:g} of R match", q1(2000, 5, share=share))[0]
        for share in shares
    ]
    _measure(report, "5.13", max(found))


def _updates(report: Report, extents: tuple[int, ...]) -> None:
    report.progress("figures 5.15 and 5.16: updates to probes")
    found = {}
    for every in extents:
        case = f"5.15/16 {every / 5:g} updates a probe"
        found[every] = _compared(report, case, q1(1000, 5, every=every))[0]
    _measure(report, "5.15", found[max(extents)])
    _measure(report, "5.16", found[max(extents)] - found[min(extents)])


def _scans(report: Report, sizes: tuple[int, ...]) -> None:
    report.progress("figures 5.19 and 5.20: without an index")
    found = {}
    for size in sizes:
        work = q1(size, 5, sql=Q1_SCANNED)
        found[size] = _compared(report, f"5.19/20 {4 * size} rows in a window", work)[1]
    _measure(report, "5.19", found[max(sizes)])
    _measure(report, "5.20", found[min(sizes)] - found[max(sizes)])


# -- Q2 ------------------------------------------------------------------------------------------


def _joins(report: Report, counts: tuple[int, ...]) -> None:
    report.progress("figures 5.17 and 5.18: number of joins")
    found = []
    for n in counts:
        times = [1 if i < n // 2 else 5 for i in range(n)]
        values = 60
        draws = [in_order("A", t, values * (t > 1)) for t in times]
        work = q2(tuple(values * t for t in times), draws, 60, 16)
        found.append(_compared(report, f"5.17/18 n = {n}", work)[0])
    _measure(report, "5.17", max(found))


def _points(report: Report, names: tuple[str, ...]) -> None:
    below, worst = [], 0.0
    for name in names:
        report.progress(f"figure 5.21: point {name}")
        found = spectrum(point(name, 60, 8, 5))
        for plan, outcome in found.items():
            case = f"5.21 {name}"
            report.row(case, f"thalweg {plan}", "operations a row", "", outcome.per_row)
            report.row(case, f"thalweg {plan}", "rows a second (CPU)", "rows/s", outcome.rate)
        for plan, outcome in source_spectrum(point(name, 24, 7, 5)).items():
            case = f"5.21 {name}, caches for A-Greedy's orders"
            report.row(case, f"thalweg {plan}", "operations a row", "", outcome.per_row)
        below.append(max(found[p].per_row for p in "XPG") <= found["M"].per_row)
        worst = max(worst, found["G"].per_row / found["X"].per_row)
    _measure(report, "5.21a", sum(below) / len(below))
    _measure(report, "5.21b", worst)


def spectrum(work: Workload) -> dict[str, Outcome]:
    """The best plan of each kind: without subresults, trees, prefix caches, any caches."""
    found = {
        "M": cr.run(work),
        "X": cr.best(work, list(cr.xjoins(work).values())),
        "P": cr.best(work, cr.prefix_plans(work)),
    }
    wide = cr.best(work, cr.global_plans(work))
    found["G"] = min(wide, found["P"], key=lambda o: o.per_row)
    assert len({o.results for o in found.values()}) == 1
    return found


def source_spectrum(work: Workload) -> dict[str, Outcome]:
    """The source's own problem: P and G choose caches for the pipelines that M has ended with,
    where ours may order pipelines so that caches fit; X as there."""
    found = {"M": cr.run(work)}
    given = cr.given_orders(work, found["M"].orders, CACHE_QUOTA)
    found["X"] = cr.best(work, list(cr.xjoins(work).values()))
    found["P"] = cr.best(work, given.prefix)
    found["G"] = cr.best(work, given.wide)
    assert len({o.results for o in found.values()}) == 1
    return found


# -- a burst, and memory -------------------------------------------------------------------------


def _burst(report: Report) -> None:
    """R comes twenty times as fast from the middle on."""
    report.progress("figure 5.22: a burst")
    middle, epochs = 20, 40

    def rate(epoch: int) -> int:
        return 100 if epoch < middle else 2000

    base = q1(100, 4)
    draws = {"R": uniform("A", 300), "S": uniform("AB", 300), "T": uniform("Bv", 300)}
    rates = {"R": rate, "S": 100, "T": 400}
    work = Workload(base.sql, rates, draws, base.columns, epochs, 5)
    found = cr.run(work, joins="cached")
    plans: dict[str, Planned] = {"mjoin": lambda plan: plan, **cr.xjoins(work)}
    static = {name: cr.run(work, planned) for name, planned in plans.items()}
    late = {name: np.array(o.operations[middle:]) for name, o in static.items()}
    best = min(late, key=lambda n: late[n][10:].sum())
    ratio = np.array(found.operations[middle:]) / late[best]
    for name, outcome in {"adaptive": found, **static}.items():
        for which, part in (("before", slice(10, middle)), ("after", slice(middle + 10, None))):
            value = float(np.mean(outcome.operations[part]))
            report.row("5.22", f"thalweg {name}", f"operations an epoch, {which}", "", value)
    near = np.flatnonzero(ratio <= 1.1)
    _measure(report, "5.22a", int(near[0]) + 1 if len(near) else epochs)
    _measure(report, "5.22b", float(np.mean(ratio[-8:])))
    seconds = np.array(found.seconds[middle:])
    _measure(report, "5.22c", float(seconds.max() / np.median(seconds)))


def _memory(report: Report, sizes: tuple[int, ...]) -> None:
    """The pool from nothing to plenty, in pages of 64 KiB."""
    report.progress("figure 5.23: memory")
    draws = {"R": uniform("A", 4000), "S": uniform("AB", 4000), "T": uniform("Bv", 4000)}
    base = q1(200, 20)
    work = Workload(base.sql, {"R": 500, "S": 500, "T": 2000}, draws, base.columns, 60, 28)
    plain = cr.run(work)
    report.row("5.23", "thalweg mjoin", "operations a row", "", plain.per_row)
    found = []
    for pages in sizes:
        outcome = cr.run(work, joins="cached", memory=pages << 16)
        assert outcome.results == plain.results
        found.append(outcome.per_row)
        case = f"thalweg cached, {64 * pages} KiB"
        report.row("5.23", case, "operations a row", "", outcome.per_row)
        report.row("5.23", case, "bytes in caches", "B", outcome.bytes)
    _measure(report, "5.23a", found[-1] / found[0])
    rises = [after / before for before, after in pairwise(found)]
    _measure(report, "5.23b", max(rises))
