"""Matches of rows with a sorted index, and all pairs of them."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _seek(hashes, ts, h, t, start):  # type: ignore[no-untyped-def]
    """First position ≥ start with (hash, time) ≥ (h, t), by galloping."""
    n = hashes.size
    if start >= n or hashes[start] > h or (hashes[start] == h and ts[start] >= t):
        return start
    step = 1
    low = start
    high = start + 1
    while high < n and (hashes[high] < h or (hashes[high] == h and ts[high] < t)):
        low = high
        step *= 2
        high = low + step
    if high > n:
        high = n
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if hashes[middle] < h or (hashes[middle] == h and ts[middle] < t):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _note(needle, begin, count, place, i, at, size):  # type: ignore[no-untyped-def]
    """Write a range, unless it is empty; returns how many were written."""
    needle[place] = i
    begin[place] = at
    count[place] = size
    return 1 if size > 0 else 0


@njit(cache=True, nogil=True)
def match_ranges(needle_hash, needle_low, needle_high, hashes, ts):  # type: ignore[no-untyped-def]
    """Positions with a needle's hash and low ≤ time ≤ high, as ranges: (needle, begin, count) of
    those that have any, and how many positions there are in all.

    Needles in (hash, low) order make it a merge; in any other order it is still right.
    """
    n = needle_hash.size
    needle = np.empty(n, np.int64)
    begin = np.empty(n, np.int64)
    count = np.empty(n, np.int64)
    at = 0
    last_hash = np.uint64(0)
    last_low = np.int64(-(2**62))
    found = 0
    total = 0
    for i in range(n):
        h = needle_hash[i]
        low = needle_low[i]
        if h < last_hash or (h == last_hash and low < last_low):
            at = 0
        at = _seek(hashes, ts, h, low, at)
        last_hash = h
        last_low = low
        if needle_high[i] >= low and at < hashes.size and hashes[at] == h:
            size = _seek(hashes, ts, h, needle_high[i] + 1, at) - at
            found += _note(needle, begin, count, found, i, at, size)
            total += size
    return needle[:found], begin[:found], count[:found], total


@njit(cache=True, nogil=True)
def hash_directory(hashes):  # type: ignore[no-untyped-def]
    """A directory of the starts of runs of near hashes, about a row to a run: (first hash, shift,
    starts)."""
    n = hashes.size
    base = hashes[0]
    span = hashes[n - 1] - base
    shift = np.uint64(0)
    while (span >> shift) >= np.uint64(max(n, 2)):  # at two, 63 bits are shifted at most
        shift += np.uint64(1)
    starts = np.empty(np.int64(span >> shift) + 2, np.int32)
    at = 0
    for i in range(n):
        run = np.int64((hashes[i] - base) >> shift)
        while at <= run:
            starts[at] = i
            at += 1
    starts[at:] = n
    return base, shift, starts


@njit(cache=True, nogil=True)
def match_by_directory(  # type: ignore[no-untyped-def]
    needle_hash, needle_low, needle_high, hashes, ts, earliest, latest, base, shift, starts
):
    """`match_ranges` where each needle begins as the directory says: it pays at once where there
    are as many rows as needles, and the fewer needles the more. All times lie between the
    `earliest` and the `latest`: other needles are not looked up."""
    n = needle_hash.size
    needle = np.empty(n, np.int64)
    begin = np.empty(n, np.int64)
    count = np.empty(n, np.int64)
    runs = np.uint64(starts.size - 1)
    found = 0
    total = 0
    for i in range(n):
        h = needle_hash[i]
        low = needle_low[i]
        high = needle_high[i]
        run = (h - base) >> shift
        if low > latest or high < earliest or low > high or h < base or run >= runs:
            continue
        at = _seek(hashes, ts, h, low, starts[np.int64(run)])
        if at < hashes.size and hashes[at] == h:
            size = _seek(hashes, ts, h, high + 1, at) - at
            found += _note(needle, begin, count, found, i, at, size)
            total += size
    return needle[:found], begin[:found], count[:found], total


@njit(cache=True, nogil=True)
def expand_ranges(begin, count, total):  # type: ignore[no-untyped-def]
    """(range, position) for every position of every range."""
    which = np.empty(total, np.int64)
    position = np.empty(total, np.int64)
    at = 0
    for i in range(begin.size):
        for j in range(count[i]):
            which[at] = i
            position[at] = begin[i] + j
            at += 1
    return which, position


@njit(cache=True, nogil=True)
def expand_matches(needle, begin, count, total):  # type: ignore[no-untyped-def]
    """(needle, position) for every position of every range."""
    which, position = expand_ranges(begin, count, total)
    for i in range(total):
        which[i] = needle[which[i]]
    return which, position


@njit(cache=True, nogil=True)
def match_pairs(needle_hash, needle_low, needle_high, hashes, ts):  # type: ignore[no-untyped-def]
    """(needle, position) for all that `match_ranges` finds."""
    needle, begin, count, total = match_ranges(needle_hash, needle_low, needle_high, hashes, ts)
    return expand_matches(needle, begin, count, total)


@njit(cache=True, nogil=True)
def expand_some(needle, begin, count, among):  # type: ignore[no-untyped-def]
    """(needle, position) for every position of the ranges of the needles among all."""
    total = 0
    for i in range(needle.size):
        if among[needle[i]]:
            total += count[i]
    whose = np.empty(total, np.int64)
    position = np.empty(total, np.int64)
    at = 0
    for i in range(needle.size):
        if among[needle[i]]:
            for j in range(count[i]):
                whose[at] = needle[i]
                position[at] = begin[i] + j
                at += 1
    return whose, position
