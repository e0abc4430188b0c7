"""When polynomials are below, at or above zero: the instants, as spans of µs.

Time has ticks of a microsecond. Equality holds at the tick nearest a root: of those around it the
one with the smallest value. Before and behind it the sign is that of the piece between two roots,
so the rounding of a root decides nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from thalweg.instants import Ints
from thalweg.models.polynomials import SECOND, Floats
from thalweg.models.roots import _horner, _roots
from thalweg.models.spans import Spans

BELOW, AT, ABOVE = 1, 2, 4
"""Where a comparison with zero holds, as a sum."""
OPERATORS = {
    "<": BELOW, "<=": BELOW + AT, "=": AT, "<>": BELOW + ABOVE, ">=": AT + ABOVE, ">": ABOVE,
}  # fmt: skip
_CHUNK = 1 << 16


def solved(coefficients: Floats, reference: Ints, since: Ints, until: Ints, operator: str) -> Spans:
    """The instants of [since, until) at which polynomials compare so with zero."""
    parts = [
        _solved(coefficients[i : i + _CHUNK], reference[i : i + _CHUNK], since[i : i + _CHUNK],
                until[i : i + _CHUNK], OPERATORS[operator], i)
        for i in range(0, len(coefficients), _CHUNK)
    ]  # fmt: skip
    if not parts:
        none = np.empty(0, np.int64)
        return Spans(none, none, none)
    return Spans(*(np.concatenate(c) for c in zip(*parts, strict=True)))


def _solved(
    coefficients: Floats, reference: Ints, since: Ints, until: Ints, holds: int, first: int
) -> tuple[Ints, Ints, Ints]:
    most = 2 * coefficients.shape[1]
    spans = np.empty((len(coefficients), most, 2), np.int64)
    counts = np.empty(len(coefficients), np.int64)
    _compare(np.ascontiguousarray(coefficients), reference, since, until, holds, spans, counts)
    there = np.arange(most) < counts[:, np.newaxis]
    row = np.repeat(np.arange(first, first + len(counts)), counts)
    return row, spans[:, :, 0][there], spans[:, :, 1][there]


@njit(cache=True, nogil=True)
def _compare(coefficients, reference, since, until, holds, spans, counts):  # type: ignore[no-untyped-def]
    size = coefficients.shape[1]
    work, parts = np.empty((size, size)), np.empty(size + 1)
    roots = np.empty(max(size - 1, 1))
    for row in range(coefficients.shape[0]):
        c = coefficients[row]
        degree = size - 1
        while degree > 0 and c[degree] == 0.0:
            degree -= 1
        low = (since[row] - reference[row]) / SECOND
        high = (until[row] - reference[row]) / SECOND
        found = _roots(c, low - 2.0 / SECOND, high + 2.0 / SECOND, roots, work, parts)
        counts[row] = _spans(
            c, degree, reference[row], since[row], until[row], low, high, holds, roots, found,
            spans[row],
        )  # fmt: skip


@njit(cache=True, nogil=True)
def _spans(  # type: ignore[no-untyped-def]
    c, degree, reference, since, until, low, high, holds, roots, found, out
):
    """Write the spans of one polynomial; returns how many."""
    if degree == 0 and c[0] == 0.0:
        return _add(out, 0, since, until) if holds & AT else 0
    count = 0
    begin = since
    for i in range(found + 1):
        where = _side(c, degree, low, high, roots, found, i)
        end = until
        if i < found:
            end = _nearest(c, degree, reference, roots[i])
        if holds & where:
            count = _add(out, count, begin, min(end, until))
        if i < found:
            if holds & AT and since <= end < until and end >= begin:
                count = _add(out, count, end, end + 1)
            begin = max(begin, end + 1)
    return count


@njit(cache=True, nogil=True)
def _side(c, degree, low, high, roots, found, i):  # type: ignore[no-untyped-def]
    """The side of zero on which the polynomial is between roots i - 1 and i, or the ends of the
    range: asked in the middle, but not far from a root."""
    left = roots[i - 1] if i > 0 else low
    right = roots[i] if i < found else high
    if i > 0 or found == 0:
        x = left + min(0.5 * (right - left), 1.0 + abs(left))
    else:
        x = right - min(0.5 * (right - left), 1.0 + abs(right))
    return BELOW if _horner(c, degree, x) < 0.0 else ABOVE


@njit(cache=True, nogil=True)
def _nearest(c, degree, reference, root):  # type: ignore[no-untyped-def]
    """The tick nearest a root."""
    first = reference + np.int64(np.floor(root * SECOND)) - 1
    best = first
    smallest = np.inf
    for tick in range(first, first + 4):
        value = abs(_horner(c, degree, (tick - reference) / SECOND))
        if value < smallest:
            best, smallest = tick, value
    return best


@njit(cache=True, nogil=True)
def _add(out, count, begin, end):  # type: ignore[no-untyped-def]
    if begin >= end:
        return count
    if count > 0 and out[count - 1, 1] == begin:
        out[count - 1, 1] = end
        return count
    out[count, 0] = begin
    out[count, 1] = end
    return count + 1
