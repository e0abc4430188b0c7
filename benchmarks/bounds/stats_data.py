"""The STATS tables and their sub-queries: files, types, and copies with shifted keys."""

from __future__ import annotations

import csv as text
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

TABLES = ("badges", "posts", "users", "postLinks", "tags")
KEYS = {
    "badges": {"Id": "badge", "UserId": "user"},
    "posts": {"Id": "post", "OwnerUserId": "user", "LastEditorUserId": "user"},
    "users": {"Id": "user"},
    "postLinks": {"Id": "link", "PostId": "post", "RelatedPostId": "post"},
    "tags": {"Id": "tag", "ExcerptPostId": "post"},
}
"""The columns that are keys, and of what."""
SHIFT = 1_000_000
"""More than any key."""


@dataclass(frozen=True)
class StatsQuery:
    """A sub-query: how many tables it joins, its true size over one copy, and its text."""

    number: int
    tables: int
    rows: int
    sql: str

    @property
    def counting(self) -> str:
        return re.sub(r"^SELECT \*", "SELECT count(*) AS n", self.sql)


def load(folder: Path) -> dict[str, pa.Table]:
    """All tables, keys as BIGINT and dates as TIMESTAMP."""
    return {name: _read(folder / f"{name}.csv") for name in TABLES}


def _read(file: Path) -> pa.Table:
    found = csv.read_csv(file)
    for i, field in enumerate(found.schema):
        if pa.types.is_timestamp(field.type):
            stamps = found.column(i).cast(pa.timestamp("us", "UTC"))
            found = found.set_column(i, field.name, stamps)
        elif pa.types.is_null(field.type):
            found = found.set_column(i, field.name, found.column(i).cast(pa.int64()))
    return found


def copies(table: pa.Table, name: str, count: int) -> pa.Table:
    """A table so many times, the keys of each copy shifted: joins grow as the tables do."""
    parts = []
    for number in range(count):
        part = table
        for key in KEYS[name]:
            shifted = pc.add(table.column(key), number * SHIFT)
            part = part.set_column(part.column_names.index(key), key, shifted)
        parts.append(part)
    return pa.concat_tables(parts).combine_chunks()


def queries(folder: Path, least_tables: int = 2) -> list[StatsQuery]:
    with (folder / "subqueries.csv").open(newline="") as file:
        rows = list(text.DictReader(file))
    found = [
        StatsQuery(int(r["query_id"]), len(r["aliases"].split()), int(r["true_rows"]), r["sql"])
        for r in rows
    ]
    return [q for q in found if q.tables >= least_tables]
