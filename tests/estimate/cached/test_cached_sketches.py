"""The parts of table statistics: packed fields, rounded counts, row and pair sketches."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.estimate.cached import bit_fields
from thalweg.estimate.cached.bit_budget import CodeWish, KeyWish, share_bits
from thalweg.estimate.cached.key_columns import HashedKeys, family_of
from thalweg.estimate.cached.ordered_values import Order
from thalweg.estimate.cached.pair_sketch import build_pairs
from thalweg.estimate.cached.rounded_counts import levels_for, round_up
from thalweg.estimate.cached.row_sketch import build_rows
from thalweg.estimate.cached.value_codes import RankedColumn
from thalweg.estimate.join_query import Condition


def test_packed_fields_are_read_back() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        bits = [int(b) for b in rng.integers(0, 18, rng.integers(1, 15))]
        fields = [rng.integers(0, 1 << b, 50) for b in bits]
        places, sizes = bit_fields.places(bits)
        words = bit_fields.pack(fields, places, len(sizes), 50)
        kept = [bit_fields.planes(w, s) for w, s in zip(words, sizes, strict=True)]
        assert [sum(p.itemsize for p in parts) for parts in kept] == sizes
        assert sum(sizes) * 8 < sum(bits) + 8 * len(sizes) + 17 * (len(sizes) - 1)
        for values, place in zip(fields, places, strict=True):
            assert np.array_equal(bit_fields.read(kept, place, 50), values)


@pytest.mark.parametrize("most", [0, 1, 31, 255, 256, 300, 10_000, 10**9])
def test_rounded_counts_are_never_below(most: int) -> None:
    rng = np.random.default_rng(most)
    counts = np.append((most * rng.random(2_000) ** 6).astype(np.int64), [0, most])
    levels = levels_for(most)
    found = levels[round_up(counts, levels)]
    assert len(levels) <= 256
    assert (found >= counts).all()
    ratio = (most / 32) ** (1 / 223) if most > 255 else 1.0
    assert (found <= np.ceil(counts * ratio) + (most > 255)).all()
    assert np.array_equal(found[counts < 32], counts[counts < 32])


def test_bits_go_where_the_error_is_largest() -> None:
    keys, flag, date = KeyWish(1_000, 17), CodeWish(2), CodeWish(10_000)
    given = share_bits([keys, flag, date], 18)
    assert given[1] == 1  # two values need no more
    assert sum(given) == 18
    assert 0.5 <= keys.error(given[0]) / date.error(given[2]) <= 2
    assert share_bits([flag], 8) == [1]


class Table:
    """Random rows of two keys and two filter columns."""

    def __init__(self, seed: int, length: int = 300, rare: int = 50) -> None:
        random = Random(seed)
        self.keys = {
            "k": [random.choice([None, 1, 1, random.randint(2, rare)]) for _ in range(length)],
            "j": [random.randint(0, rare) for _ in range(length)],
        }
        self.filters = {
            "x": [random.choice([None, 0, random.randint(1, 200)]) for _ in range(length)],
            "y": [random.randint(0, 20) for _ in range(length)],
        }
        self.length = length
        self.hashed = [HashedKeys.of(n, pa.array(v, pa.int64())) for n, v in self.keys.items()]
        self.ranked = {
            n: RankedColumn.of(pa.array(v, pa.int64()), Order.INTEGER)
            for n, v in self.filters.items()
        }

    def kept(self, low: int, high: int, key: str) -> list[int]:
        """The rows with low <= x and y <= high whose key is not NULL."""
        x, y = self.filters["x"], self.filters["y"]
        return [
            i
            for i in range(self.length)
            if x[i] is not None and x[i] >= low and y[i] <= high and self.keys[key][i] is not None
        ]

    def true(self, key: str, bits: int, rows: list[int]) -> tuple[Any, Any]:
        """Rows and largest degree per bucket of the key."""
        place = next(k for k in self.hashed if k.column.name == key).buckets(bits)
        counts, degrees = np.zeros(1 << bits), np.zeros(1 << bits)
        times: dict[Any, int] = {}
        for i in rows:
            counts[place[i]] += 1
            times[self.keys[key][i]] = times.get(self.keys[key][i], 0) + 1
            degrees[place[i]] = max(degrees[place[i]], times[self.keys[key][i]])
        return counts, degrees


LOW, HIGH = 20, 9
CONDITIONS = {"x": [Condition("x", low=LOW)], "y": [Condition("y", high=HIGH)]}


@pytest.mark.parametrize("limit", [40, 120, 400, 1_000, 10_000])
def test_each_row_that_satisfies_is_in_an_entry_taken(limit: int) -> None:
    built = 0
    for seed in range(20):
        table = Table(seed)
        sketch, _ = build_rows(table.hashed, table.ranked, table.length, limit)
        if sketch is None:
            continue
        built += 1
        assert sketch.nbytes <= limit
        allowed = {n: c.allowed(CONDITIONS[n]) for n, c in sketch.codes.items()}
        taken = sketch.matching(allowed, {})
        for key in table.keys:
            good = np.ones(sketch.entries, np.bool_) if taken is None else taken
            null = sketch.nulls(key)
            good = good if null is None else good & ~null
            weights = np.ones(sketch.entries) if sketch.weights is None else sketch.weights
            bits = sketch.widths.keys[key]
            found = np.bincount(sketch.buckets(key)[good], weights[good], minlength=1 << bits)
            true, _ = table.true(key, bits, table.kept(LOW, HIGH, key))
            assert (found >= true).all()
    assert built or limit < 120


def test_a_row_sketch_with_room_is_nearly_exact() -> None:
    table = Table(1)
    sketch, error = build_rows(table.hashed, table.ranked, table.length, 20_000)
    assert sketch is not None
    assert error == 0.0
    allowed = {n: c.allowed(CONDITIONS[n]) for n, c in sketch.codes.items()}
    taken = sketch.matching(allowed, {})
    assert taken is not None
    rows = [i for i in range(table.length) if i in set(table.kept(LOW, HIGH, "j"))]
    assert taken.sum() == len(rows)


def test_equal_rows_are_merged_where_bytes_are_few() -> None:
    table = Table(3, length=5_000, rare=4)
    sketch, _ = build_rows(table.hashed, {}, table.length, 400)
    assert sketch is not None
    assert sketch.weights is not None
    assert sketch.weights.sum() == table.length
    assert sketch.entries < 100


def test_frequent_keys_have_more_rows_than_a_byte_counts() -> None:
    keys = [HashedKeys.of("k", pa.array([1] * 1_000 + list(range(2, 1_002))))]
    other = RankedColumn.of(pa.array(range(2_000)), Order.INTEGER)
    sketch, _ = build_rows(keys, {"x": other}, 2_000, 50_000)
    assert sketch is not None
    assert sketch.weights is None
    found = np.bincount(sketch.buckets("k"), minlength=1 << 17)
    assert found.max() == 1_000
    assert found.sum() == 2_000


@pytest.mark.parametrize("limit", [2_500, 5_000, 30_000])
def test_pairs_bound_rows_and_degrees_per_bucket(limit: int) -> None:
    for seed in range(20):
        table = Table(seed)
        sketch = build_pairs(table.hashed, table.ranked, limit)
        assert sketch is not None
        assert sketch.nbytes <= limit
        allowed = {n: c.allowed(CONDITIONS[n]) for n, c in sketch.codes.items()}
        for key in table.keys:
            rows, degrees = sketch.under(key, allowed)
            true_rows, true_degrees = table.true(key, sketch.bits[key], table.kept(LOW, HIGH, key))
            assert (rows >= true_rows).all()
            assert (degrees >= true_degrees).all()
            every, largest = sketch.under(key, {})
            assert (every >= rows).all()
            assert rows.sum() < every.sum() / 2
            assert (largest >= degrees).all()


def test_pairs_of_unique_keys_have_degree_one() -> None:
    keys = [HashedKeys.of("k", pa.array(range(500)))]
    x = {"x": RankedColumn.of(pa.array([i % 7 for i in range(500)]), Order.INTEGER)}
    sketch = build_pairs(keys, x, 5_000)
    assert sketch is not None
    assert not sketch.degrees
    _, degrees = sketch.under("k", {})
    assert degrees.max() == 1


def test_widths_and_units_of_a_key_do_not_change_its_bucket() -> None:
    for one, other in (
        (pa.array([1, 2], pa.int32()), pa.array([1, 2], pa.int64())),
        (pa.array([0.0, 1.5], pa.float32()), pa.array([-0.0, 1.5], pa.float64())),
        (pa.array([1, 2], pa.timestamp("s")), pa.array([10**6, 2 * 10**6], pa.timestamp("us"))),
    ):
        assert family_of(one.type) == family_of(other.type)
        found = [HashedKeys.of("k", a).buckets(17).tolist() for a in (one, other)]
        assert found[0] == found[1]
    assert family_of(pa.int64()) != family_of(pa.float64())
