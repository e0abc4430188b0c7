"""Degrees by count-min: linear, so that rows which leave a window are subtracted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.estimate.keys.compiled import add_counters
from thalweg.instants import Ints
from thalweg.store.hashing import Hashes

COUNTERS = 1 << 13
"""Counters of one row of the sketch, shared by all cells, but at least 8 a cell."""
ROWS = 2


class CountMin:
    """Per cell some rows of counters; each key adds to one counter of every row.

    A counter holds all rows of its keys, so the fullest counter of a row is at least the largest
    degree, and so is the lowest of these over the rows. Counters of two sketches add and subtract:
    the guarantee holds for any bag of rows that remains.
    """

    def __init__(self, cells: int, counters: int = COUNTERS, rows: int = ROWS) -> None:
        width = 1 << max((counters // cells).bit_length() - 1, 3)
        assert width <= 1 << 16, "each row takes 16 bits of a hash"
        self.counters = np.zeros((rows, cells, width), np.int64)

    def update(self, keys: Hashes, cells: Ints) -> None:
        add_counters(keys, cells, self.counters, 0, 1)

    def remove(self, keys: Hashes, cells: Ints) -> None:
        """Take out rows that were counted before."""
        add_counters(keys, cells, self.counters, 0, -1)

    def merge(self, other: CountMin) -> None:
        self.counters += other.counters

    def subtract(self, other: CountMin) -> None:
        """Take out the rows of another sketch, which were counted before."""
        self.counters -= other.counters

    def largest(self) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = self.counters.max(2).min(0).astype(np.float64)
        return found
