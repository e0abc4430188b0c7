"""Subresult caches: the seed's figures 5.11 to 5.18 and 5.21 to 5.23, in operations and in time.

Windows are over time, at constant rates, where the seed's are over tuples. Counts repeat exactly.
Figures 5.19 and 5.20, which drop an index, have no counterpart: every equality has one here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

import _cache_run as cr
from _cache_run import Draw, Outcome, Workload
from _harness import Report

W = "[RANGE 2 SECONDS]"
Q1 = f"SELECT ISTREAM R.A, S.B, T.v FROM R {W}, S {W}, T {W} WHERE R.A = S.A AND S.B = T.B"
POINTS = {  # rates of R, S, T, U; selectivities RS, RT, RU, ST, SU, TU
    "D1": ((10, 1, 1, 1), (0.004, 0.005, 0.005, 0.007, 0.0045, 0.005)),
    "D2": ((8, 1, 1, 8), (0.004, 0.005, 0.005, 0.007, 0.0045, 0.005)),
    "D3": ((10, 15, 1, 5), (0.003, 0.005, 0.007, 0.0045, 0.006, 0.008)),
    "D4": ((1, 1, 1, 1), (0.003, 0.004, 0.0067, 0.002, 0.0023, 0.0027)),
    "D5": ((4, 1, 1, 4), (0.005, 0.007, 0.005, 0.006, 0.005, 0.002)),
    "D6": ((1, 1, 1, 1), (0.005, 0.0033, 0.0025, 0.0067, 0.005, 0.0075)),
    "D7": ((1, 1, 1, 1), (0.0,) * 6),
    "D8": ((1, 1, 1, 1), (0.001,) * 6),
}
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("caches", scale="quick" if quick else "full")
    _declare(report)
    _hit_probability(report, (1, 5) if quick else (1, 2, 5, 10))
    _selectivity(report, (0.2, 1.0) if quick else (0.1, 0.3, 0.6, 1.0, 2.0))
    _updates(report, (0.2, 2.0) if quick else (0.1, 0.5, 1.0, 2.0, 4.0))
    _joins(report, (3, 5) if quick else (3, 4, 5, 6, 7))
    _points(report, ("D1", "D4") if quick else tuple(POINTS))
    _burst(report)
    _memory(report)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _declare(report: Report) -> None:
    report.declare("5.11: cached of MJoin's operations at multiplicity 1", at_most=1)
    report.declare("5.12: gain at most frequent hits above that at multiplicity 1", at_least=0)
    report.declare("5.13: cached of MJoin's operations, worst selectivity", at_most=1)
    report.declare("5.15: cached of MJoin's operations, updates above probes", at_most=1)
    report.declare("5.16: the gain falls as updates grow, by", at_least=0)
    report.declare("5.17: cached of MJoin's operations, worst n", at_most=1)
    report.declare("5.21: points at which X, P and G are below M", at_least=1, unit="of all")
    report.declare("5.21: G of X, worst point", at_most=1.1)
    report.declare("5.22: epochs until the plan follows the burst", at_most=10, unit="epochs")
    report.declare("5.22: afterwards, times the best static plan", at_most=1.1)
    report.declare("5.22: slowest epoch of the switch, times the median", at_most=3)
    report.declare("5.23: operations at full memory of those at none", at_most=1)


# -- Q1 ------------------------------------------------------------------------------------------


def uniform(columns: str, domain: int) -> Draw:
    def draw(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
        return {c: rng.integers(0, 10 if c == "v" else domain, rows) for c in columns}

    return draw


def q1(r: int, s: int, t: int, domain: int, **more: int) -> Workload:
    return Workload(
        Q1, {"R": r, "S": s, "T": t},
        {"R": uniform("A", domain), "S": uniform("AB", domain), "T": uniform("Bv", domain)},
        {"R": "A", "S": "AB", "T": "Bv"}, **more,
    )  # fmt: skip


def _compared(report: Report, case: str, work: Workload) -> float:
    """Cached of MJoin's operations; both are given the same pipelines and choose by themselves."""
    plain, cached = cr.run(work), cr.run(work, joins="cached")
    assert plain.results == cached.results, case
    for name, found in (("mjoin", plain), ("cached", cached)):
        report.row(case, f"thalweg {name}", "operations a row", "", found.per_row)
        report.row(case, f"thalweg {name}", "rows a second (CPU)", "rows/s", found.rate)
    return cached.per_row / plain.per_row


