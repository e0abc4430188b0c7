"""Integrals of square roots of quadratics in closed form, against quadrature to thirty digits."""

from __future__ import annotations

from fractions import Fraction
from math import asinh, pi, sqrt
from random import Random

import numpy as np
import pytest
from root_oracle import root_integral

from thalweg.models.root_integrals import root_integrals

Quadratic = list[float]


def integral(quadratic: Quadratic, until: float) -> float:
    return float(root_integrals(np.array([quadratic]), np.array([until]))[0])


def passing(rng: Random, miss: float) -> Quadratic:
    """The squared distance of two objects in straight lines that miss each other by so much."""
    seconds, speed = rng.uniform(-50, 50), 10 ** rng.uniform(-3, 3)
    return [(speed * seconds) ** 2 + miss**2, -2 * speed**2 * seconds, speed**2]


def any_sign(rng: Random) -> Quadratic:
    return [rng.uniform(-9, 9) for _ in range(3)]


SHAPES = {
    "passing": lambda rng: passing(rng, rng.uniform(0, 9)),
    "passing close": lambda rng: passing(rng, 10 ** rng.uniform(-12, -2)),
    "meeting": lambda rng: passing(rng, 0.0),
    "side by side": lambda rng: [rng.uniform(1, 9), 0.0, 10 ** rng.uniform(-30, -8)],
    "a line": lambda rng: [*any_sign(rng)[:2], 0.0],
    "nearly a line": lambda rng: [*any_sign(rng)[:2], rng.choice((-1, 1)) * 1e-9],
    "constant": lambda rng: [rng.uniform(-1, 9), 0.0, 0.0],
    "of any sign": any_sign,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_integrals_are_those_of_quadrature(shape: str) -> None:
    rng = Random(shape)
    for _ in range(60):
        quadratic, until = SHAPES[shape](rng), rng.choice((-1, 1)) * 10 ** rng.uniform(-2, 2)
        ends = sorted((Fraction(0), Fraction(until)))
        wanted = float(root_integral([Fraction(c) for c in quadratic], *ends))
        size = abs(until) * sqrt(max(map(abs, quadratic))) * max(1, abs(until))
        got = integral(quadratic, until) * (1 if until > 0 else -1)
        assert got == pytest.approx(wanted, rel=2e-13, abs=1e-15 * size), (quadratic, until)


def test_quadrature_knows_closed_forms() -> None:
    """The oracle itself: a passing object, a line, half a circle."""
    cases = [
        ((34, -10, 1), (0, 10), 5 * sqrt(34) + 9 * asinh(5 / 3)),
        ((2, -1, 0), (0, 10), 2 / 3 * 2**1.5),
        ((4, 0, -1), (-3, 10), 2 * pi),
    ]
    for curve, ends, wanted in cases:
        found = root_integral([Fraction(c) for c in curve], *map(Fraction, ends))
        assert float(found) == pytest.approx(wanted, rel=1e-15)


def test_below_zero_a_root_is_zero() -> None:
    assert integral([-1.0, 0.0, 0.0], 5.0) == 0.0
    assert integral([-1.0, 0.0, -1.0], 5.0) == 0.0
    assert integral([0.0, 0.0, 0.0], 5.0) == 0.0
    assert integral([0.0, 2.0, -1.0], 2.0) == pytest.approx(pi / 2)  # half a circle
    assert integral([-1e-17, 0.0, 1.0], 1.0) == pytest.approx(0.5, rel=1e-15)


def test_an_integral_depends_on_its_row_alone() -> None:
    """To the bit, wherever the row stands: on it rests that cuts leave no trace."""
    rng = Random(5)
    rows = np.array([SHAPES[rng.choice(list(SHAPES))](rng) for _ in range(101)])
    until = np.array([rng.uniform(0, 50) for _ in range(101)])
    whole = root_integrals(rows, until)
    for i in range(101):
        assert root_integrals(rows[i : i + 1], until[i : i + 1])[0] == whole[i]
    back = np.ascontiguousarray(rows[::-1]), np.ascontiguousarray(until[::-1])
    assert (root_integrals(*back)[::-1] == whole).all()
