"""WITHIN 0: values that hold, and straight lines from tuple to tuple."""

from __future__ import annotations

import numpy as np
import pytest
from plain_fitting import all_within

from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import Pieces, fitted
from thalweg.models.polynomials import value_at

S = 1_000_000
CELL = 10 * S


def pieces(
    points: list[tuple[float, float]], degree: int, continues: bool = False, method: str = ""
) -> Pieces:
    ts = np.array([round(t * S) for t, _ in points], np.int64)
    values = np.array([[v] for _, v in points])
    fits = [Fit(degree, 0.0, False, method or None)]
    return fitted(np.zeros(len(ts), np.int64), ts, values, fits, CELL, np.array([continues]))


def lines(found: Pieces) -> list[tuple[float, float, float, float]]:
    """Start and end in seconds, value at the start, slope."""
    return [(s / S, e / S, *c) for s, e, c in
            zip(found.start, found.end, found.coefficients[0].tolist(), strict=True)]  # fmt: skip


def test_a_value_holds_until_the_next() -> None:
    found = pieces([(1, 5), (3, 7), (4, 7), (6, 2)], 0)
    assert [(s / S, e / S) for s, e in zip(found.start, found.end, strict=True)] == [
        (1, 3), (3, 6), (6, 10),
    ]  # fmt: skip
    assert found.coefficients[0][:, 0].tolist() == [5, 7, 2]


@pytest.mark.parametrize("method", ["", "swing", "hull", "least squares"])
def test_lines_lead_from_tuple_to_tuple(method: str) -> None:
    found = pieces([(1, 5), (3, 9), (4, 8)], 1, method=method)
    assert lines(found) == [(1, 3, 5, 2), (3, 10, 9, -1)]
    assert found.tuples.tolist() == [1, 2]


def test_the_first_line_reaches_back_to_the_start_of_the_cell() -> None:
    assert lines(pieces([(1, 5), (3, 9)], 1, continues=True)) == [(0, 10, 3, 2)]


def test_a_lone_tuple_is_a_constant() -> None:
    assert lines(pieces([(1, 5), (13, 9)], 1)) == [(1, 10, 5, 0), (10, 20, 9, 0)]


def test_a_line_does_not_lead_through_a_null() -> None:
    assert lines(pieces([(1, 5), (2, 6), (3, np.nan), (4, 9)], 1)) == [(1, 3, 5, 1), (4, 10, 9, 0)]


@pytest.mark.parametrize("seed", range(20))
def test_tuples_are_met_to_the_last_bit(seed: int) -> None:
    """Also where the line from a cell's start cannot; then it has a piece without tuples."""
    rng = np.random.default_rng(seed)
    n = 2000
    ts = np.cumsum(rng.integers(1, S, n))
    values = rng.normal(size=(n, 1)) * 10.0 ** rng.integers(-9, 9, (n, 1))
    key = np.sort(rng.integers(0, 30, n))
    ts = ts[np.lexsort((ts, key))]
    fits = [Fit(1, 0.0)]
    found = fitted(key, ts, values, fits, CELL, np.ones(30, np.bool_))
    assert all_within(found, key, ts, values, fits)
    assert found.tuples.sum() == n
    between = np.flatnonzero((found.tuples > 0) & ~found.reaches)
    following = found.row[between] + 1
    met = value_at(found.coefficients[0][between], found.start[between], ts[following])
    size = np.abs(values[following - 1, 0]) + np.abs(found.coefficients[0][between, 0])
    size += np.abs(values[following, 0])
    assert (np.abs(met - values[following, 0]) <= 1e-15 * size).all()
    empty = np.flatnonzero(found.tuples == 0)
    assert 0 < len(empty) < n / 10
    assert (found.start[empty] % CELL == 0).all()
    joint = value_at(found.coefficients[0][empty], found.start[empty], ts[found.row[empty]])
    expected = values[found.row[empty], 0]
    assert (np.abs(joint - expected) <= 1e-12 * np.abs(found.coefficients[0][empty, 0])).all()


def test_beside_a_line_that_cannot_be_joined_others_are_constant() -> None:
    rng = np.random.default_rng(0)
    ts = np.sort(rng.integers(0, 2000 * S, 4000))
    values = rng.normal(size=(4000, 2)) * 10.0 ** rng.integers(-9, 9, (4000, 1))
    found = fitted(np.zeros(4000, np.int64), ts, values, [Fit(1, 0.0), Fit(1, 1e9)], CELL)
    empty = found.tuples == 0
    assert empty.any()
    assert (found.coefficients[1][empty, 1] == 0).all()
    assert (found.coefficients[1][empty, 0] == values[found.row[empty], 1]).all()


def test_beside_a_constant_both_are_cut_at_every_tuple() -> None:
    ts = np.arange(5) * S
    values = np.stack([np.full(5, 3.0), np.array([1.0, 2.0, 4.0, 3.0, 5.0])], axis=1)
    fits = [Fit(0, 1.0), Fit(1, 0.0)]
    found = fitted(np.zeros(5, np.int64), ts, values, fits, CELL)
    assert (found.start // S).tolist() == [0, 1, 2, 3]
    assert found.coefficients[0].tolist() == [[3.0]] * 4
    assert found.coefficients[1].tolist() == [[1, 1], [2, 2], [4, -1], [3, 2]]


def test_a_last_tuple_cut_off_continues_the_line_before() -> None:
    values = np.array([[3.0, 1.0], [3.0, 2.0], [9.0, 4.0]])
    fits = [Fit(0, 1.0), Fit(1, 0.0)]
    found = fitted(np.zeros(3, np.int64), np.arange(3) * S, values, fits, CELL)
    assert found.coefficients[1].tolist() == [[1, 1], [2, 2], [4, 2]]


def test_higher_degrees_meet_what_they_can() -> None:
    rng = np.random.default_rng(0)
    ts, values = np.arange(100) * S, np.repeat(rng.normal(size=10), 10)[:, np.newaxis]
    fits = [Fit(2, 0.0)]
    found = fitted(np.zeros(100, np.int64), ts, values, fits, 1000 * S)
    assert all_within(found, np.zeros(100, np.int64), ts, values, fits)
    assert len(found) == 10
