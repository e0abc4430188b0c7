"""Batch joins in Spark: our orders beside adaptive execution and beside the cost-based optimizer.

All three read the same Parquet files. The optimizer gets catalog tables with statistics FOR
COLUMNS, which it cannot have of temporary views; these and the columns of tables that our planning
reads are made before, and reported apart. Planning counts for all. A query that takes longer than a
limit is cut off, and counts as that limit.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bounds import graph_queries, stats_data
from common.harness import Report
from models.aircraft import shared_data

OURS, AQE, CBO = "thalweg", "Spark AQE", "Spark CBO"
SYSTEMS = (OURS, AQE, CBO)
FAMILIES = ("graphs", "STATS x 20")
MOST_SECONDS = 60.0
COPIES = 20
_CBO = ("spark.sql.cbo.enabled", "spark.sql.cbo.joinReorder.enabled",
        "spark.sql.cbo.planStats.enabled")  # fmt: skip


def declare(report: Report) -> None:
    for family in FAMILIES:
        report.declare(f"{family}: total over the better of AQE and CBO", at_most=0.7)
        report.declare(f"{family}: slowest query over the best of it", at_most=1.5)
    report.declare("orders that Spark's plan confirms", at_least=1.0)
    report.declare("bushy orders among those chosen", at_least=1, unit="orders")


@dataclass
class Case:
    """A query of a family, and the seconds of each system's repetitions."""

    family: str
    name: str
    sql: Callable[[str], str]
    """The text over the tables of a system, by their prefix."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: {s: [] for s in SYSTEMS})
    rows: set[int] = field(default_factory=set)
    planning: list[float] = field(default_factory=list)
    reordered: bool = False
    hinted: bool = False

    @property
    def told(self) -> str:
        """What was changed of the text."""
        if self.reordered:
            return "another order"
        return "hints" if self.hinted else "as written"

    def median(self, system: str) -> float:
        return statistics.median(self.seconds[system])


def run(report: Report, quick: bool) -> None:
    from thalweg import Engine
    from thalweg.spark.settings import create_session

    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as place:
        spark = create_session(None, {"spark.sql.warehouse.dir": place})
        try:
            with Engine(spark) as engine:
                bench = _Bench(report, spark, engine, Path(place), 2 if quick else 5)
                for family, make in zip(
                    FAMILIES, (bench.graph_cases, bench.stats_cases), strict=True
                ):
                    bench.family(family, make(quick))
                bench.orders()
        finally:
            spark.stop()


class _Bench:
    def __init__(self, report: Report, spark: Any, engine: Any, place: Path, runs: int) -> None:
        self.report, self.spark, self.engine, self.place = report, spark, engine, place
        self.runs = runs
        self.known: list[Any] = []

    # -- tables --------------------------------------------------------------------------------

    def give(self, name: str, table: pa.Table) -> float:
        """A table to all three systems; the seconds of the optimizer's ANALYZE."""
        file = self.place / f"{name}.parquet"
        pq.write_table(table, file)
        for prefix in ("aqe_", "cbo_"):
            where = f"USING parquet LOCATION '{file}'"
            self.spark.sql(f"CREATE TABLE {prefix}{name} {where}")
        self.engine.table(name, self.spark.table(f"aqe_{name}"))
        begun = time.perf_counter()
        self.spark.sql(f"ANALYZE TABLE cbo_{name} COMPUTE STATISTICS FOR ALL COLUMNS")
        return time.perf_counter() - begun

    def graph_cases(self, quick: bool) -> list[Case]:
        found, analyzed = [], 0.0
        for graph, table in graph_queries.graphs(shared_data(), quick):
            analyzed += self.give(graph, table)
            for template in graph_queries.TEMPLATES:
                for draw in range(1 if quick else 3):
                    seed = f"{graph} {template.name} {draw}"

                    def sql(
                        prefix: str, seed: str = seed, graph: str = graph, t: Any = template
                    ) -> str:
                        return t.sql(f"{prefix}{graph}", Random(seed))

                    found.append(Case(FAMILIES[0], seed, sql))
        self.report.row(FAMILIES[0], CBO, "ANALYZE before", "s", analyzed)
        return found

    def stats_cases(self, quick: bool) -> list[Case]:
        shared = shared_data()
        if shared is None or not (shared / "stats").exists():
            return []
        tables = stats_data.load(shared / "stats")
        given = {n: stats_data.copies(t, n, COPIES) for n, t in tables.items()}
        analyzed = sum(self.give(n, t) for n, t in given.items())
        self.report.row(FAMILIES[1], CBO, "ANALYZE before", "s", analyzed)
        chosen = stats_data.queries(shared / "stats", 3)[:: 10 if quick else 1]
        return [self._stats_case(q) for q in chosen]

    def _stats_case(self, query: stats_data.StatsQuery) -> Case:
        def sql(prefix: str) -> str:
            text = query.counting
            for name in stats_data.TABLES:
                text = text.replace(f" {name.upper()} AS", f" {prefix}{name} AS")
            return text

        return Case(FAMILIES[1], f"query {query.number}", sql)

    # -- runs ----------------------------------------------------------------------------------

    def family(self, family: str, cases: list[Case]) -> None:
        if not cases:
            self.report.progress(f"{family}: the shared data are not here")
            return
        for case in cases:
            for number in range(-1, self.runs):  # one to warm up
                for i in range(len(SYSTEMS)):
                    self._once(case, SYSTEMS[(i + number) % len(SYSTEMS)], warming=number < 0)
            times = ", ".join(f"{s} {case.median(s):.2f}" for s in SYSTEMS)
            planned = statistics.median(case.planning)
            self.report.progress(f"{case.name}: {times} s; planning {planned:.2f} s; {case.told}")
            assert len(case.rows) == 1, f"{case.name}: results differ: {case.rows}"
        self._summed(family, cases)

    def _once(self, case: Case, system: str, *, warming: bool) -> None:
        for key in _CBO:
            self.spark.conf.set(key, str(system == CBO).lower())
        self.engine.batch.log.runs.clear()  # nothing is learned from earlier repetitions
        prefix = {OURS: "", AQE: "aqe_", CBO: "cbo_"}[system]
        text = case.sql(prefix)
        timer = threading.Timer(MOST_SECONDS, self.spark.sparkContext.cancelAllJobs)
        timer.start()
        begun = time.perf_counter()
        try:
            frame = self.engine.batch(text) if system == OURS else self.spark.sql(text)
            case.rows.add(frame.collect()[0][0])
            took = time.perf_counter() - begun
        except Exception:
            took = time.perf_counter() - begun
            if took < MOST_SECONDS:
                raise
            took = MOST_SECONDS
        finally:
            timer.cancel()
        if warming:
            return
        if system == OURS:
            entry = self.engine.batch.log.runs[-1]
            case.reordered, case.hinted = entry.reordered, bool(entry.broadcast)
            case.planning.append(entry.planning)
            if len(case.planning) == 1:
                self.known.append(entry)
        case.seconds[system].append(took)

    def _summed(self, family: str, cases: list[Case]) -> None:
        totals = {s: sum(c.median(s) for c in cases) for s in SYSTEMS}
        for system, total in totals.items():
            runs = [sum(c.seconds[system][i] for c in cases) for i in range(self.runs)]
            self.report.row(family, system, "total, median of runs", "s", total)
            self.report.row(family, system, "total, fastest run", "s", min(runs))
            self.report.row(family, system, "total, slowest run", "s", max(runs))
        planning = sum(statistics.median(c.planning) for c in cases)
        self.report.row(family, OURS, "planning in total", "s", planning)
        self.report.row(
            family, OURS, "queries in another order", "queries", sum(c.reordered for c in cases)
        )
        self.report.row(family, OURS, "queries", "queries", len(cases))
        hinted = sum(c.hinted and not c.reordered for c in cases)
        self.report.row(family, OURS, "queries with hints alone", "queries", hinted)
        best = min(totals[AQE], totals[CBO])
        self.report.ratio(f"{family}: total over the better of AQE and CBO", totals[OURS], best)
        worst = max(cases, key=lambda c: c.median(OURS) / min(map(c.median, SYSTEMS)))
        ratio = worst.median(OURS) / min(map(worst.median, SYSTEMS))
        self.report.measure(f"{family}: slowest query over the best of it", ratio, worst.name)
        slow = sum(c.median(OURS) > 1.5 * min(map(c.median, SYSTEMS)) for c in cases)
        self.report.row(family, OURS, "queries above 1.5 x the best", "queries", slow)

    def orders(self) -> None:
        """What was chosen, over all families."""
        chosen = [r for r in self.known if r.reordered]
        confirmed = [r for r in chosen if not any("has not this order" in n for n in r.notes)]
        self.report.row("orders", OURS, "chosen", "orders", len(chosen))
        goal = "orders that Spark's plan confirms"
        self.report.ratio(goal, len(confirmed), len(chosen), "no order was chosen")
        bushy = sum(") ⋈ (" in (r.order or "") for r in chosen)
        self.report.measure("bushy orders among those chosen", bushy)
