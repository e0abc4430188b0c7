"""Generated queries against the naive reference, however they are run: no row may differ.

A full run takes 3,000 queries (2,000 over streams and tables, 1,000 composed of queries), each
under three of the ways of running it (cuts into epochs, buckets, forced plan switches, restarts, a
row per epoch, another order of arrival, beside other queries). The figures are counts, not times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from common.harness import Report
from thalweg.testing.compositions import random_composition
from thalweg.testing.generators import Case, random_case
from thalweg.testing.grid import check_case, chosen_variants

FIRST_SEED = 100_000  # not those of the test suite
VARIANTS = 3
KINDS: tuple[tuple[str, Callable[[int], Case], int, int], ...] = (
    ("queries over streams and tables", random_case, 2_000, 250),
    ("queries composed of queries", random_composition, 1_000, 150),
)
GOAL = "generated queries that differ from the reference"


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("invariance", scale="quick" if quick else "full")
    report.declare(GOAL, at_most=0, unit="queries")
    wrong = 0
    for title, make, full, short in KINDS:
        count = short if quick else full
        found, features = _checked(report, title, make, count)
        wrong += found
        report.row(title, "thalweg", "checked", "queries", count)
        report.row(title, "thalweg", "runs", "runs", count * VARIANTS)
        report.row(title, "thalweg", "different", "queries", found)
        report.row(title, "thalweg", "kinds of feature", "features", len(features))
    report.measure(GOAL, wrong)
    report.finish(Path(json_path) if json_path else None)
    return 0


def _checked(
    report: Report, title: str, make: Callable[[int], Case], count: int
) -> tuple[int, Counter[str]]:
    wrong, features = 0, Counter[str]()
    for number in range(count):
        seed = FIRST_SEED + number
        case = make(seed)
        features.update(case.features)
        try:
            check_case(case, chosen_variants(seed, VARIANTS))
        except Exception as error:
            wrong += 1
            report.progress(f"seed {seed}: {error}")
        if (number + 1) % 250 == 0:
            report.progress(f"{title}: {number + 1} of {count}, {wrong} differ")
    return wrong, features
