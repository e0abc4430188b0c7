"""Polynomials of any degree: least squares where they honour the bound, else the evenest.

The longest piece is found by doubling and bisection; every trial is also followed up to the first
point it does not honour. Least squares are solved in polynomials orthogonal over the very points
(Forsythe), so that no power of time is summed. Where they break the bound the smallest greatest
error is approached by exchanging points (Remez): the error at degree + 2 points, levelled, tells
that no polynomial honours the bound as soon as it exceeds it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thalweg.models.fitting.bounds import constant, first_outside
from thalweg.models.polynomials import SECOND

_EXCHANGES = 24
_SINGULAR = 1e-9
_TRIAL, _MATRIX, SMALL = 6, 7, 16
"""Rows of the small scratch, and how many rows and columns it has."""


@njit(cache=True, nogil=True)
def least_squares(  # type: ignore[no-untyped-def]
    ts, value, upper, lower, slack, first, limit, reference, c, work, small
):
    """Write the polynomial of a beginning of points [first, limit) that it honours; returns its
    end. `work` is scratch of a row of points each, `small` of a few numbers."""
    constant(value[first], c)
    if not first_outside(ts, upper, lower, slack, first, first + 1, reference, c) > first:
        return first + 1
    good, bad = first + 1, limit + 1
    trial = min(first + max(c.size, 2), limit)
    while trial < bad and trial > good:
        reach = _try(
            ts, value, upper, lower, slack, first, trial, limit, reference, c, work, small
        )  # fmt: skip
        if reach >= trial:
            good = reach
        else:
            bad = trial
        trial = min(good + (good - first), limit) if bad > limit else good + (bad - good) // 2
    _prefer_squares(ts, value, upper, lower, slack, first, good, reference, c, work, small)
    return good


@njit(cache=True, nogil=True)
def _try(  # type: ignore[no-untyped-def]
    ts, value, upper, lower, slack, first, end, limit, reference, c, work, small
):
    """Fit points [first, end); writes the polynomial if it honours them, and returns the end of the
    points it honours, or `first`."""
    trial = small[_TRIAL, : c.size]
    reach = first
    for size in range(c.size, 0, -1):  # lower degrees where rounding, not the bound, is in the way
        trial[:] = 0.0
        part = trial[:size]
        _squares(ts, value, first, end, reference, part, work, small)
        reach = first_outside(ts, upper, lower, slack, first, limit, reference, trial)
        if reach >= end or end - first <= size:
            break
        if not _evenest(ts, upper, lower, slack, value[first], first, end, reference, part, small):
            break
        reach = first_outside(ts, upper, lower, slack, first, limit, reference, trial)
        if reach >= end:
            break
    if reach < end:
        return first
    c[:] = trial
    return reach


@njit(cache=True, nogil=True)
def _prefer_squares(  # type: ignore[no-untyped-def]
    ts, value, upper, lower, slack, first, end, reference, c, work, small
):
    """Replace the polynomial of points [first, end) by their least squares where honoured."""
    trial = small[_TRIAL, : c.size]
    _squares(ts, value, first, end, reference, trial, work, small)
    if first_outside(ts, upper, lower, slack, first, end, reference, trial) == end:
        c[:] = trial


@njit(cache=True, nogil=True)
def _squares(ts, value, first, end, reference, c, work, small):  # type: ignore[no-untyped-def]
    """Write the polynomial of least squares through points [first, end)."""
    n = end - first
    top = min(c.size, n) - 1
    base = value[first]
    middle = 0.5 * (ts[end - 1] - ts[first])
    scale = 1.0 / middle if n > 1 else 0.0
    now, before, rest = work[0], work[1], work[2]
    now_c, before_c, next_c, sum_c = small[0], small[1], small[2], small[3]
    now_c[:] = 0.0
    before_c[:] = 0.0
    sum_c[:] = 0.0
    now_c[0] = 1.0
    for i in range(n):
        now[i], before[i] = 1.0, 0.0
        rest[i] = value[first + i] - base
    norm_before = 1.0
    for k in range(top + 1):
        norm = moment = product = 0.0
        for i in range(n):
            square = now[i] * now[i]
            norm += square
            moment += ((ts[first + i] - ts[first]) - middle) * scale * square
            product += now[i] * rest[i]
        if not norm > 0.0:
            break
        factor, alpha = product / norm, moment / norm
        beta = norm / norm_before if k > 0 else 0.0
        for j in range(k + 1):
            sum_c[j] += factor * now_c[j]
        if k == top:
            break
        for i in range(n):
            s = ((ts[first + i] - ts[first]) - middle) * scale
            rest[i] -= factor * now[i]
            now[i], before[i] = (s - alpha) * now[i] - beta * before[i], now[i]
        for j in range(k + 2):
            next_c[j] = (now_c[j - 1] if j > 0 else 0.0) - alpha * now_c[j] - beta * before_c[j]
        for j in range(k + 2):
            before_c[j], now_c[j] = now_c[j], next_c[j]
        norm_before = norm
    _told(sum_c, top, (reference - ts[first]) - middle, scale, base, c)


@njit(cache=True, nogil=True)
def _told(scaled, top, shift, scale, base, c):  # type: ignore[no-untyped-def]
    """Write in seconds since the reference a polynomial in (µs - shift') x scale, above a base."""
    c[:] = 0.0
    at, per = shift * scale, SECOND * scale
    for k in range(top, -1, -1):  # Horner's rule, with polynomials: c x (at + per x) + scaled[k]
        for j in range(top - k, 0, -1):
            c[j] = c[j] * at + c[j - 1] * per
        c[0] = c[0] * at + scaled[k]
    c[0] += base


@njit(cache=True, nogil=True)
def _evenest(  # type: ignore[no-untyped-def]
    ts, upper, lower, slack, base, first, end, reference, c, small
):
    """Write a polynomial whose greatest error, as a share of the bounds of points [first, end), is
    below one or nearly the smallest. False if no polynomial is within all bounds; if that cannot be
    told for rounding, nothing is written."""
    size = c.size
    points, scaled = small[4], small[5]
    middle = 0.5 * (ts[end - 1] - ts[first])
    scale = 1.0 / middle
    _spread(first, end, size + 1, points)
    for _ in range(_EXCHANGES):
        error = _level(ts, upper, lower, slack, first, middle, scale, base, size, small)
        if np.isnan(error):
            return True
        if abs(error) > 1.0 + 1e-9:
            return False
        worst, side = -1, 0.0
        most = 0.0
        for i in range(first, end):
            s = ((ts[i] - ts[first]) - middle) * scale
            found = scaled[size - 1]
            for k in range(size - 2, -1, -1):
                found = found * s + scaled[k]
            found += base
            over, under = found - upper[i] - slack, lower[i] - slack - found
            if over > most:
                worst, side, most = i, -1.0, over
            if under > most:
                worst, side, most = i, 1.0, under
        if worst < 0:
            break
        if not _exchange(points, size + 1, worst, side, error):
            break
    _told(scaled, size - 1, (reference - ts[first]) - middle, scale, base, c)
    return True


@njit(cache=True, nogil=True)
def _spread(first, end, count, points):  # type: ignore[no-untyped-def]
    """Write some distinct points of [first, end), denser towards both ends."""
    n = end - first
    for k in range(count):
        share = 0.5 - 0.5 * np.cos(np.pi * k / (count - 1))
        points[k] = max(first + k, first + np.floor(share * (n - 1) + 0.5))
        if k > 0:
            points[k] = max(points[k], points[k - 1] + 1)
    for k in range(count - 1, -1, -1):
        points[k] = min(points[k], end - count + k)


@njit(cache=True, nogil=True)
def _level(ts, upper, lower, slack, first, middle, scale, base, size, small):  # type: ignore[no-untyped-def]
    """Write the polynomial whose error at the chosen points is the same share of the bound, on
    alternating sides; returns that share, positive where the first point is above; NaN where points
    are too crowded to tell."""
    points, scaled, rows = small[4], small[5], small[_MATRIX:]
    n = size + 1
    widest = 0.0
    for r in range(n):
        i = int(points[r])
        s = ((ts[i] - ts[first]) - middle) * scale
        rows[r, 0] = 1.0
        for k in range(1, size):
            rows[r, k] = rows[r, k - 1] * s
        width = 0.5 * (upper[i] - lower[i]) + slack
        widest = max(widest, width)
        rows[r, size] = width if r % 2 == 0 else -width
        rows[r, n] = (0.5 * upper[i] + 0.5 * lower[i]) - base
    if not widest > 0.0:
        return np.nan
    for r in range(n):
        rows[r, size] /= widest
    if not _solve(rows, n) > _SINGULAR:
        return np.nan
    for k in range(size):
        scaled[k] = rows[k, n]
    return rows[size, n] / widest


@njit(cache=True, nogil=True)
def _solve(rows, n):  # type: ignore[no-untyped-def]
    """Solve n equations in place, with pivots: the last column becomes the solution. Returns the
    smallest pivot; where that is nothing the rest is unsolved."""
    smallest = np.inf
    for k in range(n):
        pivot = k
        for r in range(k + 1, n):
            if abs(rows[r, k]) > abs(rows[pivot, k]):
                pivot = r
        smallest = min(smallest, abs(rows[pivot, k]))
        if not smallest > 0.0:
            return 0.0
        for j in range(k, n + 1):
            rows[k, j], rows[pivot, j] = rows[pivot, j], rows[k, j]
        for r in range(n):
            if r != k:
                factor = rows[r, k] / rows[k, k]
                for j in range(k, n + 1):
                    rows[r, j] -= factor * rows[k, j]
    for k in range(n):
        rows[k, n] /= rows[k, k]
    return smallest


@njit(cache=True, nogil=True)
def _exchange(points, count, worst, side, error):  # type: ignore[no-untyped-def]
    """Put the point of the worst error among the chosen ones so that sides still alternate; `side`
    is 1 where it is above the polynomial. False if it is one of them."""
    sign = 1.0 if error >= 0.0 else -1.0
    k = 0
    while k < count and points[k] <= worst:
        k += 1
    if k > 0 and points[k - 1] == worst:
        return False
    if k > 0 and side == (sign if (k - 1) % 2 == 0 else -sign):
        points[k - 1] = worst
    elif k < count and side == (sign if k % 2 == 0 else -sign):
        points[k] = worst
    elif k == 0:
        for j in range(count - 1, 0, -1):
            points[j] = points[j - 1]
        points[0] = worst
    else:
        for j in range(count - 1):
            points[j] = points[j + 1]
        points[count - 1] = worst
    return True
