"""Fit a batch: tuples by (key, ts) become pieces, each a polynomial per attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit

from thalweg.instants import Ints
from thalweg.models.fitting.bounds import constant, first_outside
from thalweg.models.fitting.contract import (
    HULL,
    LEAST_SQUARES,
    MID_RANGE,
    STRAIGHT,
    SWING,
    Fit,
    check,
    method_code,
)
from thalweg.models.fitting.hull import centre, hull
from thalweg.models.fitting.least_squares import SMALL, least_squares
from thalweg.models.fitting.mid_range import mid_range
from thalweg.models.fitting.runs import Mask, Points, Runs, points_of, runs_of
from thalweg.models.fitting.straight import straight
from thalweg.models.fitting.swing import swing
from thalweg.models.polynomials import Floats

_FIRST_LOOK = 16
_ROWS_OF_SCRATCH = 4


@dataclass(frozen=True, slots=True)
class Pieces:
    """Polynomials valid on [start, end) µs, by (key, start); the pieces of a key do not overlap.

    Coefficients are ascending in seconds since the start, an array [pieces, degree + 1] of each
    attribute. Every tuple is absorbed by one piece, missing, or in conflict.
    """

    row: Ints
    """The first tuple absorbed."""
    key: Ints
    start: Ints
    end: Ints
    coefficients: tuple[Floats, ...]
    tuples: Ints
    """Absorbed; none by the line of a cell's start that WITHIN 0 cannot join to the first tuple."""
    reaches: Mask
    """Whether the piece is valid to the end of the cell it starts in, or by a horizon beyond: the
    key continues if its next tuple is in the next cell."""
    conflicts: int
    """Tuples at an instant of others of their key too far apart; the last of these counts."""
    missing: int
    """Tuples without a value of some attribute."""
    gap_key: Ints
    gap_start: Ints
    """Keys whose first tuple of the batch has no value, and its instant: what a horizon keeps alive
    from before the batch ends there, if no piece has begun earlier."""

    def __len__(self) -> int:
        return len(self.start)


def fitted(
    key: Ints,
    ts: Ints,
    values: Floats,
    fits: Sequence[Fit],
    every: int,
    continues: Mask | None = None,
    horizon: int = 0,
) -> Pieces:
    """The pieces of whole cells of the grid of `every` µs.

    Tuples are sorted by (key, ts, stream order), equal neighbours in `key` are one key; `values`
    has a column for each fit, where NaN or infinity is no value. `continues` says of each distinct
    key whether a piece of it reaches the cell of its first tuple; a piece of each cell may live on
    beyond it for the `horizon`.
    """
    for fit in fits:
        check(fit)
    if every <= 0 or horizon < 0:
        raise ValueError("the grid must be wider than nothing, the horizon not negative")
    if values.shape != (len(ts), len(fits)):
        raise ValueError(f"{len(fits)} fits for values of shape {values.shape}")
    keys = int(np.count_nonzero(key[1:] != key[:-1])) + 1 if len(key) else 0
    carried = np.zeros(keys, np.bool_) if continues is None else np.asarray(continues, np.bool_)
    if len(carried) != keys:
        raise ValueError(f"{len(carried)} keys continue or not, the batch has {keys}")
    points = points_of(key, ts, values, fits, carried)
    return _pieces(points, runs_of(points, every, horizon), fits)


def _pieces(points: Points, runs: Runs, fits: Sequence[Fit]) -> Pieces:
    most = len(points.ts) + len(runs.start)
    longest = int(np.diff(runs.begin).max(initial=0))
    sizes = np.array([f.degree + 1 for f in fits])
    columns = np.concatenate([[0], np.cumsum(sizes)])
    first, start, end = (np.empty(most, np.int64) for _ in range(3))
    reaches = np.empty(most, np.bool_)
    coefficients = np.empty((most, columns[-1]))
    codes = np.array([method_code(f) for f in fits])
    work = np.empty((_ROWS_OF_SCRATCH, longest + 1))
    small = np.empty((SMALL, SMALL))
    n = _fit_runs(
        points.ts, points.value, points.upper, points.lower, points.slack, codes, columns,
        runs.begin, runs.start, runs.until, runs.reaches, first, start, end, reaches, coefficients,
        work, small,
    )  # fmt: skip
    index = first[:n]
    bounds = np.append(index, len(points.ts))
    tuples = np.diff(bounds if points.absorbed is None else points.absorbed[bounds])
    return Pieces(
        row=index.copy() if points.row is None else points.row[index],
        key=points.key[index],
        start=start[:n].copy(),
        end=end[:n].copy(),
        coefficients=tuple(
            coefficients[:n, columns[a] : columns[a + 1]].copy() for a in range(len(fits))
        ),
        tuples=tuples,
        reaches=reaches[:n].copy(),
        conflicts=points.conflicts,
        missing=points.missing,
        gap_key=points.gap_key,
        gap_start=points.gap_start,
    )


