"""Violations and latency by relative bound: trades whose prices walk, 3,000 a second.

A tuple outside the bound of its symbol's model begins a new one, and only then is anything solved.
Latency is the CPU time of an epoch of one second of trades, median and slowest. The query compares
the price with a level, so that little but holding is measured. The knee is where violations, over
the logarithm of the bound, are farthest below the straight line between the ends of the curve.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from common.harness import Report
from common.line_chart import line_chart
from models.trades import SECOND, START
from thalweg.testing import Runner

MONOTONE = "violations grow as the bound shrinks, at every step (1: so it is)"
BOUNDS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0)
"""Percent of the price."""
RATE, SYMBOLS = 3_000, 10
SOURCE_KNEE = 0.3
CHART = "violations_by_bound.svg"


def declare(report: Report) -> None:
    report.declare(MONOTONE, at_least=1, unit="")


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


def counted(table: pa.Table, bound: float) -> tuple[int, list[float]]:
    """Violations, and the CPU seconds of each epoch."""
    runner = Runner(epoch_rows=1 << 30)
    runner.stream("trades", table.slice(0, 0), key=["symbol"])
    runner.query(
        f"SELECT ISTREAM symbol FROM trades MODEL (price = price) WHERE price > 70 "
        f"ERROR price WITHIN {bound}%",
        name="q",
    )
    seconds = []
    for first in range(0, table.num_rows, RATE):
        entry = runner.entry({"trades": table.slice(first, RATE)})
        begun = time.process_time()
        runner.epoch([entry])
        seconds.append(time.process_time() - begun)
    runner.close()
    return int(runner.core.state.queries["q"].operators.counts["violations"]), seconds


def run(report: Report, quick: bool, images: Path | None = None) -> None:
    table = walking_prices(20 if quick else 100)
    counted(table, BOUNDS[0])
    found = []
    for bound in BOUNDS:
        report.progress(f"violations within {bound} %")
        violations, seconds = counted(table, bound)
        found.append(violations)
        case = f"E9 bound {bound} % of the price"
        report.row(case, "thalweg", "violations of 1,000 tuples", "",
                   1e3 * violations / table.num_rows)  # fmt: skip
        report.row(case, "thalweg", "epoch of 3,000 tuples, median", "ms",
                   1e3 * statistics.median(seconds))  # fmt: skip
        report.row(case, "thalweg", "epoch of 3,000 tuples, slowest", "ms", 1e3 * max(seconds))
    report.measure(MONOTONE, float(all(np.diff(found) <= 0)))
    bent = knee(np.array(BOUNDS), np.array(found))
    report.row("E9 knee", "thalweg", "bound", "% of the price", bent)
    report.row("E9 knee", "the source, of latency", "bound", "% of the price", SOURCE_KNEE, "seed")
    if images is not None:
        chart(images / CHART, np.array(BOUNDS), 1e3 * np.array(found) / table.num_rows)


def knee(bounds: np.ndarray, violations: np.ndarray) -> float:
    x, y = np.log(bounds), violations.astype(float)
    chord = y[0] + (x - x[0]) * (y[-1] - y[0]) / (x[-1] - x[0])
    return float(bounds[np.argmax(chord - y)])


def chart(path: Path, bounds: np.ndarray, shares: np.ndarray) -> None:
    line_chart(
        path, "Violations by bound", "log10 of the bound, % of the price",
        "violations of 1,000 tuples", {"violations": (np.log10(bounds), shares)},
    )  # fmt: skip
