"""Lines through the first point of a piece, which swing as long as all bounds leave a slope."""

from __future__ import annotations

import numpy as np
from numba import njit

from thalweg.models.polynomials import SECOND


@njit(cache=True, nogil=True)
def swing(ts, value, upper, lower, slack, first, limit, reference, c):  # type: ignore[no-untyped-def]
    """Write the line of the longest beginning of points [first, limit), which are two at least;
    returns its end."""
    origin, base = ts[first], value[first]
    above, below = slack - base, -slack - base
    least, most = -np.inf, np.inf
    end = first + 1
    while end < limit:
        per = 1.0 / (ts[end] - origin)
        low, high = max(least, (lower[end] + below) * per), min(most, (upper[end] + above) * per)
        if low > high:
            break
        least, most = low, high
        end += 1
    c[1] = (0.5 * least + 0.5 * most) * SECOND if end > first + 1 else 0.0
    c[0] = base - c[1] * ((origin - reference) / SECOND)
    return end