def _hit_probability(report: Report, multiplicities: tuple[int, ...]) -> None:
    report.progress("figures 5.11 and 5.12: hit probability")
    found = {}
    for m in multiplicities:
        work = q1(1000, 200, 200 * m, 400, epochs=20, warm=10)
        found[m] = _compared(report, f"5.11/12 multiplicity {m}", work)
    report.measure("5.11: cached of MJoin's operations at multiplicity 1", found[1])
    most = max(multiplicities)
    name = "5.12: gain at most frequent hits above that at multiplicity 1"
    report.measure(name, found[1] - found[most])


def _selectivity(report: Report, selectivities: tuple[float, ...]) -> None:
    report.progress("figures 5.13 and 5.14: join selectivity")
    found = []
    for matches in selectivities:
        work = q1(1000, 200, 1000, int(400 / matches), epochs=20, warm=10)
        found.append(_compared(report, f"5.13/14 {matches} matches a row", work))
    report.measure("5.13: cached of MJoin's operations, worst selectivity", max(found))


def _updates(report: Report, ratios: tuple[float, ...]) -> None:
    report.progress("figures 5.15 and 5.16: updates to probes")
    found = {}
    for ratio in ratios:
        rate = max(int(1000 * ratio / 2), 10)
        work = q1(1000, rate, rate, 2 * rate, epochs=20, warm=10)
        found[ratio] = _compared(report, f"5.15/16 {ratio} updates a probe", work)
    report.measure("5.15: cached of MJoin's operations, updates above probes", found[max(ratios)])
    fall = found[max(ratios)] - found[min(ratios)]
    report.measure("5.16: the gain falls as updates grow, by", fall)


# -- Q2 ------------------------------------------------------------------------------------------


def q2(rates: tuple[int, ...], draws: list[Draw], **more: int) -> Workload:
    names = "RSTUVWX"[: len(rates)]
    sources = ", ".join(f"{n} {W}" for n in names)
    where = " AND ".join(f"{a}.A = {b}.A" for a, b in pairwise(names))
    sql = (
        f"SELECT ISTREAM {', '.join(f'{n}.A AS {n}a' for n in names)} FROM {sources} WHERE {where}"
    )
    return Workload(
        sql, dict(zip(names, rates, strict=True)), dict(zip(names, draws, strict=True)),
        dict.fromkeys(names, "A"), **more,
    )  # fmt: skip


