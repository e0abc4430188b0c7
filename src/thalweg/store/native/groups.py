"""Equal rows, found by hashing."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def number_rows(values):  # type: ignore[no-untyped-def]
    """Numbers for the rows of a matrix, equal for equal rows, in the order in which they first
    occur; and the first row of each number."""
    n, width = values.shape
    size = 16
    while size < 2 * n:
        size *= 2
    mask = np.uint64(size - 1)
    table = np.full(size, -1, np.int64)
    numbers = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    count = 0
    for row in range(n):
        code = np.uint64(0x9E3779B97F4A7C15)
        for j in range(width):
            code = (code ^ np.uint64(values[row, j])) * np.uint64(0xFF51AFD7ED558CCD)
            code ^= code >> np.uint64(32)
        at = code & mask
        while True:
            number = table[at]
            if number < 0:
                number = count
                table[at] = number
                first[number] = row
                count += 1
                break
            known = first[number]
            same = True
            for j in range(width):
                if values[known, j] != values[row, j]:
                    same = False
                    break
            if same:
                break
            at = (at + np.uint64(1)) & mask
        numbers[row] = number
    return numbers, first[:count].copy()
