"""Orders of rows: by time, by key and time, by groups."""

from __future__ import annotations

import numpy as np
from numba import njit

_DIGIT = 11
_RADIX = 1 << _DIGIT


@njit(cache=True, nogil=True)
def _radix_pass(keys, order, keys_out, order_out, shift):  # type: ignore[no-untyped-def]
    """One stable pass; keys travel with their rows, so that reads are sequential."""
    counts = np.zeros(_RADIX + 1, np.int64)
    mask = np.uint64(_RADIX - 1)
    by = np.uint64(shift)
    for i in range(keys.size):
        counts[np.int64((keys[i] >> by) & mask) + 1] += 1
    for d in range(_RADIX):
        counts[d + 1] += counts[d]
    for i in range(keys.size):
        digit = np.int64((keys[i] >> by) & mask)
        at = counts[digit]
        keys_out[at] = keys[i]
        order_out[at] = order[i]
        counts[digit] = at + 1


@njit(cache=True, nogil=True)
def _is_sorted(values):  # type: ignore[no-untyped-def]
    for i in range(1, values.size):
        if values[i] < values[i - 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def time_order(ts):  # type: ignore[no-untyped-def]
    """Stable permutation that sorts int64 times."""
    n = ts.size
    order = np.arange(n)
    if n < 2 or _is_sorted(ts):
        return order
    low = ts.min()
    span = np.uint64(ts.max() - low)
    keys = np.empty(n, np.uint64)
    for i in range(n):
        keys[i] = np.uint64(ts[i] - low)
    keys_out = np.empty(n, np.uint64)
    order_out = np.empty(n, np.int64)
    shift = 0
    while shift < 64 and (span >> np.uint64(shift)) > 0:
        _radix_pass(keys, order, keys_out, order_out, shift)
        keys, keys_out = keys_out, keys
        order, order_out = order_out, order
        shift += _DIGIT
    return order


@njit(cache=True, nogil=True)
def _ascends(hashes, ts, i, j):  # type: ignore[no-untyped-def]
    return hashes[i] < hashes[j] or (hashes[i] == hashes[j] and ts[i] <= ts[j])


@njit(cache=True, nogil=True)
def _natural_runs(hashes, ts, most):  # type: ignore[no-untyped-def]
    """Where sorted stretches begin, and the end; empty if there are more than `most`."""
    bounds = np.empty(most + 2, np.int64)
    bounds[0] = 0
    runs = 1
    for i in range(1, hashes.size):
        if not _ascends(hashes, ts, i - 1, i):
            if runs > most:
                return bounds[:0]
            bounds[runs] = i
            runs += 1
    if runs > most:
        return bounds[:0]
    bounds[runs] = hashes.size
    return bounds[: runs + 1]


@njit(cache=True, nogil=True)
def _merge_runs(hashes, ts, bounds):  # type: ignore[no-untyped-def]
    """Merge neighbouring sorted runs, two by two, until one is left."""
    n = hashes.size
    order = np.arange(n)
    out = np.empty(n, np.int64)
    while bounds.size > 2:
        runs = bounds.size - 1
        kept = np.empty((runs + 1) // 2 + 1, np.int64)
        kept[0] = 0
        count = 1
        r = 0
        while r < runs:
            begin = bounds[r]
            middle = bounds[r + 1]
            end = bounds[r + 2] if r + 2 <= runs else middle
            i = begin
            j = middle
            for at in range(begin, end):
                if j >= end or (i < middle and _ascends(hashes, ts, order[i], order[j])):
                    out[at] = order[i]
                    i += 1
                else:
                    out[at] = order[j]
                    j += 1
            kept[count] = end
            count += 1
            r += 2
        order, out = out, order
        bounds = kept[:count]
    return order


_MOST_RUNS = 32


@njit(cache=True, nogil=True)
def key_time_order(hashes, ts):  # type: ignore[no-untyped-def]
    """Stable permutation that sorts by (hash, time).

    Input that consists of a few sorted runs is merged. Otherwise radix passes over the top 44
    bits of the hash bring equal hashes together but for rare neighbours that differ below; an
    insertion step puts those right.
    """
    n = hashes.size
    bounds = _natural_runs(hashes, ts, _MOST_RUNS)
    if bounds.size:
        return _merge_runs(hashes, ts, bounds)
    order = time_order(ts)
    keys = np.empty(n, np.uint64)
    for i in range(n):
        keys[i] = hashes[order[i]]
    keys_out = np.empty(n, np.uint64)
    order_out = np.empty(n, np.int64)
    for p in range(4):
        _radix_pass(keys, order, keys_out, order_out, 20 + p * _DIGIT)
        keys, keys_out = keys_out, keys
        order, order_out = order_out, order
    for i in range(1, n):
        key = keys[i]
        row = order[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            order[j] = order[j - 1]
            j -= 1
        keys[j] = key
        order[j] = row
    return order


@njit(cache=True, nogil=True)
def by_high_bits(values, bits):  # type: ignore[no-untyped-def]
    """Values grouped by their bits above the lowest: (what, where they begin, how many, which, low
    bits of each), the last two in that order."""
    if values.size == 0:
        none = np.empty(0, np.int64)
        return none, none, none, none, none
    least = most = values[0] >> bits
    for i in range(values.size):
        least = min(least, values[i] >> bits)
        most = max(most, values[i] >> bits)
    count = np.zeros(most - least + 1, np.int64)
    for i in range(values.size):
        count[(values[i] >> bits) - least] += 1
    what = np.flatnonzero(count)
    next_ = np.zeros(most - least + 1, np.int64)
    total = 0
    begin = np.empty(what.size, np.int64)
    for i in range(what.size):
        begin[i] = total
        next_[what[i]] = total
        total += count[what[i]]
    which = np.empty(values.size, np.int64)
    low = np.empty(values.size, np.int64)
    mask = (np.int64(1) << bits) - 1
    for i in range(values.size):
        high = (values[i] >> bits) - least
        which[next_[high]] = i
        low[next_[high]] = values[i] & mask
        next_[high] += 1
    return what + least, begin, count[what], which, low


@njit(cache=True, nogil=True)
def grouped(group, rows, groups):  # type: ignore[no-untyped-def]
    """Rows by group: per group where its rows begin in the third array, and how many they are."""
    count = np.zeros(groups, np.int64)
    for i in range(group.size):
        count[group[i]] += 1
    begin = np.empty(groups, np.int64)
    total = 0
    for i in range(groups):
        begin[i] = total
        total += count[i]
    order = np.empty(rows.size, np.int64)
    next_ = begin.copy()
    for i in range(group.size):
        order[next_[group[i]]] = rows[i]
        next_[group[i]] += 1
    return begin, count, order


@njit(cache=True, nogil=True)
def split_runs(first, second, ts, order):  # type: ignore[no-untyped-def]
    """Cut rows in (first, second, time) order into groups and runs of equal time within them.

    `second` may be empty: then the first hash identifies a group. Returns the run of each sorted
    row, the group and time of each run, the first sorted row and the first run of each group, and
    whether rows of one first hash differ in the second (then the order is wrong).
    """
    n = order.size
    run = np.empty(n, np.int64)
    group_of_run = np.empty(n, np.int64)
    instants = np.empty(n, np.int64)
    heads = np.empty(n, np.int64)
    first_runs = np.empty(n, np.int64)
    runs = groups = 0
    collides = False
    for i in range(n):
        row = order[i]
        fresh = i == 0
        if i > 0:
            before = order[i - 1]
            if first[row] != first[before]:
                fresh = True
            elif second.size and second[row] != second[before]:
                fresh = True
                collides = True
        if fresh:
            heads[groups] = i
            first_runs[groups] = runs
            groups += 1
        if fresh or ts[row] != instants[runs - 1]:
            group_of_run[runs] = groups - 1
            instants[runs] = ts[row]
            runs += 1
        run[i] = runs - 1
    return (
        run,
        group_of_run[:runs],
        instants[:runs],
        heads[:groups],
        first_runs[:groups].copy(),
        collides,
    )
