"""Sorted candidates of groups under insertions and removals: MIN, MAX, quantiles, lists.

Values are order codes (int64, smaller is better; MAX uses inverted codes). Where the end of every
row is known when it appears, a group keeps only its *front*: a value is forgotten once a better or
equal one outlives it. Otherwise it keeps the whole multiset.
"""

from __future__ import annotations

import numpy as np
from numba import njit

FOREVER = 2**61


@njit(cache=True, nogil=True)
def running_front(code, end, weight, at, run, group_of_run, offset, size, codes, ends, best, has):  # type: ignore[no-untyped-def]
    """Running best values where ends are known. Group g's front lies at
    codes[offset[g]:offset[g]+size[g]], best first.

    Codes and ends both ascend: the best value is first and the first to end.
    """
    i = 0
    n = code.size
    while i < n:
        r = run[i]
        g = group_of_run[r]
        base = offset[g]
        count = size[g]
        gone = 0
        while gone < count and ends[base + gone] <= at[i]:
            gone += 1
        if gone:
            for j in range(count - gone):
                codes[base + j] = codes[base + gone + j]
                ends[base + j] = ends[base + gone + j]
            count -= gone
        while i < n and run[i] == r:
            if weight[i] > 0:
                count = _insert(codes, ends, base, count, code[i], end[i])
            i += 1
        size[g] = count
        has[r] = count > 0
        best[r] = codes[base] if count > 0 else 0


