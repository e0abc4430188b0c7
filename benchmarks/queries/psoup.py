"""PSoup's table 2 and figures 7 to 11 in shape: how invocations and data rates depend on windows,
predicates, queries and what is done beforehand.

Values are uniform on [0, 255]; a constant is with probability 0.2 a multiple of 32, otherwise
uniform. Everything runs in this process, without Spark: what is compared are our own modes.

Reference: Chandrasekaran and Franklin, Streaming Queries over Streaming Data (VLDB 2002).
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from common.harness import Report
from thalweg.testing.runner import Runner

MODES = ("none", "p", "c")
COLUMNS = 4
EPOCHS = 4
LARGEST = 1 << 15
P_WINS = "table 2: invocation under none, times that under p (intervals, window 2^15)"
C_WINS = "table 2: invocation under none, times that under c (intervals, window 2^15)"
RISES = "table 2: under none, 4 predicates times 1"
P_FALLS = "table 2: under p, 4 predicates times 1"
C_FALLS = "table 2: under c, 4 predicates times 1"
INDEXED = "figure 9: data rate with the index, times without, at 4,096 queries"
GROWS = "figure 9: that gain at 4,096 queries, times the one at 128"
COMPOSITE = "figure 11: joins of 64 queries made once, times each by itself (shared equality)"


def declare(report: Report) -> None:
    report.declare(P_WINS, at_least=8)
    report.declare(C_WINS, at_least=8)
    report.declare(RISES, at_least=1)
    report.declare(P_FALLS, at_most=1)
    report.declare(C_FALLS, at_most=1)
    report.declare(INDEXED, at_least=5)
    report.declare(GROWS, at_least=1)
    report.declare(COMPOSITE, at_least=2)


def measure(report: Report, quick: bool) -> None:
    windows = (1 << 9, 1 << 12, LARGEST) if quick else tuple(1 << n for n in range(7, 17))
    _selections(report, windows)
    _joins(report)
    _rates(report, (128, 4096) if quick else (128, 512, 1024, 2048, 4096, 16_384))
    _composites(report, 16 if quick else 64)


# -- data --------------------------------------------------------------------------------------


def rows(since: int, until: int) -> pa.Table:
    rng = np.random.default_rng(since)
    columns = {f"c{i}": rng.integers(0, 256, until - since) for i in range(COLUMNS)}
    return pa.table({**columns, "ts": pa.array(np.arange(since, until), pa.timestamp("us", "UTC"))})


def constant(rng: random.Random) -> int:
    return 32 * rng.randrange(8) if rng.random() < 0.2 else rng.randrange(256)


def equalities(rng: random.Random, count: int) -> str:
    return " AND ".join(f"c{i} = {constant(rng)}" for i in range(count))


def intervals(rng: random.Random, count: int) -> str:
    parts = []
    for i in range(count):
        low, high = sorted((constant(rng), constant(rng)))
        parts.append(f"c{i} > {low} AND c{i} < {high}")
    return " AND ".join(parts)


WORKLOADS: dict[str, Callable[[random.Random, int], str]] = {
    "equality": equalities,
    "intervals": intervals,
}


def opened(window: int, *streams: str) -> Runner:
    made = Runner(share_from=0)
    for stream in streams:
        made.stream(stream, rows(0, 0), retain=f"{2 * window} microseconds")
    return made


# -- figure 7 and table 2 ----------------------------------------------------------------------


def _selections(report: Report, windows: tuple[int, ...]) -> None:
    for kind in WORKLOADS:
        found: dict[tuple[str, int], float] = {}
        for window in windows:
            for predicates in (1, 2, 4):
                for mode, seconds in _invocations(kind, window, predicates).items():
                    case = f"{kind}, {predicates} predicates, window {window:,}"
                    report.row(case, f"thalweg, {mode}", "invocation", "ms", seconds * 1e3)
                    if window == LARGEST:
                        found[mode, predicates] = seconds
        report.progress(f"figure 7: {kind} done")
        if kind == "intervals":
            _table_2(report, found)


def _table_2(report: Report, found: dict[tuple[str, int], float]) -> None:
    whole = {mode: sum(found[mode, n] for n in (1, 2, 4)) for mode in MODES}
    report.ratio(P_WINS, whole["none"], whole["p"])
    report.ratio(C_WINS, whole["none"], whole["c"])
    for goal, mode in ((RISES, "none"), (P_FALLS, "p"), (C_FALLS, "c")):
        report.ratio(goal, found[mode, 4], found[mode, 1])


def _invocations(kind: str, window: int, predicates: int, queries: int = 32) -> dict[str, float]:
    """Median seconds of an invocation by mode; after each epoch every query is invoked once, so
    that no answer is one that was given before."""
    made = {mode: opened(window, "s") for mode in MODES}
    for mode, runner in made.items():
        rng = random.Random(f"{kind} {predicates}")
        for i in range(queries):
            where = WORKLOADS[kind](rng, predicates)
            runner.query(
                f"SELECT c0, c1, c2, c3 FROM s [RANGE {window - 1} MICROSECONDS] WHERE {where} "
                f"WITH (materialize = '{mode}')", f"q{i}",
            )  # fmt: skip
    times: dict[str, list[float]] = {mode: [] for mode in MODES}
    slice_rows = max(window // EPOCHS, 1)
    for step in range(2 * EPOCHS):
        fed = rows(step * slice_rows, (step + 1) * slice_rows)
        for runner in made.values():
            runner.feed({"s": fed})
        if step < EPOCHS:
            continue
        sizes: dict[str, list[int]] = {mode: [] for mode in MODES}
        for mode, runner in made.items():
            for i in range(queries):
                query = runner.queries[f"q{i}"]
                begun = time.perf_counter()
                answer = query.invoke()
                times[mode].append(time.perf_counter() - begun)
                sizes[mode].append(answer.num_rows)
        if not sizes["none"] == sizes["p"] == sizes["c"]:
            raise RuntimeError(f"modes answer differently: {sizes}")
    return {mode: statistics.median(found) for mode, found in times.items()}


# -- figure 8 ----------------------------------------------------------------------------------


def _joins(report: Report, window: int = 576, queries: int = 8) -> None:
    sizes: dict[str, list[int]] = {mode: [] for mode in MODES}
    for mode in MODES:
        runner, rng = opened(window, "r", "s"), random.Random(8)
        for i in range(queries):
            both = f"[RANGE {window - 1} MICROSECONDS]"
            low, high = sorted((constant(rng), constant(rng)))
            runner.query(
                f"SELECT r.c1, s.c2 FROM r {both}, s {both} WHERE r.c0 = s.c0 AND r.c1 > {low} "
                f"AND s.c1 < {high} WITH (materialize = '{mode}')", f"q{i}",
            )  # fmt: skip
        times = []
        step = window // EPOCHS
        for at in range(0, 3 * window, step):
            runner.feed({"r": rows(at, at + step), "s": rows(at + 1, at + step + 1)})
            for i in range(queries):
                begun = time.perf_counter()
                answer = runner.queries[f"q{i}"].invoke()
                times.append(time.perf_counter() - begun)
                sizes[mode].append(answer.num_rows)
        seconds = statistics.median(times[len(times) // 3 :])
        case = f"join of two streams, window {window}"
        report.row(case, f"thalweg, {mode}", "invocation", "ms", seconds * 1e3)
    if not sizes["none"] == sizes["p"] == sizes["c"]:
        raise RuntimeError(f"modes answer joins differently: {sizes}")
    report.progress("figure 8 done")


# -- figure 9 ----------------------------------------------------------------------------------


def _rates(report: Report, counts: tuple[int, ...], slice_rows: int = 1000) -> None:
    gains = {}
    for count in counts:
        rates = {}
        for name, how, most in (
            ("p, indexed", "materialize = 'p'", 1 << 20),
            ("p, each by itself", "share = 'off'", 4096),
            ("c", "materialize = 'c'", 1024),
        ):
            if count > most:
                continue
            rates[name] = _rate(count, how, slice_rows)
            report.row(f"{count:,} queries", f"thalweg, {name}", "data rate", "rows/s", rates[name])
        if "p, each by itself" in rates:
            gains[count] = rates["p, indexed"] / rates["p, each by itself"]
        report.progress(f"figure 9: {count:,} queries done")
    report.measure(INDEXED, gains[4096])
    report.ratio(GROWS, gains[4096], gains[128])


def _rate(count: int, how: str, slice_rows: int) -> float:
    """Rows a second, window 1,000. A filter that runs by itself does what p does for one query:
    it asks every row and writes down those that pass."""
    runner, rng = opened(1000, "s"), random.Random(9)
    kept = "materialize" in how
    for i in range(count):
        window = "[RANGE 999 MICROSECONDS] " if kept else ""
        select = "SELECT" if kept else "SELECT ISTREAM"
        runner.query(
            f"{select} c0, c1 FROM s {window}WHERE {intervals(rng, 2)} WITH ({how})", f"q{i}"
        )
    times = []
    for step in range(24 if kept else 6):  # the others take seconds each
        fed = rows(step * slice_rows, (step + 1) * slice_rows)
        begun = time.perf_counter()
        runner.feed({"s": fed})
        times.append(time.perf_counter() - begun)
    return slice_rows / statistics.median(times[2:])


# -- figure 11 ---------------------------------------------------------------------------------


RESIDUALS = {
    "shared equality, residual inequalities": "r.c0 = s.c0 AND r.c1 > {} AND s.c1 < {}",
    "shared equality, residual equalities": "r.c0 = s.c0 AND r.c1 = {} AND s.c1 = {}",
    "shared inequality, residual equalities": "r.c0 > s.c0 AND r.c1 = {} AND s.c1 = {}",
}


def _composites(report: Report, queries: int, window: int = 256) -> None:
    for case, where in RESIDUALS.items():
        seconds = {on: _composite(where, queries, window, on) for on in (True, False)}
        for on, system in ((True, "thalweg, joined once"), (False, "thalweg, each by itself")):
            report.row(f"{queries} joins, {case}", system, "epoch", "ms", seconds[on] * 1e3)
        if case == next(iter(RESIDUALS)):
            report.ratio(COMPOSITE, seconds[False], seconds[True])
    report.progress("figure 11 done")


def _composite(where: str, queries: int, window: int, composite: bool) -> float:
    runner, rng = opened(window, "r", "s"), random.Random(11)
    runner.core.conditions.composite = composite
    both = f"[RANGE {window - 1} MICROSECONDS]"
    for i in range(queries):
        asked = where.format(constant(rng), constant(rng))
        runner.query(
            f"SELECT r.c2, s.c3 FROM r {both}, s {both} WHERE {asked} WITH (materialize = 'p')",
            f"q{i}",
        )
    times = []
    step = window // EPOCHS
    for at in range(0, 3 * window, step):
        fed = {"r": rows(at, at + step), "s": rows(at + 1, at + step + 1)}
        begun = time.perf_counter()
        runner.feed(fed)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[len(times) // 3 :])
