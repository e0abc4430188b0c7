"""The predicate index: which of many conjunctions each row of a slice satisfies.

Factors `column RELOP constant` become runs of cells (`cells.py`), one per query and column. Rows in
the same cells satisfy the same queries, so only *kinds* of rows are matched. Queries with a narrow
condition on some column are found by the cell (`interval_blocks.py`) and then tested on their other
runs; the rest are found as bit sets, one per column, which are intersected.

Reference: Chandrasekaran and Franklin, Streaming Queries over Streaming Data (VLDB 2002).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.columns.vector import Mask
from thalweg.exec.shared_filters.bitsets import members, sets_in_cells
from thalweg.exec.shared_filters.cells import ANYWHERE, OPERATORS, Cells, CellsOf, Values
from thalweg.exec.shared_filters.interval_blocks import Blocks, Numbers
from thalweg.instants import Ints
from thalweg.store import native

_FEW = 64
"""A run is narrow if it covers at most 1 / `_FEW` of the cells: as bits, this many queries are
tested at a time."""
_SAMPLE = 1024
"""The number of rows sampled to see whether rows repeat at all."""
_SET_BYTES = 64 << 20
"""Bit sets are made for as many kinds of rows at a time as fit into this many bytes."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A comparison of a column with a constant; the operators are those of `OPERATORS`."""

    column: str
    operator: str
    constant: Any


@dataclass(frozen=True, slots=True)
class Matches:
    """Per row its kind, and per kind the queries (their numbers) that it satisfies: those of kind k
    are `queries[begin[k] : begin[k + 1]]`."""

    kind: Numbers
    begin: Ints
    queries: Numbers

    def pairs(self) -> tuple[Ints, Numbers]:
        """(row, query) for every row and every query it satisfies, by row."""
        count = np.diff(self.begin)[self.kind]
        begin = self.begin[:-1][self.kind]
        row, at = native.expand_ranges(begin, count, int(count.sum()))
        return row, self.queries[at]


@dataclass(frozen=True, slots=True)
class Asked:
    """All factors of one column: their queries, operators and constants."""

    queries: Ints
    operators: npt.NDArray[Any]
    constants: npt.NDArray[Any]


class PredicateIndex:
    """An index over `count` conjunctions of factors, by the columns that they test. A conjunction
    without factors holds for every row."""

    def __init__(self, count: int, asked: Mapping[str, Asked]) -> None:
        self.count = count
        self.columns = tuple(asked)
        self._cells: dict[str, CellsOf] = {}
        self._runs: dict[str, tuple[Numbers, Numbers]] = {}
        for name, found in asked.items():
            self._cells[name] = CellsOf(found.constants)
            self._runs[name] = _runs(self._cells[name], found, self.count)
        narrow, wide = self._parted()
        self._narrow = [Blocks(mine, name, self._runs) for name, mine in narrow.items()]
        self._wide = _Wide(wide, self._runs)

    @staticmethod
    def of(
        queries: Sequence[Sequence[Factor]], dtypes: Mapping[str, npt.DTypeLike]
    ) -> PredicateIndex:
        """Build the index from conjunctions; `dtypes` are those that the columns are compared
        in."""
        given: dict[str, list[tuple[int, Factor]]] = {}
        for number, factors in enumerate(queries):
            for factor in factors:
                given.setdefault(factor.column, []).append((number, factor))
        asked = {
            name: Asked(
                np.array([number for number, _ in found]),
                np.array([f.operator for _, f in found]),
                np.array([f.constant for _, f in found], dtypes[name]),
            )
            for name, found in given.items()
        }
        return PredicateIndex(len(queries), asked)

    def _parted(self) -> tuple[dict[str, Ints], Ints]:
        """By column the queries with a narrow run there, each by its narrowest, and the others;
        contradictory ones are left out."""
        possible = np.ones(self.count, np.bool_)
        share = np.ones(self.count)
        best = np.full(self.count, -1)
        for n, name in enumerate(self.columns):
            first, last = self._runs[name]
            possible &= first <= last
            mine = np.where(first >= 0, (last - first + 1) / (self._cells[name].last + 1), 1.0)
            mine[(first == last) & (first % 2 == 1)] /= _FEW  # one value is less than a gap
            best[mine < share] = n
            share = np.minimum(mine, share)
        found = possible & (share <= 1 / _FEW) & (best >= 0)
        narrow = {name: np.flatnonzero(found & (best == n)) for n, name in enumerate(self.columns)}
        return {n: q for n, q in narrow.items() if len(q)}, np.flatnonzero(possible & ~found)

    def match(self, columns: Mapping[str, tuple[Values, Mask | None]], rows: int) -> Matches:
        """Match rows; columns are given as values and where they are not NULL."""
        cells = {name: self._cells[name].of(*columns[name]) for name in self.columns}
        return self.match_cells(cells, rows)

    def cells_of(self, column: str) -> CellsOf:
        """The cells of a column's values."""
        return self._cells[column]

    def match_cells(self, cells: Mapping[str, Cells], rows: int) -> Matches:
        """Match rows whose cells are known."""
        if not rows:
            none = np.empty(0, np.int32)
            return Matches(none, np.zeros(1, np.int64), none)
        kind, kinds = _kinds(cells, rows)
        number = int(kind.max()) + 1
        found = [blocks.found(kinds) for blocks in self._narrow]
        found += self._wide.found(kinds, number)
        whose = np.concatenate([w for w, _ in found] or [np.empty(0, np.int64)])
        query = np.concatenate([q for _, q in found] or [np.empty(0, np.int64)])
        begin, count, order = native.grouped(whose, query, number)
        return Matches(kind, np.append(begin, count.sum()), order.astype(np.int32))


