"""Tuples as points, and the connected points of one key in one cell of the grid: a run.

Equal stamps of a key become one point, tuples without a value end what was before. A run is fitted
on its own, so that nothing is known of one cell in another but whether the key goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from thalweg.instants import AFTER_TIME, Ints
from thalweg.models.fitting.bounds import highest
from thalweg.models.fitting.contract import Fit
from thalweg.models.polynomials import Floats

Mask = npt.NDArray[np.bool_]
_NO_VALUE = 0x7FF0000000000000


@dataclass(frozen=True, slots=True)
class Points:
    """What is fitted, by (key, ts): at most one of a key and instant. The arrays of values have a
    row per attribute."""

    key: Ints
    ts: Ints
    row: Ints | None
    """The first tuple of each; None where every tuple is a point."""
    absorbed: Ints | None
    """Tuples before each point, and of all; None where every tuple is a point."""
    value: Floats
    upper: Floats
    lower: Floats
    slack: Floats
    fresh: Mask
    """Whether a tuple without a value lies between a point and the one of its key before; empty
    where there is none such."""
    broken: Ints
    """The instant of the first such tuple behind a point, or AFTER_TIME."""
    carried: Mask
    """Of each key with points: whether it has a piece that reaches the cell of the first."""
    conflicts: int
    missing: int
    gap_key: Ints
    gap_start: Ints
    """Keys whose first tuples have no value, and the instant of the first."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Points [begin[i], begin[i + 1]) fitted on their own, valid from start to until."""

    begin: Ints
    start: Ints
    until: Ints
    reaches: Mask
    """Whether a run is valid up to the end of its cell."""


def points_of(key: Ints, ts: Ints, values: Floats, fits: Sequence[Fit], continues: Mask) -> Points:
    rows = np.ascontiguousarray(values.T, np.float64)
    relative = np.array([f.relative for f in fits])
    bound = np.array([f.within / 100 if f.relative else f.within for f in fits], np.float64)
    slack = np.where(relative, 0.0, bound)
    none = np.empty(0, np.int64)
    if not relative.any() and _plain(key, ts, rows.view(np.int64)):
        return Points(key, ts, None, None, rows, rows, rows, slack, none.astype(bool), none,
                      continues, 0, 0, none, none)  # fmt: skip
    n = len(ts)
    row, ordinal, count, broken = (np.empty(n, np.int64) for _ in range(4))
    fresh = np.empty(n, np.bool_)
    value, upper, lower = (np.empty(rows.shape) for _ in range(3))
    gaps = np.empty((2, n), np.int64)
    found, conflicts, missing, silent = _gather(
        key, ts, rows, bound, relative, row, ordinal, count, fresh, broken, value, upper, lower,
        gaps,
    )  # fmt: skip
    row, ordinal, fresh, broken = row[:found], ordinal[:found], fresh[:found], broken[:found]
    first = np.flatnonzero(np.diff(ordinal, prepend=-1))
    absorbed = np.concatenate([[0], np.cumsum(count[:found])])
    return Points(key[row], ts[row], row, absorbed, value[:, :found], upper[:, :found],
                  lower[:, :found], slack, fresh, broken, continues[ordinal[first]], conflicts,
                  missing, gaps[0, :silent].copy(), gaps[1, :silent].copy())  # fmt: skip


