"""Compiled loops over sorted key hashes and over rows grouped by key."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def merge_distinct(left, right):  # type: ignore[no-untyped-def]
    """The sorted distinct values of two sorted arrays of distinct values."""
    out = np.empty(left.size + right.size, left.dtype)
    i = j = at = 0
    while i < left.size or j < right.size:
        if j >= right.size or (i < left.size and left[i] <= right[j]):
            if j < right.size and left[i] == right[j]:
                j += 1
            out[at] = left[i]
            i += 1
        else:
            out[at] = right[j]
            j += 1
        at += 1
    return out[:at]


@njit(cache=True, nogil=True)
def positions_within(values, among):  # type: ignore[no-untyped-def]
    """For each of some sorted distinct values its place among others, counted from 1; 0: absent."""
    out = np.zeros(values.size, np.int32)
    j = 0
    for i in range(values.size):
        while j < among.size and among[j] < values[i]:
            j += 1
        if j < among.size and among[j] == values[i]:
            out[i] = j + 1
    return out


@njit(cache=True, nogil=True)
def counting_order(codes, distinct):  # type: ignore[no-untyped-def]
    """The rows in ascending order of their code, which is below `distinct`."""
    begin = np.zeros(distinct + 1, np.int64)
    for i in range(codes.size):
        begin[codes[i] + 1] += 1
    for d in range(distinct):
        begin[d + 1] += begin[d]
    out = np.empty(codes.size, np.int64)
    for i in range(codes.size):
        out[begin[codes[i]]] = i
        begin[codes[i]] += 1
    return out


@njit(cache=True, nogil=True)
def runs_per_cell(keys, cells, order, largest, squares):  # type: ignore[no-untyped-def]
    """Per cell the largest number of rows of one key, and the sum of the squares of those numbers.

    `order` has rows of one key next to each other; both results are added to what is there.
    """
    pending = np.zeros(largest.size, np.int64)
    begin = 0
    while begin < order.size:
        key = keys[order[begin]]
        end = begin
        while end < order.size and keys[order[end]] == key:
            pending[cells[order[end]]] += 1
            end += 1
        for at in range(begin, end):
            cell = cells[order[at]]
            count = pending[cell]
            if count:
                largest[cell] = max(largest[cell], count)
                squares[cell] += float(count) * float(count)
                pending[cell] = 0
        begin = end


@njit(cache=True, nogil=True)
def count_keyed(keys, cells, table_keys, table_cells, table_counts):  # type: ignore[no-untyped-def]
    """Rows counted per (key, cell) in an open-addressed table of a power of two of slots, empty
    where its count is 0; how many slots are taken afterwards."""
    mask = np.uint64(table_keys.size - 1)
    taken = 0
    for i in range(keys.size):
        slot = (keys[i] ^ (np.uint64(cells[i]) * np.uint64(0x9E3779B97F4A7C15))) & mask
        while table_counts[np.int64(slot)] and (
            table_keys[np.int64(slot)] != keys[i] or table_cells[np.int64(slot)] != cells[i]
        ):
            slot = (slot + np.uint64(1)) & mask
        at = np.int64(slot)
        if not table_counts[at]:
            table_keys[at] = keys[i]
            table_cells[at] = cells[i]
            taken += 1
        table_counts[at] += 1
    return taken


@njit(cache=True, nogil=True)
def add_counters(keys, cells, counters, shift, sign):  # type: ignore[no-untyped-def]
    """Count-min: each row adds its sign to one counter of its cell in each of the sketch's rows.

    `counters` is (rows, cells, width) with a power of two as width; row r takes the bits of a key
    from `shift + 16 r` on, mixed once."""
    width = np.uint64(counters.shape[2] - 1)
    for i in range(keys.size):
        h = keys[i] * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
        for r in range(counters.shape[0]):
            counters[r, cells[i], np.int64((h >> np.uint64(shift + 16 * r)) & width)] += sign
