"""The sweep over keys and lifetimes against its definition, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.store import native


def _lifetimes(rng: np.random.Generator, n: int) -> list[np.ndarray]:
    hashes = native.mix(rng.integers(0, 9, n).astype(np.uint64))
    starts = rng.integers(0, 60, n)
    ends = starts + rng.integers(0, 30, n)
    last, first = rng.integers(0, 4, (2, n)).astype(np.int8)
    order = native.key_time_order(hashes, starts)
    return [column[order] for column in (hashes, starts, ends, last, first)]


@pytest.mark.parametrize("departing", [False, True])
@pytest.mark.parametrize("source", [0, 2, 1 << 30])
@pytest.mark.parametrize("needles", [0, 1, 300])
def test_a_needle_meets_what_is_alive_at_its_instant(
    departing: bool, source: int, needles: int
) -> None:
    rng = np.random.default_rng(needles + departing)
    hashes, starts, ends, last, first = _lifetimes(rng, 500)
    wanted = native.mix(rng.integers(0, 12, needles).astype(np.uint64))
    at = rng.integers(-5, 95, needles)
    order = native.key_time_order(wanted, at)
    needle, row, _ = native.alive_pairs(
        wanted, at, order, source, departing, hashes, starts, ends, last, first
    )
    if departing:
        meets = lambda t: (starts < t) & ((ends > t) | ((ends == t) & (first > source)))  # noqa: E731
    else:
        meets = lambda t: (ends > t) & ((starts < t) | ((starts == t) & (last < source)))  # noqa: E731
    expected = {
        (i, j)
        for i in range(needles)
        for j in np.flatnonzero((hashes == wanted[i]) & meets(at[i])).tolist()
    }
    found = list(zip(needle.tolist(), row.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == expected


@pytest.mark.parametrize("n", [1_000, 30_000])
def test_rows_that_are_over_are_looked_at_twice_at_most(n: int) -> None:
    """One key, one row alive at a time, as the groups of a subquery are."""
    hashes = np.zeros(n, np.uint64)
    starts = np.arange(n)
    places = np.zeros(n, np.int8)
    needles, at = np.zeros(n, np.uint64), np.arange(n)
    needle, _, visits = native.alive_pairs(
        needles, at, np.arange(n), 1, False, hashes, starts, starts + 1, places, places
    )
    assert len(needle) == n
    assert visits <= 3 * n
