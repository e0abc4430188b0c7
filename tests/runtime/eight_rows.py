"""A stream of eight rows, and a relation over it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from thalweg.testing import Runner

UTC = pa.timestamp("us", "UTC")
STREAM = pa.table(
    {
        "k": pa.array([1, 2, 1, 3, 2, 1, None, 3], pa.int64()),
        "x": pa.array([0.5, 1.5, None, 2.5, 3.5, 4.5, 5.5, 6.5]),
        "ts": pa.array([1, 2, 3, 4, 6, 8, 9, 12], UTC),
    }
)
RELATION = "SELECT k, count(*) AS n FROM s [RANGE 3 MICROSECONDS] GROUP BY k"


def runner_over(epochs: int = 4, **options: Any) -> Runner:
    runner = Runner(epochs=epochs, **options)
    runner.stream("s", STREAM)
    return runner


def summed(table: pa.Table, last: int | None = None) -> Counter[tuple[Any, ...]]:
    """A relation's changes added up by hand."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        if last is None or row["__ts"].microsecond <= last:
            found[row["k"], row["n"]] += row["__sign"]
    return Counter({k: n for k, n in found.items() if n})