def runs_of(points: Points, every: int, horizon: int) -> Runs:
    n = len(points.ts)
    begin, start, until = np.empty(n + 1, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    reaches = np.empty(n, np.bool_)
    count = _find_runs(
        points.key, points.ts, points.fresh, points.broken, points.carried, every, horizon, begin,
        start, until, reaches,
    )  # fmt: skip
    return Runs(begin[: count + 1], start[:count], until[:count], reaches[:count])


@njit(cache=True, nogil=True)
def _plain(key, ts, bits):  # type: ignore[no-untyped-def]
    """Whether every tuple is a point."""
    odd = 0
    for i in range(1, len(ts)):
        odd += (ts[i] == ts[i - 1]) & (key[i] == key[i - 1])
    if odd:
        return False
    for a in range(bits.shape[0]):
        for i in range(bits.shape[1]):
            odd += (bits[a, i] & _NO_VALUE) == _NO_VALUE
    return odd == 0


@njit(cache=True, nogil=True)
def _gather(  # type: ignore[no-untyped-def]
    key, ts, rows, bound, relative, row, ordinal, count, fresh, broken, value, upper, lower, gaps
):
    """Write the points of tuples; returns how many, the tuples in conflict, those without a value
    and the keys that begin with one."""
    found = conflicts = missing = silent = 0
    keys, gone, noted = -1, False, False
    last = -1  # the point before of this key
    begin, n = 0, len(ts)
    while begin < n:
        if begin == 0 or key[begin] != key[begin - 1]:
            keys, gone, noted, last = keys + 1, False, False, -1
        end, since = begin, begin
        while end < n and ts[end] == ts[begin] and key[end] == key[begin]:
            if not _has_value(rows, end):
                missing += 1
                conflicts += end - since
                since = end + 1
            end += 1
        if since > begin:
            gone = True
            if last >= 0:
                broken[last] = min(broken[last], ts[begin])
            elif not noted:
                gaps[0, silent], gaps[1, silent] = key[begin], ts[begin]
                silent, noted = silent + 1, True
        if since < end:
            if not _meet(rows, since, end, bound, relative, value, upper, lower, found):
                conflicts += end - 1 - since
                since = end - 1
                _meet(rows, since, end, bound, relative, value, upper, lower, found)
            row[found], ordinal[found], count[found] = since, keys, end - since
            fresh[found], broken[found] = gone, AFTER_TIME
            last, gone = found, False
            found += 1
        begin = end
    return found, conflicts, missing, silent


@njit(cache=True, nogil=True)
def _has_value(rows, i):  # type: ignore[no-untyped-def]
    for a in range(rows.shape[0]):  # noqa: SIM110
        if not np.isfinite(rows[a, i]):
            return False
    return True


@njit(cache=True, nogil=True)
def _meet(rows, begin, end, bound, relative, value, upper, lower, to):  # type: ignore[no-untyped-def]
    """Write the point that some tuples of one instant make; False if the bounds of some attribute
    have nothing in common."""
    for a in range(rows.shape[0]):
        least = most = rows[a, begin]
        high, low = np.inf, -np.inf
        for i in range(begin, end):
            v = rows[a, i]
            least, most = min(least, v), max(most, v)
            if relative[a]:
                high = min(high, highest(v, abs(v) * bound[a]))
                low = max(low, -highest(-v, abs(v) * bound[a]))
        if not relative[a]:
            middle = least if least == most else 0.5 * least + 0.5 * most
            if not (middle - least <= bound[a] and most - middle <= bound[a]):
                return False
            high, low = least, most
        else:
            if low > high:
                return False
            middle = least if least == most else 0.5 * least + 0.5 * most
            middle = min(max(middle, low), high)
        value[a, to], upper[a, to], lower[a, to] = middle, high, low
    return True


@njit(cache=True, nogil=True)
def _find_runs(  # type: ignore[no-untyped-def]
    key, ts, fresh, broken, carried, every, horizon, begin, start, until, reaches
):
    """Write the runs; returns how many."""
    count, keys, edge = 0, -1, np.int64(0)
    gaps = len(fresh) > 0
    n = len(ts)
    for i in range(n):
        other = i == 0 or key[i] != key[i - 1]
        if not other and ts[i] < edge and not (gaps and fresh[i]):
            continue
        low = (ts[i] // every) * every
        if other:
            keys += 1
            goes_on = carried[keys]
        else:
            goes_on = low == edge
        begin[count] = i
        start[count] = low if goes_on and not (gaps and fresh[i]) else ts[i]
        if count > 0:
            stop = AFTER_TIME if other else start[count]
            _close(count - 1, i - 1, edge, stop, broken, gaps, horizon, until, reaches)
        edge = low + every
        count += 1
    if count > 0:
        _close(count - 1, n - 1, edge, AFTER_TIME, broken, gaps, horizon, until, reaches)
    begin[count] = n
    return count


@njit(cache=True, nogil=True)
def _close(run, last, edge, following, broken, gaps, horizon, until, reaches):  # type: ignore[no-untyped-def]
    """Write the end of a run: that of its cell, or with a horizon later, but no later than its key
    has no value or another run."""
    stop = broken[last] if gaps else AFTER_TIME
    reaches[run] = stop >= edge
    until[run] = min(edge + horizon, stop, following)
