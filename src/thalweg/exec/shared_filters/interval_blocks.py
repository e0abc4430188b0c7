"""Queries with a narrow condition (one value or few) on some column, found by the cell of that
column.

A run of cells is cut into blocks of 1, 2, 4, ... cells, each beginning at a multiple of its size; a
cell lies in one block of each size. The queries of a block are adjacent in memory, with all their
conditions, so that they are read sequentially.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from numba import njit

from thalweg.exec.shared_filters.cells import Cells
from thalweg.instants import Ints

Numbers = npt.NDArray[np.int32]


class Blocks:
    """Some queries by their runs in one column; `runs` are those in all columns."""

    def __init__(
        self, queries: Ints, column: str, runs: Mapping[str, tuple[Numbers, Numbers]]
    ) -> None:
        self.column = column
        self._columns = tuple(runs)
        first, last = runs[column]
        cells = int(last[queries].max(initial=0)) + 1
        starts: list[Ints] = []
        members: list[Ints] = []
        low, high = first[queries].astype(np.int64), last[queries].astype(np.int64) + 1
        size = 0
        while len(queries):
            odd, even = low % 2 == 1, high % 2 == 1
            block = np.concatenate([low[odd], high[even] - 1])
            whose = np.concatenate([queries[odd], queries[even]])
            many = np.bincount(block, minlength=(cells >> size) + 1)
            starts.append(np.concatenate([[0], np.cumsum(many)]) + sum(m.size for m in members))
            members.append(whose[np.argsort(block, kind="stable")])
            low, high = (low + odd) >> 1, (high - even) >> 1
            left = low < high
            queries, low, high = queries[left], low[left], high[left]
            size += 1
        self._sizes = np.cumsum([0, *(s.size for s in starts)])
        self._starts = np.concatenate(starts)
        self._queries = np.concatenate(members)
        self._first = np.stack([runs[n][0][self._queries] for n in runs], axis=1)
        self._last = np.stack([runs[n][1][self._queries] for n in runs], axis=1)

    def found(self, kinds: Mapping[str, Cells]) -> tuple[Ints, Ints]:
        """(kind, query) of all queries whose runs contain a kind of row, in every column."""
        cells = np.stack([kinds[name] for name in self._columns], axis=1)
        whose, at = _within(
            kinds[self.column], cells, self._sizes, self._starts, self._first, self._last
        )
        return whose, self._queries[at]


@njit(cache=True, nogil=True)
def _within(mine, cells, sizes, starts, first, last):  # type: ignore[no-untyped-def]
    """Per kind the places in its blocks whose runs contain it; counted first, then written."""
    kinds = mine.size
    total = 0
    whose = np.empty(0, np.int64)
    found = np.empty(0, np.int64)
    for writing in (False, True):
        if writing:
            whose = np.empty(total, np.int64)
            found = np.empty(total, np.int64)
            total = 0
        for kind in range(kinds):
            cell = mine[kind]
            if cell < 0:
                continue
            for size in range(sizes.size - 1):
                block = sizes[size] + (cell >> size)
                if block >= sizes[size + 1] - 1:
                    continue
                for at in range(starts[block], starts[block + 1]):
                    lies = True
                    for column in range(cells.shape[1]):
                        there = cells[kind, column]
                        if there < first[at, column] or there > last[at, column]:
                            lies = False
                            break
                    if lies:
                        if writing:
                            whose[total] = kind
                            found[total] = at
                        total += 1
    return whose, found
