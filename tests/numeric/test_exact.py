"""Exact sums against fractions: any order, any removal, rounded once."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from thalweg.numeric import exact


def _changes(rng: random.Random) -> tuple[list[float], list[int], list[float]]:
    """Values coming and going, and the right sum after each change."""
    low = rng.randint(-40, 10)
    high = low + rng.randint(0, 90)
    live: list[float] = []
    values, weights, sums = [], [], []
    for _ in range(rng.randint(1, 30)):
        if live and rng.random() < 0.4:
            value, weight = live.pop(rng.randrange(len(live))), -1
        else:
            value, weight = rng.choice([1, -1]) * rng.random() * 2.0 ** rng.randint(low, high), 1
            live.append(value)
        values.append(value)
        weights.append(weight)
        sums.append(float(sum((Fraction(v) for v in live), Fraction(0))))
    return values, weights, sums


def _run(kernel: object, values: list[float], weights: list[int]) -> tuple[list[float], float]:
    data, weight = np.array(values), np.array(weights, np.int64)
    order = np.arange(len(values))[::-1].copy()
    backwards = data[::-1].copy()
    low, high = exact.double_limb_range(backwards, order, weight)
    limbs = np.zeros((1, high - low + 2), np.int64)
    special = np.zeros((1, 3), np.int64)
    totals = np.zeros(len(values))
    run = np.arange(len(values))
    group = np.zeros(len(values), np.int64)
    kernel(backwards, order, weight, run, group, limbs, special, low, totals)  # type: ignore[operator]
    return totals.tolist(), float(exact.to_doubles(limbs, special, low)[0])


@pytest.mark.parametrize("seed", range(8))
def test_running_sums_are_the_exact_sums_rounded_once(seed: int) -> None:
    rng = random.Random(seed)
    short = 0
    for _ in range(150):
        values, weights, sums = _changes(rng)
        totals, stored = _run(exact.running_doubles, values, weights)
        assert totals == sums
        assert stored == sums[-1]
        everything = np.arange(len(values))
        low, high = exact.double_limb_range(np.array(values), everything, np.ones_like(everything))
        if high - low + 2 <= exact.MOST_LIMBS:
            short += 1
            assert _run(exact.running_doubles_short, values, weights) == (totals, stored)
    assert short > 20, "the 192-bit path must be exercised"


def test_extremes_of_the_double_range_cancel() -> None:
    tiny, huge = 5e-324, 1.7976931348623157e308
    values = [huge, tiny, huge, huge, huge]
    totals, stored = _run(exact.running_doubles, values, [1, 1, -1, 1, -1])
    assert totals == [huge, huge, tiny, huge, tiny]
    assert stored == tiny


def test_integer_sums_know_their_overflow() -> None:
    top = 2**63 - 1
    limbs = np.zeros((1, 2), np.int64)
    out = np.zeros((3, 2), np.int64)
    values = np.array([top, 1, 1], np.int64)
    weight = np.array([1, 1, -1], np.int64)
    every = np.arange(3)
    exact.running_integers(values, every, weight, every, np.zeros(3, np.int64), limbs, out)
    sums, overflow = exact.to_integers(out)
    assert overflow.tolist() == [False, True, False]
    assert sums[[0, 2]].tolist() == [top, top]


def test_normalized_limbs_mean_the_same() -> None:
    limbs = np.array([[-5, 2**40, 3], [2**35, -(2**33), 0]], np.int64)
    none = np.zeros((2, 3), np.int64)
    before = exact.to_doubles(limbs, none, exact.INTEGER_LIMB)
    again = exact.normalized(limbs)
    assert exact.to_doubles(again, none, exact.INTEGER_LIMB).tolist() == before.tolist()
    assert (again[:, :-1] >= 0).all()


@pytest.mark.parametrize("value", [-1.0, -1e300, -5e-324, -0.1, 7.25])
def test_the_sign_of_a_sum_needs_no_more_limbs_each_time(value: float) -> None:
    """State is read, changed and written each epoch: its width follows the numbers alone."""
    one, none = np.array([value]), np.zeros(1, np.int64)
    low, high = exact.double_limb_range(one, none, np.ones(1, np.int8))
    limbs = np.zeros((1, high - low + 2), np.int64)
    widths, totals = [], np.zeros(1)
    for _ in range(40):
        wider = np.concatenate([limbs, np.zeros((1, 1), np.int64)], axis=1)
        exact.running_doubles(
            one,
            none,
            np.ones(1, np.int8),
            none,
            none,
            wider,
            np.zeros((1, 3), np.int64),
            low,
            totals,
        )
        stored = exact.normalized(wider)
        limbs = stored[:, : int(np.flatnonzero(stored.any(0)).max()) + 1]
        widths.append(limbs.shape[1])
    assert max(widths) <= widths[0] + 1
    assert totals[0] == exact.to_doubles(limbs, np.zeros((1, 3), np.int64), low)[0]
    assert totals[0] == float(sum([Fraction(value)] * 40))
