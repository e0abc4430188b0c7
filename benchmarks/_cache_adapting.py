"""Joins that adapt, against every plan that stays: a hot key, a hot stream that changes, and what
adapting costs where it cannot help.

Plans are compared by CPU time, run in turns and repeated, and by operations. The engine chooses by
its own calibration here, as it does for users.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np

import _cache_run as cr
from _cache_data import Q1_SCANNED, W, q1, q2, uniform
from _cache_run import Draw, Planned, Workload
from _harness import Report

ADAPTING_GOALS: dict[str, tuple[str, dict[str, float]]] = {
    "skew": ("time of the best static plan, one key with 30 % of the rows", {"at_most": 1.05}),
    "drift": ("time of the best static plan, the hot stream changes", {"at_most": 1.0}),
    "overhead": ("time of the same plan without adapting, nothing to gain", {"at_most": 1.05}),
}


def measure_adapting(report: Report, quick: bool) -> None:
    repeats = 3 if quick else 5
    report.progress("a hot key")
    _against_static(report, "skew", skewed(), repeats)
    report.progress("a hot stream that changes")
    _against_static(report, "drift", drifting(), repeats)
    report.progress("nothing to gain")
    _overhead(report, calm(), 2 * repeats + 1)


def skewed() -> Workload:
    """Orders, their shipments and returns; one product has 30 % of the orders and shipments."""

    def draw(rng: np.random.Generator, first: int, rows: int) -> dict[str, np.ndarray]:
        keys = rng.integers(1, 40_000, rows)
        return {"A": np.where(rng.random(rows) < 0.3, 0, keys)}

    rare = uniform("A", 40_000)
    return q2((3_000, 3_000, 1_500), [draw, rare, rare], 40, 10)


def drifting() -> Workload:
    """Two windows matched by inequalities, and a third that asks for them: who asks changes."""
    middle, epochs = 30, 60
    base = q1(150, 5, sql=Q1_SCANNED)

    def fast_then_slow(epoch: int) -> int:
        return 1_500 if epoch < middle else 30

    def slow_then_fast(epoch: int) -> int:
        return 30 if epoch < middle else 1_500

    domain = uniform("A", 150), uniform("AB", 150), uniform("Bv", 150)
    draws: dict[str, Draw] = dict(zip("RST", domain, strict=True))
    sql = base.sql.replace(
        "R.A >= S.A AND R.A <= S.A AND S.B = T.B", "R.A = S.A AND S.B >= T.B - 1 AND S.B <= T.B"
    )
    return Workload(
        sql, {"R": slow_then_fast, "S": 60, "T": fast_then_slow}, draws, base.columns, epochs, 8
    )


def calm() -> Workload:
    """Every row has its own key, or nearly so: nothing repeats, nothing is dropped early."""
    return q2((20_000,) * 3, [uniform("A", 80_000)] * 3, 24, 8)


def _static(work: Workload) -> dict[str, Planned]:
    plans = cr.mjoins(work)
    for tree in cr.trees(work):
        plans[f"xjoin {tree}"] = lambda plan, t=tree: cr.with_tree(plan, 0, t)  # type: ignore[misc]
    return plans


def _against_static(report: Report, name: str, work: Workload, repeats: int) -> None:
    runs: dict[str, Callable[[], cr.Outcome]] = {
        "adaptive": lambda: cr.run(work, joins="auto", counted=False)
    }
    for plan, planned in _static(work).items():
        runs[plan] = lambda p=planned: cr.run(work, p, counted=False)  # type: ignore[misc]
    found = _in_turns(runs, repeats)
    assert len({o.results for outcomes in found.values() for o in outcomes}) == 1, name
    for plan, outcomes in found.items():
        _rows(report, name, plan, outcomes)
    ratios = [
        ours.spent / min(found[p][turn].spent for p in found if p != "adaptive")
        for turn, ours in enumerate(found["adaptive"])
    ]
    _judge(report, name, ratios)


def _overhead(report: Report, work: Workload, repeats: int) -> None:
    found = _in_turns(
        {
            "adaptive": lambda: cr.run(work, joins="auto", counted=False),
            "not adapting": lambda: cr.run(work, lambda plan: plan, counted=False),
        },
        repeats,
    )
    for plan, outcomes in found.items():
        _rows(report, "overhead", plan, outcomes)
    pairs = zip(found["adaptive"], found["not adapting"], strict=True)
    _judge(report, "overhead", [ours.spent / other.spent for ours, other in pairs])


def _in_turns(
    runs: dict[str, Callable[[], cr.Outcome]], repeats: int
) -> dict[str, list[cr.Outcome]]:
    """Each run in each turn, another one first every time; a first turn warms up."""
    found: dict[str, list[cr.Outcome]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(repeats + 1):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            outcome = runs[name]()
            if turn:
                found[name].append(outcome)
    return found


def _rows(report: Report, case: str, plan: str, outcomes: list[cr.Outcome]) -> None:
    rates = median(o.rate for o in outcomes)
    report.row(case, f"thalweg {plan}", "rows a second (CPU)", "rows/s", rates)
    report.row(case, f"thalweg {plan}", "operations a row", "", outcomes[0].per_row)


def _judge(report: Report, name: str, ratios: list[float]) -> None:
    report.row(name, "thalweg adaptive", "lowest turn", "x", min(ratios))
    report.row(name, "thalweg adaptive", "highest turn", "x", max(ratios))
    report.measure(f"{name}: {ADAPTING_GOALS[name][0]}", median(ratios))
