"""The bound of a point, as compiled loops see it.

A polynomial honours a point if its value there is at most `slack` above `upper` and at most `slack`
below `lower`: of a lone tuple under an absolute bound both are its value, so that this is
|v - p(t)| ≤ e to the last bit. A relative bound has no slack: `upper` and `lower` are its ends.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thalweg.models.polynomials import SECOND


@njit(cache=True, nogil=True)
def first_outside(ts, upper, lower, slack, first, limit, reference, c):  # type: ignore[no-untyped-def]
    """The first of points [first, limit) that a polynomial does not honour, or `limit`; evaluated
    as `polynomials.value` does."""
    top = c.size - 1
    if top == 1:
        for i in range(first, limit):
            found = c[1] * ((ts[i] - reference) / SECOND) + c[0]
            if not (found - upper[i] <= slack and lower[i] - found <= slack):
                return i
        return limit
    for i in range(first, limit):
        x = (ts[i] - reference) / SECOND
        found = c[top]
        for k in range(top - 1, -1, -1):
            found = found * x + c[k]
        if not (found - upper[i] <= slack and lower[i] - found <= slack):
            return i
    return limit


@njit(cache=True, nogil=True)
def highest(value, bound):  # type: ignore[no-untyped-def]
    """The largest number that is no more than a bound above a value, as differences are rounded."""
    found = value + bound
    while found - value > bound:
        found = np.nextafter(found, -np.inf)
    return found


@njit(cache=True, nogil=True)
def constant(value, c):  # type: ignore[no-untyped-def]
    """Write a polynomial that is the same everywhere."""
    c[:] = 0.0
    c[0] = value
