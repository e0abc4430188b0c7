"""Straight lines from tuple to tuple, for bound zero.

The piece of a tuple leads to the next. The last tuple continues the line before it: within the same
piece if that meets it to the last bit, else from a piece of its own. A lone tuple is a constant.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thalweg.models.polynomials import SECOND

_STEPS = 4


@njit(cache=True, nogil=True)
def straight(ts, value, first, limit, begin, stop, reference, c):  # type: ignore[no-untyped-def]
    """Write the line of the piece of point `first` among the connected points [begin, stop);
    returns its end. That is `first` itself if the line, told from a cell's start long before, does
    not meet the point to the last bit: then the line is for the time before it only."""
    left = first if first + 1 < stop or first == begin else first - 1
    slope = 0.0
    if left + 1 < stop:
        slope = (value[left + 1] - value[left]) / ((ts[left + 1] - ts[left]) / SECOND)
    if not np.isfinite(slope):
        slope = 0.0
    x = (ts[first] - reference) / SECOND
    c[1] = slope
    c[0] = value[first] - slope * x
    for _ in range(_STEPS):
        missed = value[first] - (slope * x + c[0])
        if missed == 0.0:
            break
        c[0] += missed
    if slope * x + c[0] != value[first]:
        return first
    if first + 2 == stop == limit and _meets_last(ts, value, first + 1, reference, x == 0.0, c):
        return stop
    return first + 1


@njit(cache=True, nogil=True)
def _meets_last(ts, value, last, reference, turns, c):  # type: ignore[no-untyped-def]
    """Whether the line meets the last point too; if it turns about the one before, also after some
    turning by a last bit."""
    x = (ts[last] - reference) / SECOND
    slope = c[1]
    for _ in range(_STEPS if turns else 1):
        found = slope * x + c[0]
        if found == value[last]:
            c[1] = slope
            return True
        slope = np.nextafter(slope, np.inf if found < value[last] else -np.inf)
    return False
