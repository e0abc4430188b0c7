"""Streams as polynomials: what fitting, holding against a model and solving cost, beside tuples.

Kernels by themselves and through the engine; MACD and following over tuples, over models and over
segments that are given, beside plain Spark; a sweep; bytes stored; the crossovers of the original;
violations by bound; equations by changed segments. One core and process CPU time but where it is
said otherwise. Every goal is declared first, so that those that could not be measured show too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import thalweg
from common.harness import Report
from models import (
    beside_spark,
    crossovers,
    equations,
    fit_rates,
    following,
    macd,
    root_rates,
    stored_sizes,
    sweeps,
    to_commit,
    violations,
)
from models.aircraft import ABSENT, shared_data
from thalweg.spark.worker import keep_memory, warm_up

EXPERIMENTS: dict[str, Callable[[Report, bool], None]] = {
    "kernels": lambda report, quick: fit_rates.run(report, quick, shared_data()),
    "roots": root_rates.run,
    "from packs to commit": to_commit.run,
    "equations": equations.run,
    "stored sizes": stored_sizes.run,
    "violations": lambda report, quick: violations.run(report, quick, None if quick else images()),
    "MACD": macd.run,
    "sweep": sweeps.run,
    "following": following.run,
    "crossovers": crossovers.run,
    "Spark": beside_spark.run,
}
DECLARING = (fit_rates, root_rates, equations, stored_sizes, violations, macd, sweeps, following,
             crossovers)  # fmt: skip


def images() -> Path | None:
    """Where pictures of the documentation are, in a checkout."""
    folder = Path(thalweg.__file__).parents[2] / "docs" / "images"
    return folder if folder.exists() else None


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("models", scale="quick" if quick else "full")
    for module in DECLARING:
        module.declare(report)
    keep_memory()
    warm_up()
    if shared_data() is None:
        report.progress(f"{ABSENT}: generated data instead")
    for name, measure in EXPERIMENTS.items():
        report.progress(name)
        measure(report, quick)
    report.finish(Path(json_path) if json_path else None)
    return 0
