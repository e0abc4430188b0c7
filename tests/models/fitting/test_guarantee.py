"""Every tuple is within its bound of its piece, whatever the data, and pieces tile the time."""

from __future__ import annotations

import numpy as np
import pytest
from plain_fitting import all_within

from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import Pieces, fitted
from thalweg.models.polynomials import Floats

MINUTE = 60_000_000
METHODS = [("mid-range", 0), ("swing", 1), ("hull", 1), *(("least squares", d) for d in range(6))]


def walk(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Floats]:
    """One key, at irregular instants of a millisecond each on average, in 2026."""
    rng = np.random.default_rng(seed)
    ts = 1_790_000_000_000_000 + np.cumsum(rng.integers(1, 2000, n))
    return np.zeros(n, np.int64), ts, np.cumsum(rng.normal(size=n))[:, np.newaxis]


def assert_tiles(pieces: Pieces, first: int, last: int) -> None:
    """One key without a pause: from its first tuple to the end of the cell of its last."""
    assert pieces.start[0] == first
    assert (pieces.end[:-1] == pieces.start[1:]).all()
    assert (pieces.start < pieces.end).all()
    assert pieces.end[-1] == (last // MINUTE + 1) * MINUTE
    assert (pieces.start // MINUTE == (pieces.end - 1) // MINUTE).all()


@pytest.mark.parametrize(("method", "degree"), METHODS)
def test_a_million_points_of_a_random_walk(method: str, degree: int) -> None:
    """pulse #5"""
    key, ts, values = walk(1_000_000)
    counts = []
    for within in (1.0, 10.0):
        fits = [Fit(degree, within, False, method)]
        pieces = fitted(key, ts, values, fits, MINUTE)
        assert pieces.tuples.sum() == len(ts)
        assert all_within(pieces, key, ts, values, fits)
        assert_tiles(pieces, int(ts[0]), int(ts[-1]))
        counts.append(len(pieces))
    assert 10 * counts[1] < counts[0] < len(ts) / 4


HOSTILE = {  # what values are about, the step of their walk, the bound, and whether pieces join
    "large values, bounds of some digits": (1e12, 1e-3, 3e-3, True),
    "bounds below the last digit": (1e12, 1.0, 1e-9, False),
    "denormal bounds": (0.0, 1.0, 5e-324, False),
    "denormal values": (0.0, 5e-324, 2e-323, True),
    "huge values": (0.0, 1e270, 3e270, True),
    "values at the end of numbers": (1.7e308, 1e290, 3e300, False),
    "tiny values": (0.0, 1e-300, 3e-300, True),
}


@pytest.mark.parametrize(("method", "degree"), METHODS)
@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("far", [False, True])
def test_hostile_values(method: str, degree: int, case: str, far: bool) -> None:
    """With the first tuple far behind the start of its cell, so that lines are told from afar."""
    base, step, within, joins = HOSTILE[case]
    key, ts, values = walk(3000, seed=degree)
    values = base + step * values
    if far:
        ts = ts // 1000 - ts[0] // 1000 + 40_000 * MINUTE + 59_900_000
    fits = [Fit(degree, within, False, method)]
    pieces = fitted(key, ts, values, fits, 1 << 45 if far else MINUTE, np.array([True]))
    keep = np.append(np.diff(ts) > 0, True)
    assert all_within(pieces, key, ts, values, fits, keep)
    assert pieces.tuples.sum() + pieces.conflicts == len(ts)
    if joins:
        assert 2 * len(pieces) < keep.sum()


@pytest.mark.parametrize(("method", "degree"), METHODS)
@pytest.mark.parametrize("percent", [0.1, 5.0, 100.0, 250.0])
def test_relative_bounds(method: str, degree: int, percent: float) -> None:
    key, ts, values = walk(5000, seed=7)
    values[::97] = 0.0
    fits = [Fit(degree, percent, True, method)]
    pieces = fitted(key, ts, values, fits, MINUTE)
    assert pieces.tuples.sum() == len(ts)
    assert all_within(pieces, key, ts, values, fits)
    assert len(pieces) < len(ts)


def test_a_relative_bound_meets_zero_exactly() -> None:
    ts = np.arange(4) * 1_000_000
    values = np.array([[1.0], [0.0], [0.004], [1.0]])
    pieces = fitted(np.zeros(4, np.int64), ts, values, [Fit(0, 60, True)], MINUTE)
    assert pieces.tuples.tolist() == [1, 1, 1, 1]
    assert pieces.coefficients[0][:, 0].tolist() == [1.0, 0.0, 0.004, 1.0]


def test_several_attributes_are_cut_together() -> None:
    key, ts, x = walk(20_000, seed=1)
    values = np.concatenate([x, walk(20_000, seed=2)[2], np.abs(walk(20_000, seed=3)[2])], axis=1)
    fits = [Fit(1, 3.0, False, "hull"), Fit(0, 5.0), Fit(2, 20.0, True)]
    pieces = fitted(key, ts, values, fits, MINUTE)
    assert all_within(pieces, key, ts, values, fits)
    assert pieces.tuples.sum() == len(ts)
    assert_tiles(pieces, int(ts[0]), int(ts[-1]))
    alone = [len(fitted(key, ts, values[:, [a]], [f], MINUTE)) for a, f in enumerate(fits)]
    assert max(alone) <= len(pieces) <= sum(alone)


def test_an_easy_attribute_does_not_cost_more_than_it_is_cut() -> None:
    """The same attribute twice is cut as once, beside a constant that never is."""
    key, ts, x = walk(20_000, seed=1)
    alone = fitted(key, ts, x, [Fit(1, 2.0)], MINUTE)
    fits = [Fit(1, 0.5), Fit(1, 2.0), Fit(2, 2.0)]
    values = np.concatenate([np.ones_like(x), x, x], axis=1)
    both = fitted(key, ts, values, fits, MINUTE)
    assert both.start.tolist() == alone.start.tolist()
    assert both.coefficients[1].tobytes() == alone.coefficients[0].tobytes()


def test_no_tuples() -> None:
    none = np.empty(0, np.int64)
    pieces = fitted(none, none, np.empty((0, 2)), [Fit(0, 1.0), Fit(3, 1.0)], MINUTE)
    assert len(pieces) == 0
    assert [c.shape for c in pieces.coefficients] == [(0, 1), (0, 4)]


@pytest.mark.parametrize(("method", "degree"), METHODS)
def test_bounds_of_half_a_last_digit(method: str, degree: int) -> None:
    """A line rounded to the digits of its values: lines would do, but for the rounding of what they
    are worth. Pieces then are short, and points are not looked at for each of them again (this
    would take minutes)."""
    n = 300_000
    key, ts = np.zeros(n, np.int64), 1_790_000_000_000_000 + np.arange(n) * 1000
    values = (1e12 + np.arange(n) * 1.237e-3)[:, np.newaxis]
    fits = [Fit(degree, 8e-5, False, method)]
    pieces = fitted(key, ts, values, fits, 1 << 50)
    assert pieces.tuples.sum() == n
    assert all_within(pieces, key, ts, values, fits)
    assert len(pieces) < n / 5 or degree == 0
