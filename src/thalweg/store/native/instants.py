"""Rows by their times, and sets of instants as bits."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def rows_between(ts, low, high):  # type: ignore[no-untyped-def]
    """Positions with low ≤ time < high, in order."""
    found = np.empty(ts.size, np.int64)
    n = 0
    for i in range(ts.size):
        if low <= ts[i] < high:
            found[n] = i
            n += 1
    return found[:n].copy()


@njit(cache=True, nogil=True)
def mark_instants(bits, instants, base):  # type: ignore[no-untyped-def]
    """Set one bit per instant in a table of a power-of-two size (instants may share bits)."""
    mask = np.uint64(bits.size * 8 - 1)
    for i in range(instants.size):
        at = np.uint64(instants[i] - base) & mask
        bits[at >> np.uint64(3)] |= np.uint8(1 << (at & np.uint64(7)))


@njit(cache=True, nogil=True)
def test_instants(bits, instants, base):  # type: ignore[no-untyped-def]
    """Which instants have their bit set; false positives only."""
    mask = np.uint64(bits.size * 8 - 1)
    found = np.empty(instants.size, np.bool_)
    for i in range(instants.size):
        at = np.uint64(instants[i] - base) & mask
        found[i] = (bits[at >> np.uint64(3)] >> np.uint8(at & np.uint64(7))) & 1
    return found
