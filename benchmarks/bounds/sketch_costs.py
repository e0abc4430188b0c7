"""What degrees by count-min cost on top of the scan that hashes keys and counts rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from common.harness import Report
from thalweg.columns.vector import from_arrow
from thalweg.estimate.degrees.cm_safe import CountMin
from thalweg.estimate.sketch.bound_sketch import cell_numbers
from thalweg.store.hashing import hash_column

GOAL = "cm_safe over the same scan without it"
SHAPE = (64, 64)


def declare(report: Report) -> None:
    report.declare(GOAL, at_most=1.15)


def run(report: Report, quick: bool) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = 500_000 if quick else 4_000_000
    rng = np.random.default_rng(0)
    table = pa.table({n: rng.zipf(1.3, rows).clip(max=10**6) for n in ("x", "y", "v")})

    def scan() -> tuple[list[np.ndarray], np.ndarray]:
        """Filter, hash both keys, and count rows per cell."""
        passing = table.filter(pc.greater(table.column("v"), 1))
        keys = [from_arrow(passing.column(c), _type(passing, c)).to_arrow() for c in ("x", "y")]
        hashes = [hash_column(k) for k in keys]
        cells = cell_numbers(hashes, SHAPE, len(passing))
        np.bincount(cells, minlength=SHAPE[0] * SHAPE[1])
        return hashes, cells

    def both() -> None:
        hashes, cells = scan()
        for one in hashes:
            degrees = CountMin(SHAPE[0] * SHAPE[1])
            degrees.update(one, cells)
            degrees.largest()

    plain, with_degrees = (_seconds(f) for f in (scan, both))
    report.row("sketch of two keys", "thalweg", "scan", "ms", 1000 * plain)
    report.row("sketch of two keys", "thalweg", "scan with cm_safe", "ms", 1000 * with_degrees)
    report.ratio(GOAL, with_degrees, plain)


def _type(table: object, column: str) -> object:
    from thalweg.plan.types import of_result

    return of_result(table.schema.field(column).type)  # type: ignore[attr-defined]


def _seconds(action: Callable[[], object]) -> float:
    action()
    found = []
    for _ in range(7):
        begun = time.perf_counter()
        action()
        found.append(time.perf_counter() - begun)
    return median(found)
