"""Real roots of many polynomials, each within bounds of its own, by compiled loops.

Degrees 1 and 2 have closed forms. Above, the roots of each derivative part the range into pieces on
which the next lower one is monotone, so that every root is bracketed. A root at which the sign does
not change is found where the value there is no larger than what rounding leaves of zero.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thalweg.instants import Ints
from thalweg.models.polynomials import Floats

_EPSILON = 2.0**-52
_STEPS = 200


def real_roots(coefficients: Floats, low: Floats, high: Floats) -> tuple[Floats, Ints]:
    """The distinct roots within [low, high], ascending, and how many of each row are such. A
    polynomial that is zero everywhere has none here."""
    found = np.empty((len(coefficients), max(coefficients.shape[1] - 1, 1)))
    counts = np.empty(len(coefficients), np.int64)
    _all_roots(np.ascontiguousarray(coefficients), low, high, found, counts)
    return found, counts


@njit(cache=True, nogil=True)
def _all_roots(coefficients, low, high, found, counts):  # type: ignore[no-untyped-def]
    size = coefficients.shape[1]
    if size <= 3:
        _closed_forms(coefficients, low, high, found, counts)
        return
    work = np.empty((size, size))
    parts = np.empty(size + 1)
    for row in range(coefficients.shape[0]):
        counts[row] = _roots(coefficients[row], low[row], high[row], found[row], work, parts)


@njit(cache=True, nogil=True, error_model="numpy")
def _closed_forms(coefficients, low, high, found, counts):  # type: ignore[no-untyped-def]
    """Degrees up to 2, without views of rows and with few branches, which cost more than the
    arithmetic: places behind the last root of a row are written too."""
    degree = coefficients.shape[1] - 1
    if degree == 0:
        counts[:] = 0
    elif degree == 1:
        for row in range(coefficients.shape[0]):
            b = coefficients[row, 1]
            root = -coefficients[row, 0] / b
            found[row, 0] = root
            counts[row] = (b != 0.0) & (low[row] <= root) & (root <= high[row])
    else:
        for row in range(coefficients.shape[0]):
            count, first, second = _low_degree(
                coefficients[row, 0], coefficients[row, 1], coefficients[row, 2], low[row],
                high[row],
            )  # fmt: skip
            found[row, 0], found[row, 1], counts[row] = first, second, count


@njit(cache=True, nogil=True)
def _roots(c, low, high, out, work, parts):  # type: ignore[no-untyped-def]
    """Roots of one polynomial; `work` and `parts` are scratch."""
    degree = c.size - 1
    while degree > 0 and c[degree] == 0.0:
        degree -= 1
    if degree == 0 or not low <= high:
        return 0
    if degree > 2:
        return _bracketed(c, degree, low, high, out, work, parts)
    count, first, second = _low_degree(c[0], c[1], c[2] if degree == 2 else 0.0, low, high)
    if count > 0:
        out[0] = first
    if count > 1:
        out[1] = second
    return count


@njit(cache=True, nogil=True)
def _low_degree(c, b, a, low, high):  # type: ignore[no-untyped-def]
    """How many roots ax² + bx + c has within [low, high], and these. Both without cancellation; one
    where the discriminant is zero up to rounding."""
    if not low <= high or (a == 0.0 and b == 0.0):
        return 0, 0.0, 0.0
    if a == 0.0:
        first = -c / b
        return (1 if low <= first <= high else 0), first, first
    square, product = b * b, 4.0 * a * c
    discriminant = square - product
    if abs(discriminant) <= 4.0 * _EPSILON * (square + abs(product)):
        first = -b / (2.0 * a)
        return (1 if low <= first <= high else 0), first, first
    if discriminant < 0.0:
        return 0, 0.0, 0.0
    q = -0.5 * (b + np.copysign(np.sqrt(discriminant), b))
    first, second = min(q / a, c / q), max(q / a, c / q)
    has_first = (low <= first) & (first <= high)
    has_second = (low <= second) & (second <= high) & (first != second)
    return has_first + has_second, (first if has_first else second), second


@njit(cache=True, nogil=True)
def _horner(c, degree, x):  # type: ignore[no-untyped-def]
    found = c[degree]
    for i in range(degree - 1, -1, -1):
        found = found * x + c[i]
    return found


@njit(cache=True, nogil=True)
def _rounding(c, degree, x):  # type: ignore[no-untyped-def]
    """What rounding may leave of zero at x."""
    found = abs(c[degree])
    for i in range(degree - 1, -1, -1):
        found = found * abs(x) + abs(c[i])
    return found * _EPSILON * (2 * degree + 1)


@njit(cache=True, nogil=True)
def _bracketed(c, degree, low, high, out, work, parts):  # type: ignore[no-untyped-def]
    bound = 0.0
    for i in range(degree):
        bound = max(bound, abs(c[i] / c[degree]))
    bound += 1.0  # no root lies beyond (Cauchy)
    low, high = max(low, -bound), min(high, bound)
    if low > high:
        return 0
    for i in range(degree + 1):
        work[0, i] = c[i]
    for k in range(1, degree):
        for i in range(degree + 1 - k):
            work[k, i] = work[k - 1, i + 1] * (i + 1)
    linear = work[degree - 1]
    count = 0
    root = -linear[0] / linear[1]
    if low < root < high:
        parts[0] = root
        count = 1
    for k in range(degree - 2, -1, -1):
        count = _next_roots(work[k], degree - k, low, high, parts, count, out)
        for i in range(count):
            parts[i] = out[i]
    return count


@njit(cache=True, nogil=True)
def _next_roots(c, degree, low, high, parts, count, out):  # type: ignore[no-untyped-def]
    """Roots of a polynomial between (and at) those of its derivative."""
    found = 0
    left, at_left = low, _horner(c, degree, low)
    zero_left = abs(at_left) <= _rounding(c, degree, low)
    if zero_left:
        out[0] = low
        found = 1
    for i in range(count + 1):
        right = parts[i] if i < count else high
        at_right = _horner(c, degree, right)
        zero_right = abs(at_right) <= _rounding(c, degree, right)
        if zero_right:
            if found == 0 or right > out[found - 1]:
                out[found] = right
                found += 1
        elif not zero_left and (at_left < 0.0) != (at_right < 0.0):
            out[found] = _between(c, degree, left, right, at_left)
            found += 1
        left, at_left, zero_left = right, at_right, zero_right
        if found == degree:
            break
    return found


@njit(cache=True, nogil=True)
def _between(c, degree, left, right, at_left):  # type: ignore[no-untyped-def]
    """The root between two places of different signs: Newton's steps, halving where they leave."""
    x = 0.5 * (left + right)
    for _ in range(_STEPS):
        value, slope = c[degree], 0.0
        for i in range(degree - 1, -1, -1):
            slope = slope * x + value
            value = value * x + c[i]
        if value == 0.0:
            return x
        if (value < 0.0) == (at_left < 0.0):
            left = x
        else:
            right = x
        step = x - value / slope if slope != 0.0 else left
        if not left < step < right:
            step = 0.5 * (left + right)
        if abs(step - x) <= 2.0 * _EPSILON * abs(x) or step in (left, right):
            return step
        x = step
    return x
