"""Joins that adapt, against plans that stay: a hot key, a hot stream that changes, and what
adapting costs where it cannot help.

Plans are compared by CPU time, run in turns and repeated, and by operations. The engine chooses by
its own calibration here, as it does for users. All static plans run twice; those that were best by
their medians run again in turns with the adaptive one, and the best of these is what counts.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np

from caches import run_plans as cr
from caches.run_plans import Draw, Planned, Workload
from caches.workloads import W, q2, uniform
from common.harness import Report

ADAPTING_GOALS: dict[str, tuple[str, dict[str, float]]] = {
    "skew": ("time of the best static plan, one key with 30 % of the rows", {"at_most": 1.05}),
    "drift": ("time of the best static plan, the hot stream changes", {"at_most": 1.0}),
    "overhead": ("time of the same plan without adapting, nothing to gain", {"at_most": 1.05}),
}


def measure_adapting(report: Report, quick: bool) -> None:
    repeats = 3 if quick else 7
    report.progress("a hot key")
    _against_static(report, "skew", skewed(), repeats)
    report.progress("a hot key, short epochs")
    _against_static(report, "skew, short epochs", skewed(10), repeats)
    report.progress("a hot stream that changes")
    _against_static(report, "drift", drifting(), repeats)
    report.progress("a hot stream that changes, where one plan suits both times")
    _against_static(report, "drift, one plan suits", drifting_ends(), repeats)
    report.progress("nothing to gain")
    _overhead(report, "overhead", calm(20_000 if quick else 200_000), repeats)
    report.progress("nothing to gain, short epochs")
    _overhead(report, "overhead, short epochs", calm(20_000), 2 * repeats + 1)


def skewed(part: int = 1) -> Workload:
    """Clicks on products with offers and reviews: one product has 30 % of the clicks. An epoch may
    be a `part` as long."""
    products = 80_000 // part

    def draw(rng: np.random.Generator, first: int, rows: int) -> dict[str, np.ndarray]:
        keys = rng.integers(0, products, rows)
        return {"A": np.where(rng.random(rows) < 0.3, 7, keys)}

    rare = uniform("A", products)
    rates = tuple(rows // part for rows in (40_000, 20_000, 10_000))
    return q2(rates, [draw, rare, rare], 30 if part == 1 else 60, 8)


def drifting() -> Workload:
    """A chain of keys, with many partners on the way but few to the end of it; first one end of it
    is fast, then the other. What helps the fast end has to hear of every row of the other one: a
    cache that pays at first costs more than it saves later, and so the other way round."""
    middle, keys = 24, 40

    def early(epoch: int) -> int:
        return 20_000 if epoch < middle else 200

    def late(epoch: int) -> int:
        return 20_200 - early(epoch)

    def end(name: str) -> Draw:
        def draw(rng: np.random.Generator, first: int, rows: int) -> dict[str, np.ndarray]:
            return {name: np.where(rng.random(rows) < 0.001, keys, rng.integers(0, keys, rows))}

        return draw

    def between(rng: np.random.Generator, first: int, rows: int) -> dict[str, np.ndarray]:
        """Rows with partners at one of the ends, and a few with partners at both."""
        some, none = rng.integers(0, keys, rows), -1 - rng.integers(0, keys, rows)
        left, both = rng.random(rows) < 0.5, rng.random(rows) < 0.02
        a, b = np.where(left, some, none), np.where(left, none, some)
        return {"A": np.where(both, keys, a), "B": np.where(both, keys, b)}

    sql = (
        f"SELECT R.A AS Ra, S.A AS Sa, T.B AS Tb FROM R {W}, S {W}, T {W} "
        "WHERE R.A = S.A AND S.B = T.B"
    )
    draws = {"R": end("A"), "S": between, "T": end("B")}
    columns = {"R": "A", "S": "AB", "T": "B"}
    return Workload(sql, {"R": early, "S": 400, "T": late}, draws, columns, 2 * middle, 8)


def drifting_ends() -> Workload:
    """A chain with no index in the middle; first one end of it is fast, then the other. A cache of
    the middle suits both times."""
    middle = 24

    def early(epoch: int) -> int:
        return 1_000 if epoch < middle else 20

    def late(epoch: int) -> int:
        return 1_020 - early(epoch)

    draws: dict[str, Draw] = {n: uniform("A", 300) for n in "RU"}
    draws |= {n: uniform("AB", 300) for n in "ST"}
    sources = ", ".join(f"{n} {W}" for n in "RSTU")
    sql = (
        f"SELECT R.A AS Ra, S.A AS Sa, T.A AS Ta, U.A AS Ua FROM {sources} "
        "WHERE R.A = S.A AND S.B >= T.B AND S.B <= T.B AND T.A = U.A"
    )
    columns = {"R": "A", "S": "AB", "T": "AB", "U": "A"}
    return Workload(sql, {"R": early, "S": 60, "T": 60, "U": late}, draws, columns, 2 * middle, 8)


def calm(rows: int = 200_000) -> Workload:
    """Every row has its own key, or nearly so: nothing repeats, nothing is dropped early."""
    return q2((rows,) * 3, [uniform("A", 4 * rows)] * 3, 24, 8)


def _static(work: Workload) -> dict[str, Planned]:
    """Of three streams every order of every pipeline, of more that of the text; trees; caches."""
    plain = cr.mjoins(work) if len(work.columns) < 4 else {"mjoin": lambda plan: plan}
    return {**plain, **cr.xjoins(work), **cr.always_cached(work)}


_FINAL = 3  # static plans that run again


def _against_static(report: Report, name: str, work: Workload, repeats: int) -> None:
    runs: dict[str, Callable[[], cr.Outcome]] = {
        "adaptive": lambda: cr.run(work, joins="auto", counted=False)
    }
    for plan, planned in _static(work).items():
        runs[plan] = lambda p=planned: cr.run(work, p, counted=False)  # type: ignore[misc]
    every = _in_turns(runs, 2)
    assert len({o.results for outcomes in every.values() for o in outcomes}) == 1, name
    static = sorted((p for p in every if p != "adaptive"), key=lambda p: _median(every[p]))
    found = _in_turns({p: runs[p] for p in ("adaptive", *static[:_FINAL])}, repeats)
    for plan, outcomes in (every | found).items():
        _rows(report, name, plan, outcomes)
    best = min((p for p in found if p != "adaptive"), key=lambda p: _median(found[p]))
    pairs = zip(found["adaptive"], found[best], strict=True)
    _judge(report, name, [ours.spent / other.spent for ours, other in pairs])


def _overhead(report: Report, name: str, work: Workload, repeats: int) -> None:
    found = _in_turns(
        {
            "adaptive": lambda: cr.run(work, joins="auto", counted=False),
            "not adapting": lambda: cr.run(work, lambda plan: plan, counted=False),
        },
        repeats,
    )
    for plan, outcomes in found.items():
        _rows(report, name, plan, outcomes)
    pairs = zip(found["adaptive"], found["not adapting"], strict=True)
    _judge(report, name, [ours.spent / other.spent for ours, other in pairs])


def _median(outcomes: list[cr.Outcome]) -> float:
    return median(o.spent for o in outcomes)


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
    if name in ADAPTING_GOALS:
        report.measure(f"{name}: {ADAPTING_GOALS[name][0]}", median(ratios))
    else:
        report.row(name, "thalweg adaptive", "times what it is compared with", "x", median(ratios))
