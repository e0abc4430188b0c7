"""Degrees as sums of each part's own maximum: one number per cell, safe and loosest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.estimate.degrees.runs import grouped, largest_per_cell
from thalweg.instants import Ints
from thalweg.store.hashing import Hashes


class SumOfMax:
    """Per cell the sum over parts of the largest degree within the part: no key has more rows than
    that in all parts together. Every update is a part."""

    def __init__(self, cells: int) -> None:
        self.sums = np.zeros(cells, np.int64)

    def update(self, keys: Hashes, cells: Ints) -> None:
        _, found, counts = grouped(keys, cells, np.ones(len(keys), np.int64))
        self.sums += largest_per_cell(found, counts, len(self.sums))

    def merge(self, other: SumOfMax) -> None:
        self.sums += other.sums

    def largest(self) -> npt.NDArray[np.float64]:
        return self.sums.astype(np.float64)
