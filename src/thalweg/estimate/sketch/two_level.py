"""The builder of sketches by two-level aggregation, in Arrow and as a text for Spark.

Inner: rows are grouped by (buckets of all attributes, one key) and counted; outer: per cell the sum
of these counts and the largest. In SQL one job does it for all attributes, with GROUPING SETS. It
makes the same numbers as the scan over sorted rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from thalweg.estimate.sketch.bound_sketch import BoundSketch, Shape, bucket
from thalweg.store.hashing import Hashes


def sketch_by_groups(
    attributes: Sequence[str], hashes: Sequence[Hashes], shape: Shape
) -> BoundSketch:
    """Counts and exact degrees; rows with NULL where it joins nothing are left out before."""
    buckets = [f"h{i}" for i in range(len(shape))]
    columns = {
        b: pa.array(bucket(h, n)) for b, h, n in zip(buckets, hashes, shape, strict=True)
    } | {f"k{i}": pa.array(h) for i, h in enumerate(hashes)}
    rows = pa.table(columns)
    size = int(np.prod(shape, dtype=np.int64))
    counts = np.zeros(size)
    degrees = []
    for i in range(len(shape)):
        inner = rows.group_by([*buckets, f"k{i}"]).aggregate([([], "count_all")])
        outer = inner.group_by(buckets).aggregate([("count_all", "sum"), ("count_all", "max")])
        places = tuple(outer.column(b).to_numpy() for b in buckets)
        cells = np.ravel_multi_index(places, shape)
        counts[cells] = outer.column("count_all_sum").to_numpy()
        largest = np.zeros(size)
        largest[cells] = outer.column("count_all_max").to_numpy()
        degrees.append(largest)
    return BoundSketch(tuple(attributes), shape, None, counts, tuple(degrees))


Bucket = Callable[[str, int], str]
"""The SQL of the bucket of a column, for a number of buckets: one hash for all columns of an
attribute, and a power of two, so that buckets nest."""


def spark_bucket(types: Mapping[str, str]) -> Bucket:
    """Spark's xxhash64 modulo the buckets, over a column in the type of its attribute: hashes of
    INT and BIGINT differ. Adding 0 makes one zero of -0.0."""

    def sql(column: str, buckets: int) -> str:
        wanted = types[column]
        value = f"CAST({column} AS {wanted})"
        if wanted.upper() in ("DOUBLE", "FLOAT"):
            value = f"({value} + CAST(0 AS {wanted}))"
        return f"pmod(xxhash64({value}), {buckets})"

    return sql


def sketch_sql(relation: str, columns: Sequence[str], shape: Shape, bucket_of: Bucket) -> str:
    """One query for all degrees: a row per (attribute, cell) with `count` and `degree`. `attribute`
    numbers the columns from 0; the counts of all of them are the same."""
    cells = [f"h{i}" for i in range(len(columns))]
    hashed = ", ".join(
        f"{bucket_of(c, n)} AS {h}, {c} AS k{i}"
        for i, (c, n, h) in enumerate(zip(columns, shape, cells, strict=True))
    )
    present = " AND ".join(f"{c} IS NOT NULL" for c in columns)
    keys = [f"k{i}" for i in range(len(columns))]
    sets = ", ".join(f"({', '.join([*cells, k])})" for k in keys)
    number = " ".join(f"WHEN grouping({k}) = 0 THEN {i}" for i, k in enumerate(keys))
    return (
        f"SELECT attribute, {', '.join(cells)}, sum(rows) AS count, max(rows) AS degree FROM ("
        f"SELECT {', '.join(cells)}, CASE {number} END AS attribute, count(*) AS rows FROM ("
        f"SELECT {hashed} FROM {relation} WHERE {present}) AS hashed "
        f"GROUP BY GROUPING SETS ({sets})) AS grouped GROUP BY attribute, {', '.join(cells)}"
    )


def sketch_of_rows(attributes: Sequence[str], shape: Shape, rows: pa.Table) -> BoundSketch:
    """The sketch of what `sketch_sql` gives."""
    size = int(np.prod(shape, dtype=np.int64))
    places = tuple(rows.column(f"h{i}").to_numpy().astype(np.int64) for i in range(len(shape)))
    cells = np.ravel_multi_index(places, shape) if len(rows) else np.empty(0, np.int64)
    number = rows.column("attribute").to_numpy()
    counts, degrees = np.zeros(size), []
    for i in range(len(shape)):
        mine = number == i
        counts[cells[mine]] = rows.column("count").to_numpy()[mine].astype(np.float64)
        largest = np.zeros(size)
        largest[cells[mine]] = rows.column("degree").to_numpy()[mine]
        degrees.append(largest)
    return BoundSketch(tuple(attributes), shape, None, counts, tuple(degrees)).compact()
