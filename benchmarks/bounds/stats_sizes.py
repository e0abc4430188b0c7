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
from thalweg.testing import Runner

EXACT = "STATS fresh: sub-queries with their true size"
FAST = "STATS fresh: milliseconds a sub-query, median"
CACHED_BYTES = "STATS cached: bytes of all statistics"
CACHED_FAST = "STATS cached: milliseconds a sub-query, median"
UNDER = "STATS cached: bounds below the true size"
ERRORS = tuple(f"STATS cached: q-error p{p}" for p in (50, 90, 99))
MEGABYTE = 1_000_000
GOALS = (EXACT, FAST, CACHED_BYTES, CACHED_FAST, UNDER, *ERRORS)


def declare(report: Report) -> None:
    report.declare(EXACT, at_least=168, unit="of 168")
    report.declare(FAST, at_most=10, unit="ms")
    report.declare(CACHED_BYTES, at_most=MEGABYTE, unit="")
    report.declare(UNDER, at_most=0, unit="of 168")
    for goal, most in zip(ERRORS, (1.3, 11, 100), strict=True):
        report.declare(goal, at_most=most)
    report.declare(CACHED_FAST, at_most=10, unit="ms")


def run(report: Report, quick: bool) -> None:
    shared = shared_data()
    if shared is None or not (shared / "stats").exists():
        for goal in GOALS:
            report.measure(goal, None, ABSENT)
        return
    fresh_rows(report, shared / "stats")
    cached_rows(report, shared / "stats")


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


def cached_rows(report: Report, folder: Path) -> None:
    """From statistics of at most a megabyte, as after `analyze`: no row is read. Columns that are
    joined are told by their names. Parsing and binding are apart."""
    runner = Runner()
    for name, table in stats_data.load(folder).items():
        runner.table(name, table)
    begun = time.perf_counter()
    runner.analyze(*stats_data.TABLES, limit_bytes=MEGABYTE)
    report.row("STATS cached", "thalweg", "analyze", "s", time.perf_counter() - begun)
    errors, times = [], []
    for query in stats_data.queries(folder):
        root = runner.core.planner.relation(query.sql).root
        begun = time.perf_counter()
        found = runner.core.sizes.bound_of(root, "cached")
        times.append(time.perf_counter() - begun)
        errors.append((found.rows or 0) / query.rows)
    report.measure(CACHED_BYTES, runner.core.analysis.statistics_bytes)
    report.measure(UNDER, sum(e < 1 for e in errors))
    for goal, quantile in zip(ERRORS, (0.5, 0.9, 0.99), strict=True):
        report.measure(goal, float(np.quantile(errors, quantile)))
    report.measure(CACHED_FAST, 1000 * median(times))
    report.row("STATS cached", "thalweg", "largest q-error", "x", max(errors))
    report.row("STATS cached", "thalweg", "slowest", "ms", 1000 * max(times))
