"""A sweep of 1,000 variants of MACD against a sweep of one: the same trades, fitted in both.

Variants differ in both windows (five lengths each) and in how far the averages must lie apart.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from common.harness import Report
from models.macd import FIT, RATE, TUPLES_A_SEGMENT
from models.timed_runs import spread_of
from models.trades import trades
from thalweg.testing import Runner

GOAL = "a sweep of 1,000 MACD variants, times one (fitting in both)"
MOST = 20.0
COUNT = 1_000
PAIRS = 25
"""Of windows; further variants differ in the margin alone."""


def text() -> str:
    def average(window: str) -> str:
        over = f"[RANGE :{window} SLIDE 2 SECONDS]"
        return f"(SELECT symbol, avg(price) AS ap FROM trades {over} {FIT} GROUP BY symbol)"

    return (
        f"SELECT RSTREAM S.symbol, S.ap - L.ap AS diff FROM {average('fast')} AS S "
        f"JOIN {average('slow')} AS L ON S.symbol = L.symbol WHERE S.ap > L.ap * :margin"
    )


def variants(count: int) -> list[dict[str, Any]]:
    return [
        {
            "fast": f"{10 + 2 * (i % 5)} seconds",
            "slow": f"{60 + 5 * (i // 5 % 5)} seconds",
            "margin": round(1 + (i // PAIRS) * 1e-5, 5),
        }
        for i in range(count)
    ]


def declare(report: Report) -> None:
    report.declare(GOAL, at_most=MOST)


def run(report: Report, quick: bool) -> None:
    tuples = 700_000 if quick else 1_500_000
    runner = Runner()
    runner.stream("trades", trades(tuples, TUPLES_A_SEGMENT, rate=RATE), key=["symbol"])
    report.progress(f"sweeps over {tuples:,} trades")
    _swept(runner, 1)
    one = [_swept(runner, 1) for _ in range(5)]
    single = statistics.median(one)
    case = f"MACD sweep, {tuples:,} trades"
    report.row(case, "thalweg", "one variant", "s", single)
    report.row(case, "thalweg", "one variant, spread", "±%", spread_of(one))
    pairs = _swept(runner, PAIRS)
    report.row(case, "thalweg", f"{PAIRS} variants, all pairs of windows", "s", pairs)
    if quick:
        each = (_swept(runner, 2 * PAIRS) - pairs) / PAIRS
        many, why = pairs + (COUNT - PAIRS) * each, f"estimated from {2 * PAIRS} variants"
    else:
        many, why = _swept(runner, COUNT), None
        each = (many - pairs) / (COUNT - PAIRS)
        report.row(case, "thalweg", f"{COUNT:,} variants", "s", many)
    report.row(case, "thalweg", "each further margin", "ms", 1e3 * each)
    report.measure(GOAL, many / single, why)


def _swept(runner: Runner, count: int) -> float:
    begun = time.process_time()
    runner.sweep(text(), variants(count))
    return time.process_time() - begun
