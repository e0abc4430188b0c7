"""Constants: the middle between the highest lower end and the lowest upper end.

No other constants need fewer pieces: a piece ends only where none is within all bounds.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def mid_range(upper, lower, slack, first, limit, c):  # type: ignore[no-untyped-def]
    """Write the constant of the longest beginning of points [first, limit); returns its end."""
    least, most = lower[first] - slack, upper[first] + slack
    end = first + 1
    while end < limit:
        low, high = max(least, lower[end] - slack), min(most, upper[end] + slack)
        if low > high:
            break
        least, most = low, high
        end += 1
    c[0] = 0.5 * least + 0.5 * most
    return end
