"""Free lines, the fewest pieces: all lines within all bounds are known by their steepest and their
flattest, which touch the convex hulls of the bounds' ends (O'Rourke 1981).

Each point enters a hull once and leaves it once, so a point costs the same however long a piece is.
Ends that no line still possible reaches never enter.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thalweg.models.polynomials import SECOND


@njit(cache=True, nogil=True)
def hull(ts, value, upper, lower, slack, first, limit, reference, c, work):  # type: ignore[no-untyped-def]
    """Write the line of the longest beginning of points [first, limit), which are two at least;
    returns its end. The line is the mean of the steepest and the flattest. `work` is scratch: the
    hull of the upper ends (roof) and of the lower ends (floor), in µs and above the first value."""
    roof_x, roof_y, floor_x, floor_y = work[0], work[1], work[2], work[3]
    origin, base = ts[first], value[first]
    end = first + 1
    x = float(ts[end] - origin)
    above, below = slack - base, -slack - base
    roof_x[0], roof_y[0] = 0.0, upper[first] + above
    floor_x[0], floor_y[0] = 0.0, lower[first] + below
    roof_x[1], roof_y[1] = x, upper[end] + above
    floor_x[1], floor_y[1] = x, lower[end] + below
    roofs = floors = 2
    roof_from = floor_from = 0
    steep = (roof_y[1] - floor_y[0]) / x
    flat = (floor_y[1] - roof_y[0]) / x
    steep_x, steep_y, flat_x, flat_y = x, roof_y[1], x, floor_y[1]
    end += 1
    while end < limit:
        x = float(ts[end] - origin)
        high, low = upper[end] + above, lower[end] + below
        highest = steep_y + steep * (x - steep_x)
        lowest = flat_y + flat * (x - flat_x)
        if low > highest or high < lowest:
            break
        if high < highest:
            floor_from, steep = _touch(floor_x, floor_y, floor_from, floors, x, high, 1.0)
            steep_x, steep_y = x, high
            roofs = _add(roof_x, roof_y, roof_from, roofs, x, high, 1.0)
        if low > lowest:
            roof_from, flat = _touch(roof_x, roof_y, roof_from, roofs, x, low, -1.0)
            flat_x, flat_y = x, low
            floors = _add(floor_x, floor_y, floor_from, floors, x, low, -1.0)
        end += 1
    c[1] = (0.5 * steep + 0.5 * flat) * SECOND
    at = float(reference - origin)
    c[0] = base + 0.5 * ((steep_y + steep * (at - steep_x)) + (flat_y + flat * (at - flat_x)))
    return end


@njit(cache=True, nogil=True)
def centre(ts, upper, lower, slack, first, end, reference, c):  # type: ignore[no-untyped-def]
    """Lift a line to the middle of what the bounds of points [first, end) leave it. Where steepest
    and flattest touch the same end their mean touches it too, and may miss it by rounding."""
    least, most = -np.inf, np.inf
    for i in range(first, end):
        risen = c[1] * ((ts[i] - reference) / SECOND)
        least = max(least, lower[i] - slack - risen)
        most = min(most, upper[i] + slack - risen)
    c[0] = 0.5 * least + 0.5 * most


@njit(cache=True, nogil=True)
def _touch(hull_x, hull_y, begin, size, x, y, sign):  # type: ignore[no-untyped-def]
    """Where the line from a point behind touches a hull, and its slope: the smallest, or with sign
    -1 the largest. What lies before touches no later line."""
    best = (y - hull_y[begin]) / (x - hull_x[begin])
    while begin + 1 < size and hull_x[begin + 1] < x:
        slope = (y - hull_y[begin + 1]) / (x - hull_x[begin + 1])
        if (slope - best) * sign > 0.0:
            break
        best = slope
        begin += 1
    return begin, best


@njit(cache=True, nogil=True)
def _add(hull_x, hull_y, begin, size, x, y, sign):  # type: ignore[no-untyped-def]
    """Append a point to the hull that is open above, or with sign -1 below; returns its size."""
    while size - begin >= 2:
        right = (hull_y[size - 1] - hull_y[size - 2]) * (x - hull_x[size - 2])
        if (right - (y - hull_y[size - 2]) * (hull_x[size - 1] - hull_x[size - 2])) * sign < 0.0:
            break
        size -= 1
    hull_x[size], hull_y[size] = x, y
    return size + 1
