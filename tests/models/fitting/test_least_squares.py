"""Least squares where they honour the bound, and as few pieces as any polynomial of the degree."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from plain_fitting import all_within

from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import Pieces, fitted
from thalweg.models.polynomials import SECOND, Floats, value_at

LONG = 1 << 50


def fit_one(ts: np.ndarray, v: Floats, degree: int, within: float, every: int = LONG) -> Pieces:
    fits = [Fit(degree, within, False, "least squares")]
    return fitted(np.zeros(len(ts), np.int64), ts, v[:, np.newaxis], fits, every)


def instants(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 1_790_000_000 * SECOND + np.cumsum(rng.integers(1, 2 * SECOND, n))


@pytest.mark.parametrize("degree", range(6))
def test_a_polynomial_is_one_piece(degree: int) -> None:
    ts = instants(500, degree)
    x = (ts - ts[0]) / SECOND
    c = np.random.default_rng(degree).normal(size=degree + 1) / 100.0 ** np.arange(degree + 1)
    v = np.polynomial.polynomial.polyval(x, c)
    pieces = fit_one(ts, v, degree, 1e-6 * np.abs(v).max())
    assert len(pieces) == 1
    assert pieces.coefficients[0][0] == pytest.approx(c, rel=1e-6)


@pytest.mark.parametrize("degree", range(6))
def test_where_they_honour_the_bound_they_are_least_squares(degree: int) -> None:
    ts = instants(300, degree)
    v = np.random.default_rng(degree).normal(size=300)
    pieces = fit_one(ts, v, degree, 10.0)
    assert len(pieces) == 1
    x = (ts - ts.mean()) / np.ptp(ts)
    expected = np.polynomial.polynomial.polyval(x, np.polynomial.polynomial.polyfit(x, v, degree))
    found = value_at(np.repeat(pieces.coefficients[0], 300, axis=0), pieces.start, ts)
    assert found == pytest.approx(expected, abs=1e-9)


def _smallest_error(x: Floats, v: Floats, degree: int) -> float:
    """Of the best polynomial: the largest error levelled at degree + 2 of the points."""
    basis = np.vander(x, degree + 1, increasing=True)
    worst = 0.0
    for chosen in combinations(range(len(x)), degree + 2):
        rows = list(chosen)
        signs = (-1.0) ** np.arange(degree + 2)
        solved = np.linalg.solve(np.column_stack([basis[rows], signs]), v[rows])
        worst = max(worst, abs(solved[-1]))
    return worst


@pytest.mark.parametrize("seed", range(40))
def test_pieces_are_as_long_as_any_polynomial_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    degree = int(rng.integers(0, 4))
    n = 13
    ts, v = np.cumsum(rng.integers(1000, SECOND, n)), np.cumsum(rng.normal(size=n))
    within = float(rng.choice([0.2, 0.5, 1.0]))
    pieces = fit_one(ts, v, degree, within)
    begin = 0
    for row, tuples in zip(pieces.row, pieces.tuples, strict=True):
        assert row == begin
        end = begin + int(tuples)
        if end < n and end - begin >= degree + 1:
            x = (ts[begin : end + 1] - ts[begin]) / SECOND
            assert _smallest_error(x, v[begin : end + 1], degree) > within * (1 - 1e-9)
        elif end < n:
            raise AssertionError("fewer points than a polynomial has coefficients")
        begin = end


@pytest.mark.parametrize("within", [1.0, 10.0])
def test_a_constant_ends_where_a_mid_range_does(within: float) -> None:
    ts, v = instants(50_000, 1), np.cumsum(np.random.default_rng(1).normal(size=50_000))
    other = fitted(np.zeros(50_000, np.int64), ts, v[:, np.newaxis], [Fit(0, within)], LONG)
    assert fit_one(ts, v, 0, within).start.tolist() == other.start.tolist()


@pytest.mark.parametrize("degree", [2, 3, 5])
def test_a_higher_degree_needs_fewer_pieces(degree: int) -> None:
    ts, v = instants(50_000, 2), np.cumsum(np.random.default_rng(2).normal(size=50_000))
    assert len(fit_one(ts, v, degree, 2.0)) < 0.9 * len(fit_one(ts, v, degree - 1, 2.0))


def test_crowded_points_and_one_far_off() -> None:
    """A thousand within a millisecond, one an hour later."""
    ts = np.append(np.arange(1000), 3600 * SECOND)
    v = np.append(np.random.default_rng(0).normal(size=1000), 5.0)
    key = np.zeros(1001, np.int64)
    fits = [Fit(5, 4.0)]
    pieces = fitted(key, ts, v[:, np.newaxis], fits, LONG)
    assert len(pieces) == 1
    assert all_within(pieces, key, ts, v[:, np.newaxis], fits)
