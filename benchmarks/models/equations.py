"""Equations solved per epoch while few or many keys live, with as many changes per epoch."""

from __future__ import annotations

import statistics
import time

import numpy as np
import pyarrow as pa

from common.harness import Report
from models.trades import SECOND, START
from thalweg.testing import Runner

GOAL = "equations solved per epoch, 100,000 living keys, times 100 keys"
FEW, MANY = 100, 100_000
CHANGES = 50
EPOCHS = 10
QUERY = "SELECT ISTREAM k FROM s MODEL (x = x + v*t) WHERE x < 0"


def declare(report: Report) -> None:
    report.declare(GOAL, at_most=1.0)


def rows(keys: np.ndarray, at: float, seed: int) -> pa.Table:
    """A segment for each key, all at one instant (seconds)."""
    rng = np.random.default_rng(seed)
    ts = np.full(len(keys), START + round(at * SECOND))
    return pa.table(
        {
            "k": keys,
            "x": rng.uniform(-1e3, 1e3, len(keys)),
            "v": rng.uniform(-1, 1, len(keys)),
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
        }
    )


def counted(living: int, epochs: int = EPOCHS) -> tuple[list[int], list[float]]:
    """Equations and CPU seconds of each epoch after all keys have a segment. An epoch ends at the
    newest instant, so each takes the changes of the one before."""
    runner = Runner(epoch_rows=1 << 30)
    start = rows(np.arange(living), 0, 0)
    runner.stream("s", start.slice(0, 0), key=["k"])
    runner.query(QUERY, name="q")
    runner.feed({"s": start})
    rng = np.random.default_rng(1)
    solved, seconds = [], []
    for i in range(epochs + 1):
        keys = np.sort(rng.choice(min(living, FEW), CHANGES, replace=False))
        entry = runner.entry({"s": rows(keys, i + 1, i + 1)})
        before = _solved(runner)
        begun = time.process_time()
        runner.epoch([entry])
        seconds.append(time.process_time() - begun)
        solved.append(_solved(runner) - before)
    return solved[1:], seconds[1:]  # the first takes what all keys began with


def _solved(runner: Runner) -> int:
    return int(runner.core.state.queries["q"].operators.counts.get("equations solved", 0))


def run(report: Report, quick: bool) -> None:
    found = {}
    for living in (FEW, MANY):
        report.progress(f"{living:,} living keys")
        solved, seconds = counted(living)
        found[living] = statistics.median(solved)
        case = f"{CHANGES} changes an epoch, {living:,} living keys"
        report.row(case, "thalweg", "equations solved per epoch", "", found[living])
        report.row(case, "thalweg", "epoch", "ms", 1e3 * statistics.median(seconds))
    report.ratio(GOAL, found[MANY], found[FEW])
