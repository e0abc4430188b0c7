"""When polynomials are below, at or above zero, against the definition tick by tick."""

from __future__ import annotations

import random

import numpy as np
import pytest

from thalweg.instants import AFTER_TIME
from thalweg.models.comparisons import OPERATORS, solved
from thalweg.models.polynomials import SECOND, aligned, derivative, multiplied, value
from thalweg.models.roots import real_roots
from thalweg.models.spans import Both, Either, Not, Spans, combined, within

Span = tuple[int, int]
PLAIN = {
    "<": lambda v: v < 0, "<=": lambda v: v <= 0, "=": lambda v: v == 0,
    "<>": lambda v: v != 0, ">=": lambda v: v >= 0, ">": lambda v: v > 0,
}  # fmt: skip


def spans(coefficients: list[float], operator: str, since: int, until: int) -> list[Span]:
    """Of one polynomial about zero, within whole seconds, in µs."""
    found = solved(
        np.array([coefficients], float), np.zeros(1, np.int64),
        np.array([since * SECOND]), np.array([until * SECOND]), operator,
    )  # fmt: skip
    assert (found.row == 0).all()
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


S = SECOND


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("<", [(3 * S + 1, 10 * S)]),
        ("<=", [(3 * S, 10 * S)]),
        ("=", [(3 * S, 3 * S + 1)]),
        ("<>", [(0, 3 * S), (3 * S + 1, 10 * S)]),
        (">=", [(0, 3 * S + 1)]),
        (">", [(0, 3 * S)]),
    ],
)
def test_a_line_meets_a_threshold(operator: str, expected: list[Span]) -> None:
    """10 - 2t against 4 on [0, 10) (pulse #6)."""
    assert spans([6, -2], operator, 0, 10) == expected


def test_a_line_that_never_gets_there() -> None:
    assert spans([10 - 20, -2], ">", 0, 10) == []


@pytest.mark.parametrize(
    ("operator", "expected"), [("<=", [(5 * S, 5 * S + 1)]), ("<", []), (">=", [(0, 10 * S)])]
)
def test_a_curve_that_only_touches(operator: str, expected: list[Span]) -> None:
    """(t - 5)² against 0 (pulse #7)."""
    assert spans([25, -10, 1], operator, 0, 10) == expected


def test_two_moving_objects() -> None:
    """The row of figure 2.1 with A.x = 10, A.v = 2, B.v = 1, B.a = 1 (pulse #8): from
    3.7015621187 on."""
    assert spans([10, 1, -1], "<", 0, 10) == [(3_701_563, 10 * S)]
    assert spans([10, 1, -1], "=", 0, 10) == [(3_701_562, 3_701_563)]


@pytest.mark.parametrize("value", [0.0, 2.0, -2.0])
@pytest.mark.parametrize("operator", OPERATORS)
def test_constants_hold_always_or_never(value: float, operator: str) -> None:
    expected = [(S, 4 * S)] if PLAIN[operator](value) else []
    assert spans([value, 0, 0], operator, 1, 4) == expected


def test_without_an_end() -> None:
    """A model without a horizon holds until it is superseded."""
    found = solved(
        np.array([[-1e-6, 1e-12]]), np.array([10**15]), np.array([10**15]), np.array([AFTER_TIME]),
        ">",
    )  # fmt: skip
    assert found.start.tolist() == [10**15 + 10**12 + 1]
    assert found.end.tolist() == [AFTER_TIME]


def drawn(rng: random.Random) -> list[float]:
    """A polynomial whose roots are mostly within the range, some of them double."""
    degree = rng.randrange(0, 9)
    if rng.random() < 0.5:
        return [rng.uniform(-5, 5) for _ in range(degree + 1)]
    roots = [rng.uniform(-2, 6) for _ in range(degree)]
    if degree > 1 and rng.random() < 0.3:
        roots[1] = roots[0] = float(rng.randrange(0, 4))
    return np.polynomial.polynomial.polyfromroots(roots).tolist() if roots else [rng.uniform(-1, 1)]


