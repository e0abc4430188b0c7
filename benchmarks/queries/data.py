"""Rows and filter queries for `bench queries`, and what each query should find.

Values are uniform. A query asks one column for one value, a column for a narrow interval, or one
column for a value and another for a bound; the more queries there are, the more match a row, as in
life, but few of them.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA = "a BIGINT, b DOUBLE, c BIGINT, ts TIMESTAMP"
DOMAIN = 10_000


@dataclass(frozen=True)
class Asked:
    """A conjunction as text that Spark and Thalweg both read."""

    text: str


def queries(count: int, seed: int = 7) -> list[Asked]:
    rng = random.Random(seed)
    found = []
    for i in range(count):
        if i % 3 == 0:
            text = f"a = {rng.randrange(DOMAIN)}"
        elif i % 3 == 1:
            low = rng.random()
            text = f"b > {low:.9f}D AND b < {low + 1 / DOMAIN:.9f}D"
        else:
            text = f"c = {rng.randrange(256)} AND a > {rng.randrange(DOMAIN * 9 // 10, DOMAIN)}"
        found.append(Asked(text))
    return found


def table(seed: int, rows: int, since: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": rng.integers(0, DOMAIN, rows),
            "b": rng.random(rows),
            "c": rng.integers(0, 256, rows),
            "ts": pa.array(np.arange(since, since + rows), pa.timestamp("us", "UTC")),
        }
    )


def write_files(folder: Path, files: int, rows: int) -> None:
    """Files in the order of time, one for each batch."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        path = folder / f"{i:06d}.parquet"
        pq.write_table(table(i, rows, i * rows), path)
        os.utime(path, (1_700_000_000 + i, 1_700_000_000 + i))


def expected(asked: list[Asked], folder: Path) -> int:
    """How many (row, query) pairs there are, by DuckDB, of some queries."""
    import duckdb

    total = 0
    for one in asked:
        where = one.text.replace("D AND", " AND").removesuffix("D")
        sql = f"SELECT count(*) FROM '{folder}/*.parquet' WHERE {where}"
        total += int(duckdb.sql(sql).fetchall()[0][0])
    return total