@njit(cache=True, nogil=True)
def _place(codes, base, size, code):  # type: ignore[no-untyped-def]
    """How many of a group's codes are less than this one."""
    low = 0
    high = size
    while low < high:
        middle = (low + high) >> 1
        if codes[base + middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _insert(codes, ends, base, count, value, until):  # type: ignore[no-untyped-def]
    low = _place(codes, base, count, value)
    if low > 0 and ends[base + low - 1] >= until:
        return count
    last = low
    if last < count and codes[base + last] == value and ends[base + last] >= until:
        return count
    while last < count and ends[base + last] <= until:
        last += 1
    shift = 1 - (last - low)
    if shift > 0:
        for j in range(count - 1, last - 1, -1):
            codes[base + j + 1] = codes[base + j]
            ends[base + j + 1] = ends[base + j]
    elif shift < 0:
        for j in range(last, count):
            codes[base + j + shift] = codes[base + j]
            ends[base + j + shift] = ends[base + j]
    codes[base + low] = value
    ends[base + low] = until
    return count + shift


# -- the whole multiset ------------------------------------------------------------------------
# Group g's values lie at codes[offset[g]:offset[g]+size[g]], ascending, with their counts. Results
# are written per version: of the groups' stored states first, then of every run.


@njit(cache=True, nogil=True)
def _put(codes, counts, base, size, code, weight):  # type: ignore[no-untyped-def]
    """Change the count of a value; returns its place and the size. A count may be zero, or less,
    until the run is over."""
    low = _place(codes, base, size, code)
    if low == size or codes[base + low] != code:
        for j in range(size - 1, low - 1, -1):
            codes[base + j + 1] = codes[base + j]
            counts[base + j + 1] = counts[base + j]
        codes[base + low] = code
        counts[base + low] = 0
        size += 1
    counts[base + low] += weight
    return low, size


@njit(cache=True, nogil=True)
def _sweep(codes, counts, base, size):  # type: ignore[no-untyped-def]
    """Remove values with a count of zero; returns the size."""
    kept = 0
    for j in range(size):
        if counts[base + j] != 0:
            codes[base + kept] = codes[base + j]
            counts[base + kept] = counts[base + j]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def _take_run(i, code, weight, run, codes, counts, base, size):  # type: ignore[no-untyped-def]
    """Apply all changes of the run that starts at i; returns where the next one starts, and the
    size."""
    r = run[i]
    while i < code.size and run[i] == r:
        if weight[i] != 0:
            _, size = _put(codes, counts, base, size, code[i], weight[i])
        i += 1
    return i, _sweep(codes, counts, base, size)


@njit(cache=True, nogil=True)
def running_least(code, weight, run, group_of_run, offset, size, codes, counts, best, has):  # type: ignore[no-untyped-def]
    """The least value of every run."""
    i = 0
    while i < code.size:
        r = run[i]
        g = group_of_run[r]
        base = offset[g]
        i, size[g] = _take_run(i, code, weight, run, codes, counts, base, size[g])
        has[r] = size[g] > 0
        best[r] = codes[base] if size[g] > 0 else 0


@njit(cache=True, nogil=True)
def running_presence(code, weight, run, group_of_run, offset, size, codes, counts, changed):  # type: ignore[no-untyped-def]
    """Per change +1 if its value was absent before it, -1 if it is absent after it, else 0."""
    i = 0
    while i < code.size:
        r = run[i]
        g = group_of_run[r]
        base = offset[g]
        held = size[g]
        while i < code.size and run[i] == r:
            if weight[i] != 0:
                at, held = _put(codes, counts, base, held, code[i], weight[i])
                now = counts[base + at]
                changed[i] = np.int8(now > 0) - np.int8(now - weight[i] > 0)
            i += 1
        size[g] = _sweep(codes, counts, base, held)


@njit(cache=True, nogil=True)
def _ranks(codes, counts, base, size, once, low, high):  # type: ignore[no-untyped-def]
    """The values at two places (counted from 0) of the sorted multiset, or of its distinct
    values (`once`)."""
    seen = np.int64(0)
    first = np.int64(0)
    for j in range(size):
        before = seen
        seen += 1 if once else counts[base + j]
        if before <= low < seen:
            first = codes[base + j]
        if before <= high < seen:
            return first, codes[base + j]
    return first, first


@njit(cache=True, nogil=True)
def running_ranks(  # type: ignore[no-untyped-def]
    code, weight, run, group_of_run, offset, size, codes, counts, once, low, high, out
):
    """The values at places low[v] and high[v] of every version."""
    groups = offset.size
    for g in range(groups):
        out[g, 0], out[g, 1] = _ranks(codes, counts, offset[g], size[g], once, low[g], high[g])
    i = 0
    while i < code.size:
        r = run[i]
        g = group_of_run[r]
        base = offset[g]
        i, size[g] = _take_run(i, code, weight, run, codes, counts, base, size[g])
        v = groups + r
        out[v, 0], out[v, 1] = _ranks(codes, counts, base, size[g], once, low[v], high[v])


@njit(cache=True, nogil=True)
def _most_frequent(codes, counts, base, size):  # type: ignore[no-untyped-def]
    best = np.int64(0)
    most = np.int64(0)
    for j in range(size):
        if counts[base + j] > most:
            most = counts[base + j]
            best = codes[base + j]
    return best


@njit(cache=True, nogil=True)
def running_modes(code, weight, run, group_of_run, offset, size, codes, counts, out):  # type: ignore[no-untyped-def]
    """The most frequent value of every version, the least among equals."""
    groups = offset.size
    for g in range(groups):
        out[g] = _most_frequent(codes, counts, offset[g], size[g])
    i = 0
    while i < code.size:
        r = run[i]
        g = group_of_run[r]
        base = offset[g]
        i, size[g] = _take_run(i, code, weight, run, codes, counts, base, size[g])
        out[groups + r] = _most_frequent(codes, counts, base, size[g])


@njit(cache=True, nogil=True)
def _copy_out(codes, counts, base, size, once, out, at):  # type: ignore[no-untyped-def]
    for j in range(size):
        for _ in range(1 if once else counts[base + j]):
            out[at] = codes[base + j]
            at += 1
    return at


@njit(cache=True, nogil=True)
def running_contents(code, weight, run, group_of_run, offset, size, codes, counts, once, ends, out):  # type: ignore[no-untyped-def]
    """All values of every version in order (`once`: each only once), one version after another;
    ends[v] is where version v ends in `out`, which has room for all."""
    groups = offset.size
    at = 0
    for g in range(groups):
        at = _copy_out(codes, counts, offset[g], size[g], once, out, at)
        ends[g] = at
    i = 0
    while i < code.size:
        r = run[i]
        g = group_of_run[r]
        base = offset[g]
        i, size[g] = _take_run(i, code, weight, run, codes, counts, base, size[g])
        at = _copy_out(codes, counts, base, size[g], once, out, at)
        ends[groups + r] = at


@njit(cache=True, nogil=True)
def gather_slices(begin, count, offset, source, target):  # type: ignore[no-untyped-def]
    """Copy source[begin[i]:begin[i]+count[i]] to target[offset[i]:]."""
    for i in range(begin.size):
        for j in range(count[i]):
            target[offset[i] + j] = source[begin[i] + j]


@njit(cache=True, nogil=True)
def compact_slices(offset, size, source):  # type: ignore[no-untyped-def]
    """All slices one after another."""
    total = 0
    for g in range(size.size):
        total += size[g]
    out = np.empty(total, source.dtype)
    at = 0
    for g in range(size.size):
        for j in range(size[g]):
            out[at] = source[offset[g] + j]
            at += 1
    return out