def _runs(cells: CellsOf, found: Asked, count: int) -> tuple[Numbers, Numbers]:
    """Per query the run of cells that satisfies all its factors of a column; an empty one ends
    before it begins."""
    first = np.full(count, ANYWHERE, np.int32)
    last = np.full(count, cells.last, np.int32)
    for operator in OPERATORS:
        mine = found.operators == operator
        if mine.any():
            low, high = cells.runs(operator, found.constants[mine])
            np.maximum.at(first, found.queries[mine], low)
            np.minimum.at(last, found.queries[mine], high)
    return first, last


def _kinds(cells: Mapping[str, Cells], rows: int) -> tuple[Numbers, dict[str, Cells]]:
    """The kinds of rows, those in the same cells being of one kind: per row its kind, per kind its
    cells."""
    if not cells:
        return np.zeros(rows, np.int32), {}
    some = set(zip(*(c[:_SAMPLE].tolist() for c in cells.values()), strict=True))
    if 4 * len(some) > 3 * min(rows, _SAMPLE):  # each row may as well be a kind of its own
        return np.arange(rows, dtype=np.int32), dict(cells)
    code = np.zeros(rows, np.int64)
    for one in cells.values():
        distinct, place = np.unique(one, return_inverse=True)
        code = code * len(distinct) + place
        _, code = np.unique(code, return_inverse=True)
    _, at, kind = np.unique(code, return_index=True, return_inverse=True)
    return kind.astype(np.int32), {n: c[at] for n, c in cells.items()}


class _Wide:
    """Queries found as sets of bits."""

    def __init__(self, queries: Ints, runs: Mapping[str, tuple[Numbers, Numbers]]) -> None:
        self.queries = queries
        self._runs = {}
        for name, (first, last) in runs.items():
            mine = first[queries], last[queries]
            if (mine[0] > ANYWHERE).any():
                by_first, by_last = (np.argsort(one, kind="stable") for one in mine)
                self._runs[name] = (*mine, by_first, by_last)

    def found(self, kinds: Mapping[str, Cells], number: int) -> list[tuple[Ints, Ints]]:
        """(kind, query), some kinds at a time."""
        if not len(self.queries):
            return []
        words = -(-len(self.queries) // 64)
        step = max(_SET_BYTES // (8 * words * max(len(self._runs), 1)), 1)
        return [self._some(kinds, a, min(a + step, number)) for a in range(0, number, step)]

    def _some(self, kinds: Mapping[str, Cells], low: int, high: int) -> tuple[Ints, Ints]:
        left = np.full((high - low, -(-len(self.queries) // 64)), ~np.uint64(0))
        left[:, -1] >>= np.uint64(-len(self.queries) % 64)
        for name, runs in self._runs.items():
            cells, place = np.unique(kinds[name][low:high], return_inverse=True)
            left &= sets_in_cells(cells, *runs)[place]
        whose, member = members(left)
        return whose.astype(np.int64) + low, self.queries[member]
