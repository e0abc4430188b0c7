"""Degrees by Misra-Gries counters as they stand: an estimate, as the source has it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.estimate.degrees.mg_safe import COUNTERS, SafeMisraGries
from thalweg.estimate.degrees.runs import largest_per_cell
from thalweg.instants import Ints
from thalweg.store.hashing import Hashes


class RawMisraGries:
    """The counters of Misra-Gries without what they undercount: their largest may be too low, and
    what is made of it is no bound."""

    def __init__(self, cells: int, counters: int = COUNTERS) -> None:
        self._counted = SafeMisraGries(cells, counters)

    def update(self, keys: Hashes, cells: Ints) -> None:
        self._counted.update(keys, cells)

    def merge(self, other: RawMisraGries) -> None:
        self._counted.merge(other._counted)

    def largest(self) -> npt.NDArray[np.float64]:
        kept = self._counted
        return largest_per_cell(kept.cells, kept.counts, kept.size).astype(np.float64)
