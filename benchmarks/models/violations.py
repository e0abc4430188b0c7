"""Violations and latency by relative bound: trades whose prices walk, 3,000 a second.

A tuple outside the bound of its symbol's model begins a new one, and only then is anything solved.
Latency is the CPU time of an epoch of one second of trades, median and slowest, once windows are
full. A price filter compares the price with a level, so that little but holding is measured; MACD,
as the original measures it, has more to do for each violation. The knee is where a curve, over the
logarithm of the bound, is farthest below the straight line between its ends.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from common.harness import Report
from common.line_chart import line_chart
from models import macd
from models.trades import SECOND, START
from thalweg.testing import Runner

MONOTONE = "violations grow as the bound shrinks, at every step (1: so it is)"
MACD_MONOTONE = f"MACD, {MONOTONE}"
BOUNDS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0)
"""Percent of the price."""
RATE, SYMBOLS = 3_000, 10
SOURCE_KNEE = 0.3
CHART = "violations_by_bound.svg"
LATENCIES = "latency_by_bound.svg"
FILLED = 60
"""Seconds until the longer window is full."""
MODEL = "MODEL (price = price)"


def price_filter(bound: float) -> str:
    return f"SELECT ISTREAM symbol FROM trades {MODEL} WHERE price > 70 ERROR price WITHIN {bound}%"


def moving_averages(bound: float) -> str:
    return macd.text("trades", MODEL, error=f" ERROR price WITHIN {bound}%")


QUERIES: dict[str, tuple[Callable[[float], str], str]] = {
    "price filter": (price_filter, MONOTONE),
    "MACD": (moving_averages, MACD_MONOTONE),
}


@dataclass(frozen=True)
class Counted:
    """Violations of 1,000 tuples held against models, and the CPU seconds of each epoch."""

    violations: float
    seconds: list[float]


def declare(report: Report) -> None:
    for _, goal in QUERIES.values():
        report.declare(goal, at_least=1, unit="")


def walking_prices(seconds: int, seed: int = 0) -> pa.Table:
    """Prices that walk by 0.005 % a trade, ten symbols one after another."""
    rng = np.random.default_rng(seed)
    steps = seconds * RATE // SYMBOLS
    walk = np.cumsum(rng.normal(0, 5e-5, (steps, SYMBOLS)), axis=0)
    price = rng.uniform(20, 130, SYMBOLS) * np.exp(walk)
    ts = START + (np.arange(steps * SYMBOLS) * SECOND) // RATE
    return pa.table(
        {
            "symbol": np.tile(np.arange(SYMBOLS), steps),
            "price": price.ravel(),
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
        }
    )


def counted(table: pa.Table, sql: str) -> Counted:
    runner = Runner(epoch_rows=1 << 30)
    runner.stream("trades", table.slice(0, 0), key=["symbol"])
    runner.query(sql, name="q")
    seconds = []
    for first in range(0, table.num_rows, RATE):
        entry = runner.entry({"trades": table.slice(first, RATE)})
        begun = time.process_time()
        runner.epoch([entry])
        seconds.append(time.process_time() - begun)
    runner.close()
    counts = runner.core.state.queries["q"].operators.counts
    return Counted(1e3 * counts["violations"] / counts["tuples modeled"], seconds)


def run(report: Report, quick: bool, images: Path | None = None) -> None:
    table = walking_prices(FILLED + (20 if quick else 100))
    bounds, latencies = np.array(BOUNDS), {}
    for name, (query, goal) in QUERIES.items():
        counted(table, query(BOUNDS[0]))
        found = []
        for bound in BOUNDS:
            report.progress(f"violations of {name} within {bound} %")
            found.append(counted(table, query(bound)))
            _rows(report, f"E9 {name}, bound {bound} % of the price", found[-1])
        violations = np.array([one.violations for one in found])
        medians = np.array([1e3 * statistics.median(one.seconds[FILLED:]) for one in found])
        latencies[name] = (np.log10(bounds), medians)
        report.measure(goal, float((np.diff(violations) <= 0).all()))
        for what, curve in (("violations", violations), ("latency", medians)):
            bent = knee(bounds, curve)
            report.row(f"E9 {name}, knee of {what}", "thalweg", "bound", "% of the price", bent)
    report.row("E9 MACD, knee of latency", "the source", "bound", "% of the price", SOURCE_KNEE,
               "seed")  # fmt: skip
    if images is not None:
        chart(images / CHART, bounds, violations)
        line_chart(
            images / LATENCIES, "Latency by bound", "log10 of the bound, % of the price",
            "ms of an epoch of 3,000 tuples", latencies,
        )  # fmt: skip


def _rows(report: Report, case: str, found: Counted) -> None:
    steady = [1e3 * s for s in found.seconds[FILLED:]]
    low, high = np.percentile(steady, [10, 90])
    report.row(case, "thalweg", "violations of 1,000 tuples", "", found.violations)
    report.row(case, "thalweg", "epoch of 3,000 tuples, median", "ms", statistics.median(steady))
    report.row(case, "thalweg", "epoch, 10th percentile", "ms", float(low))
    report.row(case, "thalweg", "epoch, 90th percentile", "ms", float(high))
    report.row(case, "thalweg", "epoch, slowest", "ms", max(steady))


def knee(bounds: np.ndarray, curve: np.ndarray) -> float:
    x, y = np.log(bounds), curve.astype(float)
    chord = y[0] + (x - x[0]) * (y[-1] - y[0]) / (x[-1] - x[0])
    return float(bounds[np.argmax(chord - y)])


def chart(path: Path, bounds: np.ndarray, shares: np.ndarray) -> None:
    line_chart(
        path, "Violations by bound", "log10 of the bound, % of the price",
        "violations of 1,000 tuples", {"violations": (np.log10(bounds), shares)},
    )  # fmt: skip
