"""The Fjords figures 8 and 9 in shape: n selections over one sensor, in one engine or in n.

10,767 records of thirty bytes, as in the original. Both sides run in this process, so that neither
has Spark's fixed cost of a batch, which would flatter sharing; that cost is reported by itself in
`bench latency`.

Reference: Madden and Franklin, Fjording the Stream (ICDE 2002), sections 4.3.1 and 4.3.2.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import pyarrow as pa

from common.harness import Report
from thalweg.testing.runner import Runner

RECORDS = 10_767
EPOCHS = 8
WINS = "figure 8: n engines with one filter each, times one with n, least gain for n >= 2"
FALLS = "figure 8: time a query with 100 in one engine, of that with one"
RISES = "figure 9: total rate with 20 queries in one engine, times that with one"


def declare(report: Report) -> None:
    report.declare(WINS, at_least=1)
    report.declare(FALLS, at_most=1)
    report.declare(RISES, at_least=1)


def records(epoch: int) -> pa.Table:
    """A sensor's samples: when, where, how fast, how long."""
    count = RECORDS // EPOCHS
    rng = np.random.default_rng(epoch)
    since = epoch * count
    return pa.table(
        {
            "segment": rng.integers(0, 50, count).astype(np.int16),
            "speed": rng.normal(60, 10, count),
            "length": rng.normal(16, 4, count).astype(np.float32),
            "vehicles": rng.integers(0, 6, count),
            "ts": pa.array(np.arange(since, since + count) * 5_600, pa.timestamp("us", "UTC")),
        }
    )


def measure(report: Report, quick: bool) -> None:
    counts = (1, 2, 5, 20, 100) if quick else (1, 2, 3, 5, 10, 20, 50, 100)
    shared, apart = {}, {}
    for n in counts:
        shared[n], found = _seconds(1, n)
        apart[n], others = _seconds(n, 1)
        if found != others:
            raise RuntimeError(f"{n} selections: {found} results, {others} of n engines")
        for system, seconds in (("thalweg", shared[n]), ("thalweg, n engines", apart[n])):
            case = f"{n} selections"
            report.row(case, system, "time a query", "ms", seconds / n * 1e3)
            report.row(case, system, "rows a second, all queries", "rows/s", RECORDS * n / seconds)
        report.progress(f"figures 8 and 9: {n} selections done")
    report.row("no selection", "thalweg", "time", "ms", _seconds(1, 0)[0] * 1e3)
    report.measure(WINS, min(apart[n] / shared[n] for n in counts if n > 1))
    report.ratio(FALLS, shared[100] / 100, shared[1])
    report.ratio(RISES, 20 * shared[1], shared[20])


def _seconds(engines: int, queries: int, turns: int = 3) -> tuple[float, int]:
    """All records through some engines with some selections each; median of some turns, and how
    many results there are."""
    done = [_once(engines, queries) for _ in range(turns)]
    return statistics.median(seconds for seconds, _ in done), done[0][1]


def _once(engines: int, queries: int) -> tuple[float, int]:
    made = []
    for number in range(engines):
        runner = Runner()
        runner.stream("sensor", records(0).slice(0, 0))
        for i in range(queries):
            least = 40 + (number + i) % 50
            sql = f"SELECT ISTREAM segment, speed FROM sensor WHERE speed > {least}"
            runner.query(sql, f"q{i}")
        made.append(runner)
    fed = [records(epoch) for epoch in range(EPOCHS)]
    begun = time.perf_counter()
    for table in fed:
        for runner in made:
            runner.feed({"sensor": table})
    seconds = time.perf_counter() - begun
    for runner in made:
        runner.close()
    return seconds, sum(q.results().num_rows for r in made for q in r.queries.values())
