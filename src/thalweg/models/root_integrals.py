"""Integrals of square roots of quadratics, in closed form: a compiled loop.

With r and s the roots at both ends of a span of length d, m = (r + s) / 2, e = (s - r) / 2 and
u = sqrt(c2) d / 2m, the integral over it is d/2 (m P(u) + e^2/m Q(u)), where M = (1 - u^2)
artanh(u) / u, P = 1 + M and Q = (1 - M) / u^2. Nothing cancels in this form of the primitive with
asinh: all terms are positive, lines are u = 0, and a distance that reaches zero is u = 1. Where
the quadratic bends down u is imaginary, and artanh becomes arctan. Where it is below zero its root
counts as 0, as in samples.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_SMALL = 0.1
_TERMS = 18
"""Of the series of Q, enough below `_SMALL`."""


@njit(cache=True, nogil=True)
def root_integrals(coefficients, seconds):  # type: ignore[no-untyped-def]
    """The integrals of sqrt(c0 + c1 t + c2 t^2) from 0 to so many seconds, row by row. Each depends
    on its own row alone, to the bit."""
    found = np.empty(len(seconds))
    for i in range(len(seconds)):
        c0, c1, c2 = coefficients[i, 0], coefficients[i, 1], coefficients[i, 2]
        if seconds[i] < 0.0:
            found[i] = -_integral(c0, -c1, c2, -seconds[i])
        else:
            found[i] = _integral(c0, c1, c2, seconds[i])
    return found


@njit(cache=True, nogil=True)
def _integral(c0, c1, c2, until):  # type: ignore[no-untyped-def]
    """Over [0, until], piece by piece between the zeros of the quadratic."""
    first, second = _zeros(c0, c1, c2)
    total, since, value = 0.0, 0.0, c0
    for zero in (first, second):
        if since < zero < until:
            total += _piece(value, 0.0, c2, zero - since)
            since, value = zero, 0.0
    return total + _piece(value, (c2 * until + c1) * until + c0, c2, until - since)


@njit(cache=True, nogil=True)
def _zeros(c0, c1, c2):  # type: ignore[no-untyped-def]
    """Where it changes its sign, ascending; NaN for none."""
    if c2 == 0.0:
        return (-c0 / c1 if c1 != 0.0 else math.nan), math.nan
    square = c1 * c1 - 4.0 * c0 * c2
    if not square > 0.0:
        return math.nan, math.nan
    far = -0.5 * (c1 + math.copysign(math.sqrt(square), c1))
    a, b = far / c2, c0 / far
    return min(a, b), max(a, b)


@njit(cache=True, nogil=True)
def _piece(low, high, c2, length):  # type: ignore[no-untyped-def]
    """Over a span in which the quadratic has one sign, with its values at both ends."""
    if low == 0.0 and high == 0.0 and c2 < 0.0:  # half an ellipse
        return math.sqrt(-c2) * length * length * math.pi / 8.0
    if low <= 0.0 and high <= 0.0:
        return 0.0
    r, s = math.sqrt(max(low, 0.0)), math.sqrt(max(high, 0.0))
    m, e = (r + s) / 2.0, (s - r) / 2.0
    p, q = _weights(c2 * (length / (2.0 * m)) ** 2)
    return length / 2.0 * (m * p + e * (e / m) * q)


@njit(cache=True, nogil=True)
def _weights(square):  # type: ignore[no-untyped-def]
    """P and Q of u^2, which is negative where u is imaginary."""
    if square >= 1.0:
        return 1.0, 1.0
    if abs(square) < _SMALL:
        q = 0.0
        for n in range(_TERMS, -1, -1):
            q = q * square + 2.0 / ((2 * n + 1) * (2 * n + 3))
        return 2.0 - square * q, q
    u = math.sqrt(abs(square))
    angle = 0.5 * math.log1p(2.0 * u / (1.0 - u)) if square > 0.0 else math.atan(u)
    m = (1.0 - square) * angle / u
    return 1.0 + m, (1.0 - m) / square
