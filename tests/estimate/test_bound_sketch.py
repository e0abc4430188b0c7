"""Bound sketches: both builders, merging, coarsening, and keys of several types."""

from __future__ import annotations

from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from thalweg.estimate.join_query import Attribute, JoinInput, JoinQuery
from thalweg.estimate.join_rows import JoinRows, from_tables
from thalweg.estimate.sketch.bound_sketch import BoundSketch, coarsened, merged
from thalweg.estimate.sketch.row_groups import RowGroups
from thalweg.estimate.sketch.two_level import (
    sketch_by_groups,
    sketch_of_rows,
    sketch_sql,
    spark_bucket,
)

EXAMPLE = [(4, 0), (4, 3), (7, 3), (8, 0), (8, 2), (9, 3)]


def plain_hashes(columns: list[list[int]]) -> list[np.ndarray]:
    """Values as their own hashes: buckets are values modulo their number."""
    return [np.array(c, np.uint64) for c in columns]


def by_sql(columns: list[list[int | None]], shape: tuple[int, ...]) -> BoundSketch:
    names = [f"c{i}" for i in range(len(columns))]
    rows = pa.table({n: pa.array(c, pa.int64()) for n, c in zip(names, columns, strict=True)})
    text = sketch_sql("rows", names, shape, lambda c, n: f"({c} % {n})")
    connection = duckdb.connect()
    connection.register("rows", rows)
    return sketch_of_rows(names, shape, connection.sql(text).to_arrow_table())


