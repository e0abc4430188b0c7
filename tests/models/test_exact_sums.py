"""Exact sums of polynomials, against sums of fractions."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from thalweg.models import exact_sums
from thalweg.models.polynomials import SECOND

Polynomial = list[Fraction]


def moved(polynomial: Polynomial, by: int) -> Polynomial:
    """In seconds, about an instant that is so many microseconds later."""
    shift = Fraction(by, SECOND)
    n = len(polynomial)
    return [
        sum((comb(i, j) * polynomial[i] * shift ** (i - j) for i in range(j, n)), Fraction(0))
        for j in range(n)
    ]


def run_sums(
    rows: list[tuple[list[float], int, int, int]], constants: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One group of (coefficients, instant, moved by, weight) in the order of time; also what is
    left, and about which instant."""
    coefficients = np.array([r[0] for r in rows])
    instants, run = np.unique([r[1] for r in rows], return_inverse=True)
    shift = np.array([r[2] for r in rows])
    low, high = exact_sums.limb_range(coefficients, shift)
    degree = coefficients.shape[1] - 1
    width = high - low + 1 + exact_sums.headroom(degree, int(instants[-1] - instants[0]))
    digits = np.zeros((1, degree + 1, width), np.uint64)
    out = np.empty((len(instants), degree + 1))
    exact_sums.running_sums(
        coefficients, shift, constants, np.arange(len(rows)), np.array([r[3] for r in rows]),
        run, np.zeros(len(instants), np.int64), instants, digits, instants[:1].copy(), low, out,
    )  # fmt: skip
    return out, digits, instants


def drawn(rng: random.Random, degree: int, spread: int) -> list[float]:
    return [rng.uniform(-1, 1) * 10.0 ** rng.randint(-spread, spread) for _ in range(degree + 1)]


@pytest.mark.parametrize("degree", range(9))
@pytest.mark.parametrize("constants", [True, False])
def test_sums_are_those_of_fractions_rounded_once(degree: int, constants: bool) -> None:
    rng = random.Random(degree)
    for spread in (0, 4, 40):
        rows = []
        at = 1_700_000_000_000_000
        for _ in range(30):
            at += rng.choice([0, 1, 999_999, 10_000_000, 86_400_000_000])
            by = rng.choice([0, 0, 5, 3_000_001, -7_000_000, 10**12])
            rows.append((drawn(rng, degree, spread), at, by, rng.choice([1, 1, -1, 2, 0])))
        out, _, instants = run_sums(rows, constants)
        total = [Fraction(0)] * (degree + 1)
        before = int(instants[0])
        for k, instant in enumerate(instants.tolist()):
            total = moved(total, instant - before)
            before = instant
            for coefficients, ts, by, weight in rows:
                if ts == instant:
                    own = moved([Fraction(c) for c in coefficients], by)
                    own[0] = own[0] if constants else Fraction(0)
                    total = [a + weight * b for a, b in zip(total, own, strict=True)]
            assert out[k].tolist() == [float(c) for c in total]


def test_what_is_taken_away_leaves_nothing() -> None:
    """In any order, after any time."""
    rng = random.Random(3)
    at = 1_700_000_000_000_000
    there = [(drawn(rng, 3, 12), rng.randrange(10**9)) for _ in range(20)]
    rows = [(c, at + s, s, 1) for c, s in sorted(there, key=lambda r: r[1])]
    end = at + 10**12
    rows += [(c, end, 10**12, -1) for c, _ in rng.sample(there, 20)]
    out, digits, _ = run_sums(rows, True)
    assert out[-1].tolist() == [0.0] * 4
    assert not digits.any()


def test_limbs_and_digits() -> None:
    rng = np.random.default_rng(1)
    limbs = rng.integers(-(2**32) + 1, 2**32, (4, 3, 6))
    limbs[..., -1] = rng.integers(-100, 100, (4, 3))
    back = exact_sums.to_limbs(exact_sums.to_digits(limbs))
    weights = [1 << (32 * k) for k in range(6)]
    for g in range(4):
        for j in range(3):
            number = sum(int(v) * w for v, w in zip(limbs[g, j], weights, strict=True))
            assert number == sum(int(v) * w for v, w in zip(back[g, j], weights, strict=True))
            assert (back[g, j] * np.sign(number) >= 0).all()
