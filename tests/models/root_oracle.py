"""Integrals of square roots of polynomials by quadrature, to thirty digits.

Tanh-sinh in decimal arithmetic, between zeros and vertices, near which a root bends most. Nothing
of the closed form that the engine uses is in it; only where a quadratic is its lowest and where it
is zero is known. A root of what is below zero is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise

DIGITS = 60
STEP = Decimal(1) / 12
REACH = 50
HALF_PI = Decimal("1.570796326794896619231321691639751442098584699687552910487472")
Node = tuple[Decimal, Decimal]
"""A share of the span, from its nearer end, and its weight."""


@cache
def _nodes() -> tuple[Node, ...]:
    """Those of one half; the other is its mirror, the first one is the middle."""
    found = []
    for k in range(REACH + 1):
        x = STEP * k
        sinh, cosh = (x.exp() - (-x).exp()) / 2, (x.exp() + (-x).exp()) / 2
        above = (2 * HALF_PI * sinh).exp()
        found.append((1 / (1 + above), STEP * HALF_PI * cosh * 4 * above / (1 + above) ** 2))
    return tuple(found)


def root_integral(curve: Sequence[Fraction], low: Fraction, high: Fraction) -> Fraction:
    """Of sqrt(c0 + c1 s + c2 s^2) over [low, high], in seconds."""
    with localcontext() as context:
        context.prec = DIGITS
        c = [_decimal(x) for x in (*curve, Fraction(0), Fraction(0))[:3]]
        ends = [_decimal(low), _decimal(high)]
        marks = sorted({*ends, *(m for m in _marks(c) if ends[0] < m < ends[1])})
        return Fraction(sum((_between(c, a, b) for a, b in pairwise(marks)), Decimal(0)))


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _marks(c: Sequence[Decimal]) -> list[Decimal]:
    """Where the quadratic is zero, and its vertex."""
    if not c[2]:
        return [-c[0] / c[1]] if c[1] else []
    vertex, square = -c[1] / (2 * c[2]), c[1] * c[1] - 4 * c[0] * c[2]
    if square <= 0:
        return [vertex]
    apart = square.sqrt() / (2 * abs(c[2]))
    return [vertex - apart, vertex, vertex + apart]


def _between(c: Sequence[Decimal], a: Decimal, b: Decimal) -> Decimal:
    def value(x: Decimal) -> Decimal:
        return max((c[2] * x + c[1]) * x + c[0], Decimal(0)).sqrt()

    total = Decimal(0)
    for number, (share, weight) in enumerate(_nodes()):
        aside = (b - a) * share
        total += weight * (value(a + aside) + (value(b - aside) if number else 0))
    return total * (b - a) / 2