def _joins(report: Report, counts: tuple[int, ...]) -> None:
    report.progress("figures 5.17 and 5.18: number of joins")
    found = []
    for n in counts:
        rates = tuple(100 if i < n // 2 else 500 for i in range(n))
        work = q2(rates, [uniform("A", 1000)] * n, epochs=16, warm=10)
        found.append(_compared(report, f"5.17/18 n = {n}", work))
    report.measure("5.17: cached of MJoin's operations, worst n", max(found))


def drawn(stream: int, selectivities: tuple[float, ...]) -> Draw:
    """Values such that pairs of streams match with the given probabilities: some are common to all,
    some to two only, the rest are the stream's own."""
    common = 0.6 * min(selectivities)

    def draw(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
        weight, kind = 0.4, rng.random(rows)
        values = 10_000_000 * (stream + 1) + rng.integers(0, 1_000_000, rows)
        if not common:
            return {"A": values}
        size = max(round(weight**2 / common), 1)
        inside = kind < weight
        values[inside] = rng.integers(0, size, int(inside.sum()))
        share = 0.19
        for number, (i, j) in enumerate(p for p in PAIRS if stream in p):
            block = PAIRS.index((i, j))
            own = selectivities[block] - common
            chosen = (kind >= weight + number * share) & (kind < weight + (number + 1) * share)
            if own > 0:
                size = max(round(share**2 / own), 1)
                values[chosen] = 1_000_000 * (block + 1) + rng.integers(0, size, int(chosen.sum()))
        return {"A": values}

    return draw


def _points(report: Report, names: tuple[str, ...]) -> None:
    below, worst = [], 0.0
    for name in names:
        report.progress(f"figure 5.21: point {name}")
        rates, selectivities = POINTS[name]
        work = q2(
            tuple(60 * r for r in rates), [drawn(i, selectivities) for i in range(4)],
            epochs=8, warm=5,
        )  # fmt: skip
        found: dict[str, Outcome] = {"M": cr.run(work)}
        found["X"] = cr.best(work, cr.xjoins(work))
        found["P"] = cr.best(work, cr.prefix_plans(work))
        wide = cr.best(work, cr.global_plans(work))
        found["G"] = min(wide, found["P"], key=lambda o: o.per_row)
        for plan, outcome in found.items():
            report.row(f"5.21 {name}", f"thalweg {plan}", "operations a row", "", outcome.per_row)
            report.row(
                f"5.21 {name}", f"thalweg {plan}", "rows a second (CPU)", "rows/s", outcome.rate
            )
        assert len({o.results for o in found.values()}) == 1, name
        most = max(found[p].per_row for p in "XPG")
        below.append(most <= found["M"].per_row)
        worst = max(worst, found["G"].per_row / found["X"].per_row)
    report.measure("5.21: points at which X, P and G are below M", sum(below) / len(below))
    report.measure("5.21: G of X, worst point", worst)


# -- adapting ------------------------------------------------------------------------------------


def _burst(report: Report) -> None:
    """R comes twenty times as fast from the middle on."""
    report.progress("figure 5.22: a burst")
    middle, epochs = 20, 40

    def rate(epoch: int) -> int:
        return 100 if epoch < middle else 2000

    base = q1(100, 200, 400, 300, epochs=epochs, warm=5)
    work = Workload(base.sql, {**base.rates, "R": rate}, base.draws, base.columns, epochs, 5)
    found = cr.run(work, joins="cached")
    plans: dict[str, Callable] = {"mjoin": lambda plan: plan}  # type: ignore[type-arg]
    plans |= {f"xjoin {t}": (lambda plan, t=t: cr.with_tree(plan, 0, t)) for t in cr.trees(work)}
    static = {name: cr.run(work, planned) for name, planned in plans.items()}
    late = {name: np.array(o.operations[middle:]) for name, o in static.items()}
    best = min(late, key=lambda n: late[n][10:].sum())
    ratio = np.array(found.operations[middle:]) / late[best]
    for name, outcome in {"adaptive": found, **static}.items():
        for which, part in (("before", slice(10, middle)), ("after", slice(middle + 10, None))):
            value = float(np.mean(outcome.operations[part]))
            report.row("5.22", f"thalweg {name}", f"operations an epoch, {which}", "", value)
    near = np.flatnonzero(ratio <= 1.1)
    report.measure(
        "5.22: epochs until the plan follows the burst", int(near[0]) + 1 if len(near) else epochs
    )
    report.measure("5.22: afterwards, times the best static plan", float(np.mean(ratio[-8:])))
    seconds = np.array(found.seconds[middle:])
    name = "5.22: slowest epoch of the switch, times the median"
    report.measure(name, float(seconds.max() / np.median(seconds)))


def _memory(report: Report) -> None:
    """The pool from nothing to plenty."""
    report.progress("figure 5.23: memory")
    work = q1(2000, 200, 1000, 200, epochs=24, warm=14)
    plain = cr.run(work)
    report.row("5.23", "thalweg mjoin", "operations a row", "", plain.per_row)
    found = {}
    for pages in (0, 1, 2, 4, 16, 1024):
        outcome = cr.run(work, joins="cached", memory=pages << 16)
        found[pages] = outcome.per_row
        report.row(
            "5.23", f"thalweg cached, {64 * pages} KiB", "operations a row", "", outcome.per_row
        )
    report.measure("5.23: operations at full memory of those at none", found[1024] / found[0])
