"""Filters on the KEY of a stream look its past up instead of going through it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.exec import lookups
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

N, KEYS = 40_000, 50


def rows() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "dev": pa.array([f"d{k}" for k in rng.integers(0, KEYS, N)]),
            "x": rng.integers(0, 100, N),
            "ts": pa.array(np.arange(N) // 3, pa.timestamp("us", "UTC")),
        }
    )


QUERIES = [
    "SELECT ISTREAM x FROM s WHERE dev = 'd7'",
    "SELECT ISTREAM x, ts FROM s WHERE dev = 'd7' AND x > 50",
    "SELECT count(*) AS n, sum(x) AS t FROM s [RANGE 500 MICROSECONDS] WHERE 'd9' = dev",
    "SELECT ISTREAM a.x FROM s [RANGE 40 MICROSECONDS] a, s [NOW] b "
    "WHERE a.dev = 'd1' AND a.x = b.x AND b.dev = 'd2'",
    "SELECT ISTREAM x FROM s WHERE dev = 'nobody'",
    "SELECT ISTREAM x FROM s WHERE dev = 'd7' AND dev = 'd8'",
]


def late(sql: str, **how: Any) -> tuple[Any, Any]:
    """A query that comes when all of the past is there; its results and counters."""
    made = Runner(epochs=3, **how)
    made.stream("s", rows(), key=("dev",), retain="1 hour")
    made.run(lambda number: made.query(sql, "q") if number == 3 else None)
    query = made.queries["q"]
    return from_table(query.results()), query.stats()["counts"]


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("sql", QUERIES)
def test_the_index_changes_no_row(sql: str, buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """priorart AU-4: equal answers; with the index only rows of the asked key are read."""
    found, counts = late(sql, buckets=buckets, slice_rows=9_000, share_from=10**9)
    read = sum(n for key, n in counts.items() if key.startswith("looked up:"))
    assert read <= 8 * N / KEYS * buckets
    assert read > 0 or "nobody" in sql
    asked = [n for key, n in counts.items() if key.startswith("evaluations:dev")]
    assert sum(asked) <= 8 * N / KEYS * buckets
    monkeypatch.setattr(lookups, "SMALLEST", 10**9)
    expected, whole = late(sql, buckets=buckets, slice_rows=9_000, share_from=10**9)
    assert difference(expected, found) is None
    assert not any(key.startswith("looked up:") for key in whole)
    everything = sum(n for key, n in whole.items() if key.startswith("evaluations:"))
    assert everything >= N
