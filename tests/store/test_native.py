"""Compiled loops against their obvious NumPy forms."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from thalweg.store import native
from thalweg.store.packs import FULL_RANGE, hash_ranges


def _keys(rng: np.random.Generator, n: int, distinct: int) -> np.ndarray:
    return native.mix(rng.integers(0, distinct, n).astype(np.uint64))


@pytest.mark.parametrize("n", [0, 1, 2, 500, 20_000])
@pytest.mark.parametrize("distinct", [1, 7, 100_000])
def test_key_time_order_is_a_stable_lexical_sort(n: int, distinct: int) -> None:
    rng = np.random.default_rng(n + distinct)
    hashes, ts = _keys(rng, n, distinct), rng.integers(-50, 50, n)
    assert (native.key_time_order(hashes, ts) == np.lexsort((ts, hashes))).all()


def test_sorted_runs_are_merged() -> None:
    rng = np.random.default_rng(3)
    runs = []
    for size in (1000, 10, 700, 1, 300):
        hashes, ts = _keys(rng, size, 50), rng.integers(0, 100, size)
        order = np.lexsort((ts, hashes))
        runs.append((hashes[order], ts[order]))
    hashes = np.concatenate([h for h, _ in runs])
    ts = np.concatenate([t for _, t in runs])
    assert (native.key_time_order(hashes, ts) == np.lexsort((ts, hashes))).all()


def test_hashes_that_differ_only_below_the_radix_bits_are_told_apart() -> None:
    hashes = np.array([5, 3, 4, 3, 5, 1] * 20, np.uint64)
    ts = np.arange(len(hashes), dtype=np.int64)[::-1].copy()
    assert (native.key_time_order(hashes, ts) == np.lexsort((ts, hashes))).all()


@pytest.mark.parametrize("sort_needles", [True, False])
def test_match_ranges_find_exactly_the_rows_in_range(sort_needles: bool) -> None:
    rng = np.random.default_rng(5)
    hashes, ts = _keys(rng, 800, 40), rng.integers(0, 200, 800)
    order = np.lexsort((ts, hashes))
    hashes, ts = hashes[order], ts[order]
    needle, low = _keys(rng, 300, 60), rng.integers(-10, 200, 300)
    if sort_needles:
        at = np.lexsort((low, needle))
        needle, low = needle[at], low[at]
    high = low + rng.integers(-5, 40, 300)
    which, begin, count, total = native.match_ranges(needle, low, high, hashes, ts)
    assert total == count.sum() > 0
    found = {i: [*range(b, b + n)] for i, b, n in zip(which, begin, count, strict=True)}
    assert all(found.values())
    for i in range(300):
        inside = (hashes == needle[i]) & (ts >= low[i]) & (ts <= high[i])
        assert found.get(i, []) == np.flatnonzero(inside).tolist()


def test_expanded_ranges_name_every_pair() -> None:
    begin, count = np.array([3, 0, 7]), np.array([2, 0, 3])
    needle, position = native.expand_ranges(begin, count, 5)
    assert needle.tolist() == [0, 0, 2, 2, 2]
    assert position.tolist() == [3, 4, 7, 8, 9]
    needle, position = native.expand_matches(np.array([5, 8, 6]), begin, count, 5)
    assert needle.tolist() == [5, 5, 6, 6, 6]
    assert position.tolist() == [3, 4, 7, 8, 9]


def test_the_instant_table_has_no_false_negatives() -> None:
    rng = np.random.default_rng(9)
    held = rng.integers(-(2**40), 2**40, 5000)
    bits = np.zeros(1 << 14, np.uint8)
    base = int(held.min())
    native.mark_instants(bits, held, base)
    assert native.test_instants(bits, held, base).all()
    others = rng.integers(-(2**40), 2**40, 5000)
    assert native.test_instants(bits, others, base).mean() < 0.2


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 256, 1000])
def test_hash_ranges_cover_the_hash_space_once(parts: int) -> None:
    ranges = hash_ranges(parts)
    assert ranges[0][0] == FULL_RANGE[0]
    assert ranges[-1][1] == FULL_RANGE[1]
    assert all(a[1] + 1 == b[0] for a, b in pairwise(ranges))


@pytest.mark.parametrize("n", [1, 2, 3, 50, 20_000])
@pytest.mark.parametrize("distinct", [1, 7, 100_000])
def test_a_directory_finds_what_a_merge_finds(n: int, distinct: int) -> None:
    rng = np.random.default_rng(n * 31 + distinct)
    hashes, ts = _keys(rng, n, distinct), rng.integers(-50, 50, n)
    order = np.lexsort((ts, hashes))
    hashes, ts = hashes[order], ts[order]
    edges = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    needles = np.concatenate([edges, _keys(rng, 300, distinct + 3), hashes[:20]])
    low = rng.integers(-60, 60, len(needles))
    high = low + rng.integers(-3, 40, len(needles))
    base, shift, starts = native.hash_directory(hashes)
    directory = ts.min(), ts.max(), np.uint64(base), np.uint64(shift), starts
    few = native.match_by_directory(needles, low, high, hashes, ts, *directory)
    every = native.match_ranges(needles, low, high, hashes, ts)
    assert all((a == b).all() for a, b in zip(few[:3], every[:3], strict=True))
    assert few[3] == every[3]
