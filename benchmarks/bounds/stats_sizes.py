"""The shared STATS sub-queries: sizes from rows, exactly; and from statistics alone."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import numpy as np

from bounds import stats_data
from common.harness import Report
from models.aircraft import ABSENT, shared_data
from thalweg.estimate.fresh import fresh_bound_of_select
from thalweg.estimate.from_select import joins_of
from thalweg.estimate.join_query import JoinInput
from thalweg.estimate.keys.keyed_table import KeyedTable
from thalweg.plan.catalog import Catalog, Names, TableDef
from thalweg.runtime.planner import Planner
from thalweg.runtime.sources.python_arguments import arrow_fields, normalized

EXACT = "STATS fresh: sub-queries with their true size"
FAST = "STATS fresh: milliseconds a sub-query, median"


def declare(report: Report) -> None:
    report.declare(EXACT, at_least=168, unit="of 168")
    report.declare(FAST, at_most=10, unit="ms")


def run(report: Report, quick: bool) -> None:
    shared = shared_data()
    if shared is None or not (shared / "stats").exists():
        for goal in (EXACT, FAST):
            report.measure(goal, None, ABSENT)
        return
    fresh_rows(report, shared / "stats")
    cached_rows(report)


def fresh_rows(report: Report, folder: Path) -> None:
    """From rows at hand, whose keys are hashed once. Parsing and binding are apart."""
    tables = stats_data.load(folder)
    definitions = {n: TableDef(n, arrow_fields(t.schema)) for n, t in tables.items()}
    planner = Planner(Catalog(tables=Names(definitions)))
    keyed = {n: KeyedTable(normalized(t, definitions[n].fields)) for n, t in tables.items()}

    def rows_of(one: JoinInput) -> KeyedTable:
        return keyed[one.relation]

    times, right = [], 0
    for _ in range(2):  # keys are hashed in the first round
        times, right = [], 0
        for query in stats_data.queries(folder):
            selected = joins_of(planner.relation(query.sql).root)
            begun = time.perf_counter()
            found = fresh_bound_of_select(selected, rows_of)
            times.append(time.perf_counter() - begun)
            right += found.kind == "exact" and found.rows == query.rows
    report.measure(EXACT, right)
    report.measure(FAST, 1000 * median(times))
    report.row("STATS fresh", "thalweg", "p90", "ms", 1000 * float(np.percentile(times, 90)))
    report.row("STATS fresh", "thalweg", "slowest", "ms", 1000 * max(times))


def cached_rows(report: Report) -> None:
    """From statistics alone: rows and goals come with `estimate/cached`."""
