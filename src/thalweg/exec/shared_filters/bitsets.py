"""Sets of queries as bit sets: those that hold in a cell, and intersections of several."""

from __future__ import annotations

import numpy as np
from numba import njit

_SEQUENCE = np.uint64(0x03F79D71B4CB0A89)
"""A de Bruijn sequence: the first six bits of its shift by n identify n."""
_PLACES = np.zeros(64, np.int32)
for _bit in range(64):
    _PLACES[((int(_SEQUENCE) << _bit) & 0xFFFF_FFFF_FFFF_FFFF) >> 58] = _bit


@njit(cache=True, nogil=True)
def sets_in_cells(cells, first, last, by_first, by_last):  # type: ignore[no-untyped-def]
    """Per cell, in ascending order, the set of runs that it lies in. `by_first` and `by_last` are
    the runs in the order of their first and last cells."""
    runs = first.size
    words = (runs + 63) // 64
    out = np.zeros((cells.size, words), np.uint64)
    now = np.zeros(words, np.uint64)
    one = np.uint64(1)
    begun = 0
    ended = 0
    for i in range(cells.size):
        cell = cells[i]
        while begun < runs and first[by_first[begun]] <= cell:
            run = by_first[begun]
            now[run >> 6] |= one << np.uint64(run & 63)
            begun += 1
        while ended < runs and last[by_last[ended]] < cell:
            run = by_last[ended]
            now[run >> 6] &= ~(one << np.uint64(run & 63))
            ended += 1
        out[i] = now
    return out


@njit(cache=True, nogil=True)
def members(sets):  # type: ignore[no-untyped-def]
    """(row, member) of every set, rows ascending, members ascending within each."""
    rows, words = sets.shape
    total = 0
    for i in range(rows):
        for w in range(words):
            bits = sets[i, w]
            while bits:
                bits &= bits - np.uint64(1)
                total += 1
    whose = np.empty(total, np.int32)
    member = np.empty(total, np.int32)
    at = 0
    for i in range(rows):
        for w in range(words):
            bits = sets[i, w]
            while bits:
                lowest = bits & (~bits + np.uint64(1))
                whose[at] = i
                member[at] = (w << 6) + _PLACES[(lowest * _SEQUENCE) >> np.uint64(58)]
                at += 1
                bits ^= lowest
    return whose, member
