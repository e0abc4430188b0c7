"""Few codes for the many values of a column: equal shares of the rows, frequent values alone.

A code stands for the values in (edge before, edge]. Under a condition, the rows that may satisfy
it are those of the codes whose interval it meets: never fewer than do satisfy it. NULL satisfies
no condition, and so has a code of its own, the last one, where the column has NULLs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.estimate.cached import ordered_values
from thalweg.estimate.cached.ordered_values import LEAST, MOST, Order
from thalweg.estimate.join_query import Condition

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class RankedColumn:
    """A column as ranks: what codes are made from, and dropped afterwards."""

    order: Order
    ranks: Array
    null: Array
    texts: list[str] | None
    values: Array
    """Its different ranks, ascending, and how many rows have each."""
    counts: Array

    @staticmethod
    def of(column: pa.Array, order: Order) -> RankedColumn:
        null = column.is_null().to_numpy(zero_copy_only=False)
        texts = None
        if order is Order.TEXT:
            ranks, texts = ordered_values.ranked_texts(column)
        else:
            ranks = ordered_values.integers_of(column)
        values, counts = np.unique(ranks[~null], return_counts=True)
        return RankedColumn(order, ranks, null, texts, values, counts)

    @property
    def has_null(self) -> bool:
        return bool(self.null.any())

    @property
    def wanted(self) -> int:
        """The number of codes with which no two values share one."""
        return len(self.values) + self.has_null


@dataclass(frozen=True, slots=True)
class ValueCodes:
    """The codes of one column.

    `edges` has the highest rank, or text, of each code; `least` the lowest of all. `most` has for
    each code the largest number of rows that share one of its values, `rows` that of its rows.
    """

    order: Order
    edges: Array | list[str]
    least: int | str | None
    most: Array
    rows: Array
    has_null: bool

    @staticmethod
    def of(column: RankedColumn, codes: int) -> ValueCodes:
        """At most `codes` of them, that of NULL included."""
        ends = _ends(column.counts, max(codes - column.has_null, 1))
        starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
        most = np.maximum.reduceat(column.counts, starts) if len(ends) else column.counts
        rows = np.add.reduceat(column.counts, starts) if len(ends) else column.counts
        found = column.values[ends]
        least: Any = int(column.values[0]) if len(ends) else None
        edges: Array | list[str] = found
        if column.texts is not None:
            edges = [column.texts[i] for i in found]
            least = column.texts[least] if least is not None else None
        kept = (most.astype(np.uint32), rows.astype(np.uint32))
        return ValueCodes(column.order, edges, least, *kept, column.has_null)

    def encode(self, column: RankedColumn) -> Array:
        """The code of every row of the column that these codes were made for."""
        edges = self.edges
        if column.texts is not None:
            edges = np.array([bisect_left(column.texts, e) for e in self.edges], np.int64)
        codes = np.searchsorted(edges, column.ranks)
        codes[column.null] = len(self.edges)
        return np.minimum(codes, self.size - 1)

    @property
    def size(self) -> int:
        return max(len(self.edges) + self.has_null, 1)

    @property
    def nbytes(self) -> int:
        if isinstance(self.edges, list):
            return sum(len(e.encode()) + 8 for e in self.edges) + 8 * len(self.most)
        return self.edges.nbytes + 8 * len(self.most)

    def allowed(self, conditions: Iterable[Condition]) -> Array:
        """Which codes hold values that may satisfy all of these conditions."""
        found = np.ones(self.size, np.bool_)
        found[len(self.edges) :] = False
        for condition in conditions:
            found[: len(self.edges)] &= self._meets(condition)
        return found

    def most_rows(self, conditions: Iterable[Condition]) -> int | None:
        """The most rows that these conditions can leave by the sets of values among them.

        Each value of a set has at most as many rows as the most frequent one of its code.
        """
        sums = [self._most_of_set(c.values) for c in conditions if c.values is not None]
        return min((s for s in sums if s is not None), default=None)

    def _most_of_set(self, values: tuple[Any, ...]) -> int | None:
        if not all(self._is_comparable(v) for v in values):
            return None
        return sum(int(self.most[code]) for value in set(values) for code in self._code_of(value))

    def _code_of(self, value: Any) -> list[int]:
        low, high = self._codes_between(value, value)
        return list(range(low, high))

    def _meets(self, condition: Condition) -> Array:
        found = np.zeros(len(self.edges), np.bool_)
        if condition.values is not None:
            if not all(self._is_comparable(v) for v in condition.values):
                return ~found
            for value in condition.values:
                found[slice(*self._codes_between(value, value))] = True
            return found
        low, high = condition.low, condition.high
        found[slice(*self._codes_between(low, high, condition))] = True
        return found

    def _is_comparable(self, constant: Any) -> bool:
        if self.order is Order.TEXT:
            return isinstance(constant, str)
        return ordered_values.is_comparable(self.order, constant)

    def _codes_between(
        self, low: Any, high: Any, condition: Condition | None = None
    ) -> tuple[int, int]:
        """The codes from the first with a value >= low to before the first with none <= high."""
        low = low if low is not None and self._is_comparable(low) else None
        high = high if high is not None and self._is_comparable(high) else None
        open_low = condition is not None and not condition.low_included
        open_high = condition is not None and not condition.high_included
        if self.order is Order.TEXT:
            return self._texts_between(low, high, open_low, open_high)
        first = LEAST if low is None else self._low(low, open_low)
        last = MOST if high is None else self._high(high, open_high)
        return self._ranks_between(first, last)

    def _low(self, low: Any, is_open: bool) -> int:
        """The lowest rank that satisfies a lower limit."""
        exact = ordered_values.exactly(self.order, low)
        if is_open and exact is not None:
            return min(exact + 1, MOST)
        return ordered_values.least_from(self.order, low)

    def _high(self, high: Any, is_open: bool) -> int:
        exact = ordered_values.exactly(self.order, high)
        if is_open and exact is not None:
            return max(exact - 1, LEAST)
        return ordered_values.most_until(self.order, high)

    def _ranks_between(self, first: int, last: int) -> tuple[int, int]:
        if not len(self.edges) or first > last or last < int(self.least or 0):
            return 0, 0
        start = int(np.searchsorted(self.edges, first))
        stop = int(np.searchsorted(self.edges, last)) + 1
        return self._without_end(start, stop, last)

    def _texts_between(
        self, low: str | None, high: str | None, open_low: bool, open_high: bool
    ) -> tuple[int, int]:
        edges: Any = self.edges
        if not edges or (high is not None and _before(high, self.least, open_high)):
            return 0, 0
        start = 0
        if low is not None:
            start = bisect_right(edges, low) if open_low else bisect_left(edges, low)
        if high is None:
            return start, max(len(edges), start)
        stop = bisect_left(edges, high) + 1
        return self._without_end(start, stop, high, open_high)

    def _without_end(
        self, start: int, stop: int, last: Any, is_open: bool = False
    ) -> tuple[int, int]:
        """Without the last code if its only value, which then has all its rows, is too high."""
        stop = min(stop, len(self.edges))
        if stop > start and self.most[stop - 1] == self.rows[stop - 1]:
            edge: Any = self.edges[stop - 1]
            stop -= bool(edge > last or (is_open and edge == last))
        return start, max(stop, start)


def _before(high: str, least: Any, is_open: bool) -> bool:
    return bool(high <= least) if is_open else bool(high < least)


def _ends(counts: Array, codes: int) -> Array:
    """The index of the last value of each code.

    With fewer values than codes each has its own. Otherwise values with at least an equal share of
    the rows stand alone, at most a third of the codes, and the others are cut into runs of equal
    shares of the remaining rows. A run also ends before a value that stands alone.
    """
    if len(counts) <= codes:
        return np.arange(len(counts))
    alone = _alone(counts, codes)
    rest = np.where(alone, 0, counts)
    shares = max(codes - 2 * int(alone.sum()), 1)
    before = np.cumsum(rest) - rest
    run = before * shares // max(int(rest.sum()), 1)
    changes = (run[1:] != run[:-1]) | alone[1:] | alone[:-1]
    return np.append(np.flatnonzero(changes), len(counts) - 1)


def _alone(counts: Array, codes: int) -> Array:
    alone: Array = counts * codes >= counts.sum()
    allowed = max((codes - 1) // 3, 0)
    if alone.sum() > allowed:
        alone = np.zeros(len(counts), np.bool_)
        alone[np.argsort(-counts, kind="stable")[:allowed]] = True
    return alone
