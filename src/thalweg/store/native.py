"""Compiled loops, where NumPy has no vectorised form: sorting, matching, expanding, set tests.

All kernels work on int64/uint64 arrays and are cached on disk, so only the very first import on a
machine compiles. Times are microseconds; hashes are uint64 whose top bits are the bucket.
"""

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
    """Write a range down; how many there are of it: none, if it is empty."""
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
    """Where runs of near hashes begin, about a row to a run: (first hash, shift, starts)."""
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
    """`match_ranges` where each needle begins as the directory says: it makes up for itself at once
    where there are as many rows as needles, and the fewer needles the more. All times lie between
    the `earliest` and the `latest`: other needles are not looked up."""
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
def alive_pairs(  # type: ignore[no-untyped-def]
    needle_hash, needle_second, needle_stamp, instants, source, departing,
    hashes, seconds, starts, ends, last, first, stamps,
):  # fmt: skip
    """(needle, row) of all rows with the needle's key (and stamp, unless that is below 0) that are
    there for it at its instant. Rows are sorted by (hash, start). At an instant a needle that
    appears meets rows whose last comer stands before `source`; one that vanishes meets rows whose
    first goer stands behind it."""
    n = needle_hash.size
    begin = np.empty(n, np.int64)
    total = 0
    at = 0
    last_hash = np.uint64(0)
    never = np.int64(-(2**62))
    for i in range(n):
        h = needle_hash[i]
        if h < last_hash:
            at = 0
        at = _seek(hashes, starts, h, never, at)
        last_hash = h
        begin[i] = at
        j = at
        while j < hashes.size and hashes[j] == h and starts[j] <= instants[i]:
            total += 1
            j += 1
    needle = np.empty(total, np.int64)
    row = np.empty(total, np.int64)
    found = 0
    for i in range(n):
        t = instants[i]
        j = begin[i]
        while j < hashes.size and hashes[j] == needle_hash[i] and starts[j] <= t:
            if departing:
                meets = starts[j] < t and (ends[j] > t or (ends[j] == t and first[j] > source))
            else:
                meets = ends[j] > t and (starts[j] < t or last[j] < source)
            fits = needle_stamp[i] < 0 or stamps[j] == needle_stamp[i]
            if meets and fits and seconds[j] == needle_second[i]:
                needle[found] = i
                row[found] = j
                found += 1
            j += 1
    return needle[:found], row[:found]


@njit(cache=True, nogil=True)
def by_high_bits(values, bits):  # type: ignore[no-untyped-def]
    """Values by what their bits above the lowest say: (what, where they begin, how many, which, low
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


@njit(cache=True, nogil=True)
def mix(values):  # type: ignore[no-untyped-def]
    """A bijection of 64-bit integers that scatters neighbours (splitmix64's finaliser)."""
    out = np.empty(values.size, np.uint64)
    for i in range(values.size):
        x = np.uint64(values[i])
        x ^= x >> np.uint64(30)
        x *= np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(27)
        x *= np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        out[i] = x
    return out


@njit(cache=True, nogil=True)
def hash_bytes(offsets, data):  # type: ignore[no-untyped-def]
    """64-bit hash of each slice data[offsets[i]:offsets[i+1]]."""
    n = offsets.size - 1
    out = np.empty(n, np.uint64)
    prime = np.uint64(0x100000001B3)
    for i in range(n):
        h = np.uint64(0xCBF29CE484222325)
        for j in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(data[j])) * prime
        h ^= h >> np.uint64(32)
        h *= np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
        out[i] = h
    return out


@njit(cache=True, nogil=True)
def combine(left, right):  # type: ignore[no-untyped-def]
    """Order-sensitive combination of two hash columns."""
    out = np.empty(left.size, np.uint64)
    for i in range(left.size):
        x = left[i] * np.uint64(0x9E3779B97F4A7C15) + right[i]
        x ^= x >> np.uint64(32)
        x *= np.uint64(0xD6E8FEB86659FD93)
        x ^= x >> np.uint64(32)
        out[i] = x
    return out


@njit(cache=True, nogil=True)
def hash_bytes_again(offsets, data):  # type: ignore[no-untyped-def]
    """A second hash of each slice, of another family than `hash_bytes`."""
    n = offsets.size - 1
    out = np.empty(n, np.uint64)
    for i in range(n):
        h = np.uint64(0x9E3779B97F4A7C15)
        for j in range(offsets[i], offsets[i + 1]):
            h += np.uint64(data[j]) + np.uint64(1)
            h ^= h >> np.uint64(29)
            h *= np.uint64(0xFF51AFD7ED558CCD)
            h = (h << np.uint64(23)) | (h >> np.uint64(41))
        h ^= h >> np.uint64(33)
        out[i] = h * np.uint64(0xC4CEB9FE1A85EC53)
    return out


@njit(cache=True, nogil=True)
def split_runs(first, second, ts, order):  # type: ignore[no-untyped-def]
    """Cut rows in (first, second, time) order into groups and runs of equal time within them.

    `second` may be empty: then the first hash tells all. Returns the run of each sorted row, the
    group and time of each run, the first sorted row and the first run of each group, and whether
    rows of one first hash differ in the second (then the order is wrong).
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
