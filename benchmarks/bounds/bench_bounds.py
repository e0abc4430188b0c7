"""Sizes of joins: what orders by bounds save in Spark, how tight they are, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bounds import graph_errors, sketch_costs, spark_orders, stats_sizes
from common.harness import Report

EXPERIMENTS: dict[str, Callable[[Report, bool], None]] = {
    "errors": graph_errors.run,
    "sketches": sketch_costs.run,
    "STATS": stats_sizes.run,
    "Spark": spark_orders.run,
}
DECLARING = (graph_errors, sketch_costs, stats_sizes, spark_orders)


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("bounds", scale="quick" if quick else "full")
    for module in DECLARING:
        module.declare(report)
    for name, experiment in EXPERIMENTS.items():
        report.progress(name)
        experiment(report, quick)
    report.finish(None if json_path is None else Path(json_path))
    return 1 if report.failed else 0
