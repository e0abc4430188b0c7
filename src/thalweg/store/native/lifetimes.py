"""Rows by key that are alive at an instant: a sweep over keys and time."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _seek_hash(hashes, h, start):  # type: ignore[no-untyped-def]
    """First position ≥ start whose hash is at least h, by galloping."""
    n = hashes.size
    if start >= n or hashes[start] >= h:
        return start
    step = 1
    low = start
    high = start + 1
    while high < n and hashes[high] < h:
        low = high
        step *= 2
        high = low + step
    high = min(high, n)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if hashes[middle] < h:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _room(values, size):  # type: ignore[no-untyped-def]
    """The array, or a larger copy if it has no room for so many values."""
    if size <= values.size:
        return values
    out = np.empty(max(size, 2 * values.size), values.dtype)
    out[: values.size] = values
    return out


@njit(cache=True, nogil=True)
def alive_pairs(  # type: ignore[no-untyped-def]
    needle_hash, instants, order, source, departing, hashes, starts, ends, last, first
):
    """(needle, row, visits) of all rows with a needle's hash that it meets at its instant, and how
    often a row was looked at.

    `order` sorts the needles by (hash, instant); rows are sorted by (hash, start). At an instant a
    needle that appears meets rows whose last member to appear stands before `source`; one that
    vanishes meets rows whose first member to vanish stands behind it. Rows that have begun are on
    a list and leave it when a needle finds that their life is over, so a row that no needle meets
    is looked at twice at most.
    """
    needle = np.empty(max(order.size, 16), np.int64)
    row = np.empty(needle.size, np.int64)
    living = np.empty(16, np.int64)
    alive = found = at = visits = 0
    current = np.uint64(0)
    for place in range(order.size):
        i = order[place]
        h = needle_hash[i]
        t = instants[i]
        if place == 0 or h != current:
            at = _seek_hash(hashes, h, at)
            alive = 0
            current = h
        while at < hashes.size and hashes[at] == h and starts[at] <= t:
            if ends[at] >= t:
                living = _room(living, alive + 1)
                living[alive] = at
                alive += 1
            at += 1
            visits += 1
        needle = _room(needle, found + alive)
        row = _room(row, found + alive)
        visits += alive
        kept = 0
        for k in range(alive):
            one = living[k]
            if ends[one] < t or (ends[one] == t and not (departing and first[one] > source)):
                continue
            living[kept] = one
            kept += 1
            if starts[one] < t or (not departing and last[one] < source):
                needle[found] = i
                row[found] = one
                found += 1
        alive = kept
    return needle[:found], row[:found], visits
