"""Upper and lower envelopes of functions of time, as sets of them change: compiled loops.

Functions are numbered, by group, in the order in which they are preferred where they are equal. Of
a pair it depends on the two alone which is above the other when; so an envelope depends on what
lives, and on no cut into epochs. It is kept from the last change on as pieces, each of one
function, up to the end of time; a function that appears is compared with the pieces, one that
vanishes leaves holes in its own pieces alone, which the others fill.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.models.comparisons import ABOVE, BELOW, _spans
from thalweg.models.polynomials import SECOND, Floats
from thalweg.models.roots import _roots

Mask = npt.NDArray[np.bool_]
NOBODY = -1
_BEFORE, _AFTER = BEFORE_TIME, AFTER_TIME


def envelopes(
    coefficients: Floats,
    start: Ints,
    end: Ints,
    first: Ints,
    alive: Ints,
    pieces: tuple[Ints, Ints, Ints, Ints],
    peaks: tuple[Ints, Ints],
    events: tuple[Ints, Ints, Ints, Ints],
    upper: bool,
    complete: bool,
) -> tuple[Ints, Ints, Ints, Ints, Mask, int]:
    """The pieces of each group after events, those that are past among them: function, begin and
    end; and its peaks. Then the groups that cannot be told without all functions that live (unless
    they are given, `complete`), and how many pairs were compared.

    Functions are polynomials in seconds since `start`; those of group g are numbered from
    `first[g]` to `first[g + 1]`, and there are `alive` of each, once or more. Functions with an
    `end` are constants that last so long, each longer than those before it: of these only the
    `peaks` count that no later one exceeds (first of each group, function). `pieces` (first of each
    group, function, begin, end) are those before; `events` (first of each group, function, instant,
    sign) are in the order of time.
    """
    found = _envelopes(
        np.ascontiguousarray(coefficients), start, end, first, alive.copy(), *pieces, *peaks,
        *events, BELOW if upper else ABOVE, complete,
    )  # fmt: skip
    rows, queue, lacking, solves = found
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    lasting = np.array(queue, np.int64)
    return columns[0], columns[1], columns[2], lasting, lacking, int(solves)


@njit(cache=True, nogil=True)
def _envelopes(  # type: ignore[no-untyped-def]
    coefficients, start, end, first, alive, piece_first, piece_function, piece_begin, piece_end,
    peak_first, peak_function, event_first, event_function, event_at, event_sign, loses, complete,
):  # fmt: skip
    groups = first.size - 1
    lacking = np.zeros(groups, np.bool_)
    found, lasting = [np.int64(0)], [np.int64(0)]
    found.clear()
    lasting.clear()
    solves = np.zeros(1, np.int64)
    for g in range(groups):
        owner, begin = [np.int64(NOBODY)], [np.int64(_BEFORE)]
        for i in range(piece_first[g], piece_first[g + 1]):
            _append(owner, begin, piece_function[i], piece_begin[i])
            _append(owner, begin, NOBODY, piece_end[i])
        peaks = [np.int64(0)]
        peaks.clear()
        for i in range(peak_first[g], peak_first[g + 1]):
            peaks.append(np.int64(peak_function[i]))
        done_owner, done_begin = [np.int64(NOBODY)], [np.int64(_BEFORE)]
        i = event_first[g]
        while i < event_first[g + 1]:
            j = i
            while j < event_first[g + 1] and event_at[j] == event_at[i]:
                alive[event_function[j]] += event_sign[j]
                j += 1
            owner, begin = _settled(owner, begin, done_owner, done_begin, event_at[i])
            for k in range(i, j):
                if end[event_function[k]] < _AFTER:
                    owner, begin = _pushed(
                        coefficients, start, end, owner, begin, peaks, event_function[k],
                        event_at[i], loses, solves,
                    )  # fmt: skip
            owner, begin, ready = _changed(
                coefficients, start, end, first[g], first[g + 1], alive, owner, begin, peaks,
                event_function[i:j], event_sign[i:j], event_at[i], loses, complete, solves,
            )  # fmt: skip
            if not ready:
                lacking[g] = True
                break
            i = j
        if lacking[g]:
            continue
        for function in peaks:
            if end[function] > event_at[event_first[g + 1] - 1]:
                lasting.append(function)
        for i in range(len(owner)):
            _append(done_owner, done_begin, owner[i], begin[i])
        for i in range(len(done_owner)):
            if done_owner[i] != NOBODY:
                until = done_begin[i + 1] if i + 1 < len(done_owner) else _AFTER
                found.append(np.int64(done_owner[i]))
                found.append(np.int64(done_begin[i]))
                found.append(np.int64(until))
    return found, lasting, lacking, solves[0]


@njit(cache=True, nogil=True)
def _pushed(  # type: ignore[no-untyped-def]
    coefficients, start, end, owner, begin, peaks, function, at, loses, solves
):
    """The pieces with one more constant, which lasts longer than the peaks; it takes the place of
    those that it exceeds."""
    value = coefficients[function, 0]
    while len(peaks):
        other = coefficients[peaks[-1], 0]
        if not (value > other if loses == BELOW else value < other):
            break
        peaks.pop()
    since = at if not len(peaks) else max(at, end[peaks[-1]])
    if since >= end[function]:
        return owner, begin
    peaks.append(np.int64(function))
    return _inserted(coefficients, start, end, owner, begin, function, since, _AFTER, loses, solves)


@njit(cache=True, nogil=True)
def _append(owner, begin, function, at):  # type: ignore[no-untyped-def]
    """Let a piece begin; pieces of one function that touch are one."""
    if at >= _AFTER:
        return
    if len(begin) and begin[-1] == at:
        owner.pop()
        begin.pop()
    if not len(owner) or owner[-1] != function:
        owner.append(np.int64(function))
        begin.append(np.int64(at))


@njit(cache=True, nogil=True)
def _settled(owner, begin, done_owner, done_begin, at):  # type: ignore[no-untyped-def]
    """Move what is before an instant to what is done; returns the rest."""
    if len(owner) and begin[0] < at and (len(owner) == 1 or begin[1] > at):
        _append(done_owner, done_begin, owner[0], begin[0])
        begin[0] = np.int64(at)
        return owner, begin
    rest_owner, rest_begin = [np.int64(0)], [np.int64(0)]
    rest_owner.clear()
    rest_begin.clear()
    for i in range(len(owner)):
        until = begin[i + 1] if i + 1 < len(owner) else _AFTER
        if begin[i] < at:
            _append(done_owner, done_begin, owner[i], begin[i])
        if until > at:
            _append(rest_owner, rest_begin, owner[i], max(begin[i], at))
    return rest_owner, rest_begin


@njit(cache=True, nogil=True)
def _changed(  # type: ignore[no-untyped-def]
    coefficients, start, end, low, high, alive, owner, begin, peaks, functions, signs, at, loses,
    complete, solves,
):  # fmt: skip
    """The pieces from an instant on, when functions vanish and appear there."""
    holes_begin, holes_end = [np.int64(0)], [np.int64(0)]
    holes_begin.clear()
    holes_end.clear()
    for k in range(functions.size):
        lasts = end[functions[k]] < _AFTER
        if lasts or signs[k] > 0 or (complete and alive[functions[k]] > 0):
            continue
        for i in range(len(owner)):
            if owner[i] == functions[k]:
                if not complete:
                    return owner, begin, False
                owner[i] = np.int64(NOBODY)
                holes_begin.append(begin[i])
                holes_end.append(np.int64(begin[i + 1] if i + 1 < len(owner) else _AFTER))
    for k in range(functions.size):
        if signs[k] > 0 and end[functions[k]] == _AFTER:
            owner, begin = _inserted(
                coefficients, start, end, owner, begin, functions[k], at, _AFTER, loses, solves
            )
    for h in range(len(holes_begin)):
        since = holes_begin[h]
        for i in range(_first_lasting(peaks, end, since), len(peaks)):
            if since >= holes_end[h]:
                break
            owner, begin = _inserted(
                coefficients, start, end, owner, begin, peaks[i], since, holes_end[h], loses, solves
            )
            since = end[peaks[i]]
        for function in range(low, high):
            if alive[function] > 0 and end[function] == _AFTER:
                owner, begin = _inserted(
                    coefficients, start, end, owner, begin, function, holes_begin[h], holes_end[h],
                    loses, solves,
                )  # fmt: skip
    return owner, begin, True


@njit(cache=True, nogil=True)
def _first_lasting(peaks, end, at):  # type: ignore[no-untyped-def]
    """The place of the first peak that lasts beyond an instant."""
    low, high = 0, len(peaks)
    while low < high:
        middle = (low + high) // 2
        if end[peaks[middle]] > at:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True, nogil=True)
def _makes_no_difference(  # type: ignore[no-untyped-def]
    coefficients, start, owner, begin, function, since, until, loses
):
    """Whether it is clear that a function owns nothing of [since, until)."""
    for i in range(len(owner)):
        upto = begin[i + 1] if i + 1 < len(owner) else _AFTER
        if upto <= since:
            continue
        if begin[i] >= until:
            break
        if owner[i] == NOBODY:
            return False
        low, high = max(begin[i], since), min(upto, until)
        if owner[i] != function and owner[i] != _clear_winner(
            coefficients, start, owner[i], function, low, high, loses
        ):
            return False
    return True


@njit(cache=True, nogil=True)
def _inserted(  # type: ignore[no-untyped-def]
    coefficients, start, end, owner, begin, function, since, until, loses, solves
):
    """The pieces with one more function on [since, until)."""
    until = min(until, end[function])
    if since >= until or _makes_no_difference(
        coefficients, start, owner, begin, function, since, until, loses
    ):
        return owner, begin
    new_owner, new_begin = [np.int64(0)], [np.int64(0)]
    new_owner.clear()
    new_begin.clear()
    for i in range(len(owner)):
        upto = begin[i + 1] if i + 1 < len(owner) else _AFTER
        if upto <= since or begin[i] >= until or owner[i] == function:
            _append(new_owner, new_begin, owner[i], begin[i])
            continue
        low, high = max(begin[i], since), min(upto, until)
        if begin[i] < low:
            _append(new_owner, new_begin, owner[i], begin[i])
        if owner[i] == NOBODY:
            winner = function
        else:
            winner = _clear_winner(coefficients, start, owner[i], function, low, high, loses)
        if winner != NOBODY:
            _append(new_owner, new_begin, winner, low)
        else:
            solves[0] += 1
            _duel(coefficients, start, owner[i], function, low, high, loses, new_owner, new_begin)
        if high < upto:
            _append(new_owner, new_begin, owner[i], high)
    return new_owner, new_begin


@njit(cache=True, nogil=True)
def _clear_winner(coefficients, start, one, other, low, high, loses):  # type: ignore[no-untyped-def]
    """Which of two lines wins on all of [low, high), if it does so by more than rounding; else
    nobody."""
    size = coefficients.shape[1]
    for i in range(2, size):
        if coefficients[one, i] != 0.0 or coefficients[other, i] != 0.0:
            return NOBODY
    flat = size < 2 or (coefficients[one, 1] == 0.0 and coefficients[other, 1] == 0.0)
    if flat:
        a, b = coefficients[one, 0], coefficients[other, 0]
        if a == b:
            return min(one, other)
        return one if (a > b) == (loses == BELOW) else other
    if high == _AFTER:
        return NOBODY
    sign = 0
    for at in (low, high):
        a = coefficients[one, 0] + coefficients[one, 1] * ((at - start[one]) / SECOND)
        b = coefficients[other, 0] + coefficients[other, 1] * ((at - start[other]) / SECOND)
        if abs(a - b) <= 1e-9 * (abs(a) + abs(b)):
            return NOBODY
        above = 1 if a > b else -1
        if sign != 0 and above != sign:
            return NOBODY
        sign = above
    return one if (sign > 0) == (loses == BELOW) else other


@njit(cache=True, nogil=True)
def _duel(coefficients, start, one, other, low, high, loses, owner, begin):  # type: ignore[no-untyped-def]
    """Append pieces of the two functions on [low, high)."""
    a, b = min(one, other), max(one, other)
    size = coefficients.shape[1]
    about = max(start[a], start[b])
    c = np.empty(size)
    _difference(coefficients[a], coefficients[b], about - start[a], about - start[b], c)
    work, parts = np.empty((size, size)), np.empty(size + 1)
    roots, spans = np.empty(max(size - 1, 1)), np.empty((2 * size, 2), np.int64)
    degree = size - 1
    while degree > 0 and c[degree] == 0.0:
        degree -= 1
    until = (_AFTER - about) / SECOND
    found = _roots(c, -2.0 / SECOND, until, roots, work, parts)
    count = _spans(c, degree, about, about, _AFTER, 0.0, until, loses, roots, found, spans)
    at = low
    for k in range(count):  # where the preferred one loses
        left, right = max(spans[k, 0], low), min(spans[k, 1], high)
        if left >= right:
            continue
        if at < left:
            _append(owner, begin, a, at)
        _append(owner, begin, b, left)
        at = right
    if at < high:
        _append(owner, begin, a, at)


@njit(cache=True, nogil=True)
def _difference(left, right, left_by, right_by, out):  # type: ignore[no-untyped-def]
    """left - right, both moved by so many microseconds."""
    size = out.size
    for j in range(size):
        out[j] = _moved(left, j, left_by) - _moved(right, j, right_by)


@njit(cache=True, nogil=True)
def _moved(c, j, by):  # type: ignore[no-untyped-def]
    """Coefficient j of a polynomial about a later instant, as `polynomials.aligned` has it."""
    if by == 0:
        return c[j]
    shift = by / SECOND
    term = 0.0
    binomial = 1.0
    for i in range(j + 1, c.size):
        binomial = binomial * i / (i - j)
    for i in range(c.size - 1, j - 1, -1):
        term = term * shift + binomial * c[i]
        if i > j:
            binomial = binomial * (i - j) / i
    return term
