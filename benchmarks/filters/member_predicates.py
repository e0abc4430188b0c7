"""The seed's own predicates, through SQL: is a row's key among the last 10,000 rows of a stream?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from common.harness import Report
from filters.data import Phase, drops_of
from thalweg.adapt.filters.static import best_order, cost_of
from thalweg.testing import Runner

WINDOW = 10_000
PREDICATES = 4


def run(report: Report, rows: int) -> None:
    """Evaluations and time of `x IN (SELECT k FROM s [ROWS 10000])`, four of them."""
    drops = drops_of([Phase(rows, (0.5,) * PREDICATES)], 2, 41)
    best = best_order(drops, np.ones(PREDICATES))
    case = "memberships through SQL, n = 4"
    expected = int((~drops.any(1)).sum())
    optimum = cost_of(best, drops, np.ones(PREDICATES))
    report.row(case, "best static order", "evaluations per tuple", "", optimum)
    for option in ("auto", "a-greedy", "independent", "fixed"):
        runner = _runner(drops)
        query = runner.query(_sql(option), "q")
        runner.run()
        found = query.stats()
        asked = sum(
            v for k, v in found["counts"].items()
            if k.startswith(("evaluations:", "profiled:")) and " IN (" in k
        )  # fmt: skip
        shown = "order of the text" if option == "fixed" else f"thalweg {option}"
        report.row(case, shown, "evaluations per tuple", "", asked / rows)
        seconds = found["adapt"]["filters"][0]["seconds"]
        report.row(case, shown, "filter time per tuple", "ns", 1e9 * seconds / rows)
        if query.results().num_rows != expected:
            raise AssertionError(f"{option}: {query.results().num_rows} rows, not {expected}")
    report.row(case, "thalweg auto", "results, as they must be", "rows", expected)


def _sql(option: str) -> str:
    asked = " AND ".join(f"x{i} IN (SELECT k FROM s{i} [ROWS {WINDOW}])" for i in range(PREDICATES))
    return f"SELECT ISTREAM id FROM s [NOW] WHERE {asked} WITH (filters = '{option}')"


def _runner(drops: np.ndarray) -> Runner:
    rng = np.random.default_rng(5)
    keys = rng.choice(1 << 40, 2 * WINDOW, replace=False)
    inside, outside = keys[:WINDOW], keys[WINDOW:]
    rows = len(drops)
    picks = rng.integers(0, WINDOW, rows)
    columns = {
        f"x{i}": np.where(drops[:, i], outside[picks], inside[picks]) for i in range(PREDICATES)
    }
    stamps = pa.array(WINDOW + np.arange(rows), pa.timestamp("us", "UTC"))
    # the windows are full before the first tuple comes, and stay as they are
    runner = Runner(epochs=10)
    runner.stream("s", pa.table({"id": np.arange(rows), **columns, "ts": stamps}))
    early = pa.array(np.arange(WINDOW), pa.timestamp("us", "UTC"))
    for i in range(PREDICATES):
        runner.stream(f"s{i}", pa.table({"k": inside, "ts": early}))
    return runner