@njit(cache=True, nogil=True)
def _fit_runs(  # type: ignore[no-untyped-def]
    ts, value, upper, lower, slack, codes, columns, begin, since, until, reaching, first, start,
    end, reaches, coefficients, work, small,
):  # fmt: skip
    """Write the pieces of all runs; returns how many."""
    count = 0
    alone = len(codes) == 1
    c = np.empty(columns[-1])
    code, value_0, upper_0, lower_0, slack_0 = codes[0], value[0], upper[0], lower[0], slack[0]
    for run in range(len(since)):
        i, stop = begin[run], begin[run + 1]
        reference = since[run]
        careful, next_care = 0, 1  # pieces to find carefully, after rounding was in the way
        while i < stop:
            if alone:
                j = i
                if careful == 0:
                    j = _attempt(
                        code, ts, value_0, upper_0, lower_0, slack_0, i, stop, begin[run], stop,
                        reference, c, work, small,
                    )  # fmt: skip
                if j > i or code == STRAIGHT:
                    next_care = 1
                else:
                    j = _creep(
                        code, ts, value_0, upper_0, lower_0, slack_0, i, stop, begin[run], stop,
                        reference, c, work, small,
                    )  # fmt: skip
                    careful -= 1
                    if careful < 0:
                        careful, next_care = next_care, 2 * next_care
            else:
                j = _together(
                    ts, value, upper, lower, slack, codes, columns, i, begin[run], stop, reference,
                    c, work, small,
                )  # fmt: skip
            for k in range(len(c)):
                coefficients[count, k] = c[k]
            first[count], start[count], reaches[count] = i, reference, False
            reference = ts[j] if j < stop else until[run]
            end[count] = reference
            i = j
            count += 1
        reaches[count - 1] = reaching[run]
    return count


@njit(cache=True, nogil=True)
def _together(  # type: ignore[no-untyped-def]
    ts, value, upper, lower, slack, codes, columns, first, begin, stop, reference, c, work, small
):
    """Write the polynomials of the longest beginning of points [first, stop) that those of all
    attributes honour; returns its end. Looks no further ahead than a few times that."""
    ahead = _FIRST_LOOK
    looked = False
    limit = first
    while True:
        target = limit if looked else min(first + ahead, stop)
        limit = target
        for a in range(len(codes)):
            own = c[columns[a] : columns[a + 1]]
            near = max(limit, first + 1)
            end = _attempt(
                codes[a], ts, value[a], upper[a], lower[a], slack[a], first, near, begin, stop,
                reference, own, work, small,
            )  # fmt: skip
            if end == first and codes[a] != STRAIGHT:
                end = _creep(
                    codes[a], ts, value[a], upper[a], lower[a], slack[a], first, near, begin,
                    stop, reference, own, work, small,
                )  # fmt: skip
            limit = min(limit, end)
        if limit == target and (looked or limit == stop):
            return limit
        looked = looked or limit < target
        ahead *= 4


@njit(cache=True, nogil=True)
def _attempt(  # type: ignore[no-untyped-def]
    code, ts, value, upper, lower, slack, first, limit, begin, stop, reference, c, work, small
):
    """Write the polynomial of the longest beginning of points [first, limit) that one of its kind
    honours, of the connected points [begin, stop); returns its end, or `first` if rounding is in
    the way. Only lines from tuple to tuple may end at `first` rightly."""
    if code == STRAIGHT:
        return straight(ts, value, first, limit, begin, stop, reference, c)
    if code == LEAST_SQUARES:
        return least_squares(
            ts, value, upper, lower, slack, first, limit, reference, c, work, small
        )  # fmt: skip
    if limit == first + 1:
        constant(value[first], c)
        return limit
    if code == MID_RANGE:
        end = mid_range(upper, lower, slack, first, limit, c)
    elif code == SWING:
        end = swing(ts, value, upper, lower, slack, first, limit, reference, c)
    else:
        end = hull(ts, value, upper, lower, slack, first, limit, reference, c, work)
    outside = first_outside(ts, upper, lower, slack, first, end, reference, c)
    if outside < end and code == HULL:
        centre(ts, upper, lower, slack, first, end, reference, c)
        outside = first_outside(ts, upper, lower, slack, first, end, reference, c)
    return end if outside == end else first


@njit(cache=True, nogil=True)
def _creep(  # type: ignore[no-untyped-def]
    code, ts, value, upper, lower, slack, first, limit, begin, stop, reference, c, work, small
):
    """As an attempt, by doubling and bisection: rounding cuts a beginning short, if need be to a
    constant through one point, and costs no more than what is found."""
    good, bad = first + 1, limit + 1
    trial = min(first + 2, limit)
    while good < trial < bad:
        end = _attempt(
            code, ts, value, upper, lower, slack, first, trial, begin, stop, reference, c, work,
            small,
        )  # fmt: skip
        if end == trial:
            good = trial
        else:
            bad = trial
            good = max(good, end)
        trial = min(good + (good - first), limit) if bad > limit else good + (bad - good) // 2
    end = _attempt(
        code, ts, value, upper, lower, slack, first, good, begin, stop, reference, c, work, small
    )
    if end == good:
        return good
    constant(value[first], c)
    return first + 1