def test_any_polynomial_at_any_instant() -> None:
    """Away from roots the sign of the value decides (pulse #10)."""
    rng = random.Random(5)
    since, until = -SECOND, 5 * SECOND
    for trial in range(600):
        coefficients = np.array([drawn(rng)])
        reference = np.array([rng.randrange(-SECOND, SECOND)])
        operator = rng.choice(list(OPERATORS))
        found = solved(coefficients, reference, np.array([since]), np.array([until]), operator)
        at = np.array([rng.randrange(since, until) for _ in range(170)])
        here = value(np.repeat(coefficients, len(at), 0), (at - reference) / SECOND)
        slopes = np.abs(
            value(np.repeat(derivative(coefficients), len(at), 0), (at - reference) / SECOND)
        )
        sure = np.abs(here) > 1e-9 + 3e-6 * slopes
        inside = ((at[:, None] >= found.start) & (at[:, None] < found.end)).any(axis=1)
        wanted = PLAIN[operator](here)
        assert (inside == wanted)[sure].all(), (trial, coefficients, operator)
        assert (found.start < found.end).all()
        assert (found.start[1:] > found.end[:-1]).all()


def test_roots_are_those_of_the_companion_matrix() -> None:
    rng = np.random.default_rng(2)
    for degree in range(1, 9):
        coefficients = rng.normal(size=(500, degree + 1))
        found, counts = real_roots(coefficients, np.full(500, -3.0), np.full(500, 4.0))
        for row in range(500):
            every = np.roots(coefficients[row, ::-1])
            real = np.sort(every[np.abs(every.imag) < 1e-9].real)
            real = real[(real >= -3) & (real <= 4)]
            assert found[row, : counts[row]] == pytest.approx(real, abs=1e-9 * 1e2)


def test_roots_are_within_the_tolerance() -> None:
    """1e-9 of the roots they were made from (well apart from each other)."""
    rng = np.random.default_rng(3)
    for degree in (1, 2, 3, 4, 5):
        wanted = np.sort(rng.uniform(0, 1, (300, degree)) + np.arange(degree) * 1.5, axis=1)
        coefficients = np.array([np.polynomial.polynomial.polyfromroots(r) for r in wanted])
        found, counts = real_roots(coefficients, np.full(300, -1.0), np.full(300, 20.0))
        assert (counts == degree).all()
        assert np.abs(found[:, :degree] - wanted).max() < 1e-9


def test_alignment() -> None:
    """1 + 2t + 3t² about 2 is 17 + 14t + 3t² (pulse #2)."""
    zero = np.zeros(1, np.int64)
    found = aligned(np.array([[1.0, 2.0, 3.0]]), zero, zero + 2 * SECOND)
    assert found.tolist() == [[17.0, 14.0, 3.0]]
    rng = np.random.default_rng(4)
    c, shift = rng.normal(size=(50, 6)), rng.integers(-3 * SECOND, 3 * SECOND, 50)
    at = rng.uniform(-2, 2, 50)
    moved = aligned(c, np.zeros(50, np.int64), shift)
    assert value(moved, at) == pytest.approx(value(c, at + shift / SECOND))


def test_products() -> None:
    found = multiplied(np.array([[1.0, 2.0]]), np.array([[3.0, 0.0, 1.0]]))
    assert found.tolist() == [[3.0, 6.0, 1.0, 2.0]]


def test_boolean_algebra_is_that_of_sets_of_instants() -> None:
    rng = random.Random(1)
    rows, end = 12, 40
    for _ in range(200):
        sets, plain = [], []
        for _ in range(3):
            cuts = [sorted(rng.sample(range(end + 1), 2 * rng.randrange(4))) for _ in range(rows)]
            pairs = [
                (r, a, b) for r, c in enumerate(cuts) for a, b in zip(c[::2], c[1::2], strict=True)
            ]
            columns = zip(*pairs, strict=True) if pairs else ([], [], [])
            sets.append(Spans(*(np.array(c, np.int64) for c in columns)))
            plain.append({(r, t) for r, a, b in pairs for t in range(a, b)})
        every = {(r, t) for r in range(rows) for t in range(5, end - 3)}
        universe = within(np.full(rows, 5), np.full(rows, end - 3))
        formula = Either(Both(0, Not(1)), Not(Either(2, Both(0, 1))))
        found = combined(formula, sets, universe)
        a, b, c = plain
        wanted = {
            p for p in every if (p in a and p not in b) or not (p in c or (p in a and p in b))
        }
        there = zip(found.row, found.start, found.end, strict=True)
        assert {(r, t) for r, x, y in there for t in range(x, y)} == wanted
        same = found.row[1:] == found.row[:-1]
        assert (found.start[1:] > found.end[:-1])[same].all(), "spans that touch are one"
