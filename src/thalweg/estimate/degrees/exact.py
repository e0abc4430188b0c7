"""Exact degrees: every key and its count, sorted by cell and hash."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.estimate.degrees.runs import grouped, largest_per_cell
from thalweg.instants import Ints
from thalweg.store.hashing import Hashes


class ExactDegrees:
    """Keeps a count per (cell, key), so the largest one is the truth; space grows with the distinct
    keys. Rows that were counted can be taken out again."""

    def __init__(self, cells: int) -> None:
        self.size = cells
        self.keys = np.empty(0, np.uint64)
        self.cells = np.empty(0, np.int64)
        self.counts = np.empty(0, np.int64)

    def update(self, keys: Hashes, cells: Ints) -> None:
        self._add(keys, cells, np.ones(len(keys), np.int64))

    def merge(self, other: ExactDegrees) -> None:
        self._add(other.keys, other.cells, other.counts)

    def subtract(self, other: ExactDegrees) -> None:
        """Take out rows that were counted before."""
        self._add(other.keys, other.cells, -other.counts)
        left = self.counts > 0
        self.keys, self.cells, self.counts = self.keys[left], self.cells[left], self.counts[left]

    def largest(self) -> npt.NDArray[np.float64]:
        return largest_per_cell(self.cells, self.counts, self.size).astype(np.float64)

    def _add(self, keys: Hashes, cells: Ints, counts: Ints) -> None:
        self.keys, self.cells, self.counts = grouped(
            np.append(self.keys, keys), np.append(self.cells, cells),
            np.append(self.counts, counts),
        )  # fmt: skip
