"""Rows grouped by (cell, key)."""

from __future__ import annotations

import numpy as np

from thalweg.instants import Ints
from thalweg.store.hashing import Hashes


def grouped(keys: Hashes, cells: Ints, counts: Ints) -> tuple[Hashes, Ints, Ints]:
    """Each (cell, key) once, in ascending order, with the sum of its counts."""
    if not len(keys):
        return keys, cells, counts
    order = np.lexsort((keys, cells))
    keys, cells, counts = keys[order], cells[order], counts[order]
    fresh = (keys[1:] != keys[:-1]) | (cells[1:] != cells[:-1])
    starts = np.flatnonzero(np.append(True, fresh))
    return keys[starts], cells[starts], np.add.reduceat(counts, starts)


def largest_per_cell(cells: Ints, counts: Ints, size: int) -> Ints:
    """The largest count of each cell, 0 where it has none."""
    found = np.zeros(size, np.int64)
    np.maximum.at(found, cells, counts)
    return found
