"""Rows of given seconds, and what queries made of them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from thalweg.testing.compare import column_values, from_table
from thalweg.testing.runner import Runner

SECOND = 1_000_000
STAMP = pa.timestamp("us", "UTC")


def batch(*rows: tuple[int | None, Any]) -> pa.Table:
    """Rows of (seconds, value); None is a NULL timestamp."""
    stamps = [None if s is None else round(s * SECOND) for s, _ in rows]
    return pa.table(
        {"ts": pa.array(stamps, STAMP), "v": pa.array([v for _, v in rows], pa.int64())}
    )


def runner(*names: str, **options: Any) -> Runner:
    made = Runner()
    for name in names or ("s",):
        made.stream(name, batch(), **options)
    return made


def rows_of(query: Any) -> list[tuple[float, int, tuple[Any, ...]]]:
    """(seconds, sign, values) in order of time."""
    return [(ts / SECOND, sign, values) for ts, sign, values in from_table(query.results())]


def reasons(made: Runner, stream: str = "s") -> list[str]:
    return column_values(made.rejects(stream)["__reason"])


def late_of(query: Any, stream: str = "s") -> int:
    count: int = query.stats()["streams"][stream]["late"]
    return count
