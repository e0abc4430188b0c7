"""MIN and MAX under insertions and removals.

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
    """Ends known. Group g's front lies at codes[offset[g]:offset[g]+size[g]], best first.

    Codes and ends both ascend: the best value is first and the first to go.
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
def _insert(codes, ends, base, count, value, until):  # type: ignore[no-untyped-def]
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if codes[base + middle] < value:
            low = middle + 1
        else:
            high = middle
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


@njit(cache=True, nogil=True)
def running_multiset(code, weight, run, group_of_run, offset, size, codes, counts, best, has):  # type: ignore[no-untyped-def]
    """Ends unknown: the whole multiset, sorted; `counts` may be zero until the run is over."""
    i = 0
    n = code.size
    while i < n:
        r = run[i]
        g = group_of_run[r]
        base = offset[g]
        count = size[g]
        while i < n and run[i] == r:
            if weight[i] != 0:
                low = 0
                high = count
                while low < high:
                    middle = (low + high) >> 1
                    if codes[base + middle] < code[i]:
                        low = middle + 1
                    else:
                        high = middle
                if low == count or codes[base + low] != code[i]:
                    for j in range(count - 1, low - 1, -1):
                        codes[base + j + 1] = codes[base + j]
                        counts[base + j + 1] = counts[base + j]
                    codes[base + low] = code[i]
                    counts[base + low] = 0
                    count += 1
                counts[base + low] += weight[i]
            i += 1
        kept = 0
        for j in range(count):
            if counts[base + j] != 0:
                codes[base + kept] = codes[base + j]
                counts[base + kept] = counts[base + j]
                kept += 1
        size[g] = kept
        has[r] = kept > 0
        best[r] = codes[base] if kept > 0 else 0


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
