"""Degrees by Misra-Gries counters, with what they undercount."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.estimate.degrees.runs import grouped, largest_per_cell
from thalweg.instants import Ints
from thalweg.store.hashing import Hashes

COUNTERS = 8


class SafeMisraGries:
    """Per cell at most `counters` keys with their counts, and by how much a count may be too low.

    Where a cell has more keys, the largest count beyond the budget is taken from all of them; what
    was taken is summed, also over merges (mergeable summaries, Agarwal et al.). A key's rows are at
    most its count plus that sum, so the largest count plus the sum is never too low.
    """

    def __init__(self, cells: int, counters: int = COUNTERS) -> None:
        self.size, self.budget = cells, counters
        self.keys = np.empty(0, np.uint64)
        self.cells = np.empty(0, np.int64)
        self.counts = np.empty(0, np.int64)
        self.missing = np.zeros(cells, np.int64)
        """Per cell how much lower than the truth a count may be."""

    def update(self, keys: Hashes, cells: Ints) -> None:
        self._add(keys, cells, np.ones(len(keys), np.int64))

    def merge(self, other: SafeMisraGries) -> None:
        self.missing += other.missing
        self._add(other.keys, other.cells, other.counts)

    def largest(self) -> npt.NDArray[np.float64]:
        found = largest_per_cell(self.cells, self.counts, self.size) + self.missing
        return found.astype(np.float64)

    def _add(self, keys: Hashes, cells: Ints, counts: Ints) -> None:
        keys, cells, counts = grouped(
            np.append(self.keys, keys), np.append(self.cells, cells),
            np.append(self.counts, counts),
        )  # fmt: skip
        order = np.lexsort((-counts, cells))
        keys, cells, counts = keys[order], cells[order], counts[order]
        place = np.arange(len(cells)) - np.searchsorted(cells, cells)
        taken = np.zeros(self.size, np.int64)
        beyond = place == self.budget
        taken[cells[beyond]] = counts[beyond]
        self.missing += taken
        left = counts - taken[cells]
        kept = (left > 0) & (place < self.budget)
        self.keys, self.cells, self.counts = keys[kept], cells[kept], left[kept]