def same(one: BoundSketch, other: BoundSketch) -> bool:
    first, second = one.full(), other.full()
    pairs = zip((first.counts, *first.degrees), (second.counts, *second.degrees), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def naive(columns: list[list[int]], shape: tuple[int, ...]) -> BoundSketch:
    """Algorithm 5 as it is written, row by row."""
    counts = np.zeros(shape)
    degrees = [np.zeros(shape) for _ in shape]
    seen: dict[tuple[object, ...], int] = {}
    for row in zip(*columns, strict=True):
        cell = tuple(v % m for v, m in zip(row, shape, strict=True))
        counts[cell] += 1
        for i, value in enumerate(row):
            key = (i, value, cell)
            seen[key] = seen.get(key, 0) + 1
            degrees[i][cell] = max(degrees[i][cell], seen[key])
    names = tuple(f"c{i}" for i in range(len(shape)))
    return BoundSketch(names, shape, None, counts.ravel(), tuple(d.ravel() for d in degrees))


def test_the_worked_example() -> None:
    """bounds #1: the tensors of the example, from every builder."""
    columns = [list(c) for c in zip(*EXAMPLE, strict=True)]
    for sketch in (
        RowGroups.of_hashes("xy", plain_hashes(columns)).sketch((2, 2)),
        sketch_by_groups("xy", plain_hashes(columns), (2, 2)),
        by_sql([list(c) for c in columns], (2, 2)),
    ):
        full = sketch.full()
        assert full.dense(full.counts).tolist() == [[3, 1], [0, 2]]
        assert full.dense(full.degrees[0]).tolist() == [[2, 1], [0, 1]]
        assert full.dense(full.degrees[1]).tolist() == [[2, 1], [0, 2]]


def test_builders_agree() -> None:
    """bounds #2: 100 random relations of one to three attributes, with duplicates and NULLs."""
    rng = Random(1)
    for number in range(100):
        arity = rng.randrange(1, 4)
        shape = tuple(rng.choice([1, 2, 4, 8]) for _ in range(arity))
        rows = [
            [None if rng.random() < 0.1 else rng.randrange(12) for _ in range(arity)]
            for _ in range(rng.randrange(40))
        ]
        rows += [rng.choice(rows) for _ in range(5) if rows]
        present = [r for r in rows if None not in r]
        columns = [[r[i] for r in present] for i in range(arity)]
        hashes = plain_hashes(columns)
        expected = naive(columns, shape)
        scanned = RowGroups.of_hashes("abc"[:arity], hashes).sketch(shape)
        assert same(expected, scanned)
        assert same(expected, scanned.compact())
        assert same(expected, sketch_by_groups("abc"[:arity], hashes, shape))
        if number % 5 == 0:
            assert same(expected, by_sql([[r[i] for r in rows] for i in range(arity)], shape))


def test_sparse_where_mostly_empty() -> None:
    hashes = plain_hashes([[1, 1, 5], [2, 2, 7]])
    full = RowGroups.of_hashes("xy", hashes).sketch((64, 64))
    compact = full.compact()
    assert compact.cells is not None
    assert len(compact.cells) == 2
    assert compact.nbytes < full.nbytes / 100
    assert same(full, compact)


@pytest.mark.parametrize("seed", range(20))
def test_merging_and_coarsening_stay_above_the_truth(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 30, (60, 2)).astype(np.uint64)
    parts = rows[:25], rows[25:]
    built = [RowGroups.of_hashes("xy", list(p.T)).sketch((4, 8)) for p in parts]
    whole = RowGroups.of_hashes("xy", list(rows.T))
    for found, exact in (
        (merged(*built), whole.sketch((4, 8))),
        (coarsened(whole.sketch((4, 8)), (2, 2)), whole.sketch((2, 2))),
        (coarsened(whole.sketch((4, 8)), (1, 4)), whole.sketch((1, 4))),
    ):
        full = found.full()
        assert np.array_equal(full.counts, exact.counts)
        for mine, truth in zip(full.degrees, exact.degrees, strict=True):
            assert (mine >= truth).all()
        if full.repeats is not None and exact.repeats is not None:
            assert (full.repeats >= exact.repeats).all()


def test_parts_without_a_common_key_merge_exactly() -> None:
    rows = np.array([[1, 1], [1, 2], [3, 1], [3, 1]], np.uint64)
    parts = [RowGroups.of_hashes("xy", list(p.T)).sketch((2, 2)) for p in (rows[:2], rows[2:])]
    exact = RowGroups.of_hashes("xy", list(rows.T)).sketch((2, 2))
    assert np.array_equal(merged(*parts, disjoint_on="x").full().degrees[0], exact.degrees[0])
    assert merged(*parts).full().degrees[0].max() > exact.degrees[0].max()


def keyed(left: pa.DataType, right: pa.DataType) -> JoinRows:
    tables = {"a": pa.table({"k": pa.array([1, 2, 2], left)})}
    tables["b"] = pa.table({"k": pa.array([2, 3], right)})
    inputs = tuple(JoinInput(n, n, (("k", "k"),)) for n in "ab")
    return JoinRows.of(JoinQuery(inputs, (Attribute("k"),)), from_tables(tables))


def test_integers_of_all_widths_share_buckets() -> None:
    """bounds #17: INT and BIGINT of one value are one key; Spark's own hash, without the cast,
    tells them apart, so the text for Spark casts."""
    for right in (pa.int64(), pa.int16(), pa.float64(), pa.decimal128(12, 2)):
        rows = keyed(pa.int32(), right)
        assert rows.hashes(0, "k")[1] == rows.hashes(1, "k")[0], right
    text = sketch_sql("t", ["k"], (8,), spark_bucket({"k": "BIGINT"}))
    assert "pmod(xxhash64(CAST(k AS BIGINT)), 8)" in text


def test_the_hash_of_a_type_alone_would_bound_below_the_truth() -> None:
    """bounds #17: buckets by the bytes of each width miss the match, those by value do not."""
    narrow, wide = np.array([2], np.int32), np.array([2], np.int64)

    def by_bytes(values: np.ndarray) -> int:
        return sum(b * 31**i for i, b in enumerate(values.tobytes(), 1)) % 61 + values.itemsize

    counts = [np.bincount([by_bytes(v) % 8], minlength=8) for v in (narrow, wide)]
    assert counts[0] @ counts[1] == 0, "one row joins one row"
    rows = keyed(pa.int32(), pa.int64())
    buckets = [np.bincount(rows.hashes(i, "k") & np.uint64(7), minlength=8) for i in (0, 1)]
    assert buckets[0] @ buckets[1] >= 2
