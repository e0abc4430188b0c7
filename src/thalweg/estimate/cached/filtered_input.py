"""One input of a join as its statistics show it under the conditions of the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.estimate.cached import key_values
from thalweg.estimate.cached.key_columns import KeyColumn, buckets_of
from thalweg.estimate.cached.matching_entries import Bits, MatchingEntries, buckets_over
from thalweg.estimate.cached.messages import Message, at_bits
from thalweg.estimate.cached.pair_sketch import PairSketch
from thalweg.estimate.cached.table_statistics import TableStatistics
from thalweg.estimate.cached.value_codes import ValueCodes
from thalweg.estimate.join_query import Condition
from thalweg.store.hashing import NULL_HASH

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class FilteredInput:
    """`columns` has the join column of each attribute; `null_safe` are the attributes for which
    NULL is a key like others."""

    alias: str
    statistics: TableStatistics
    columns: Mapping[str, str]
    conditions: tuple[Condition, ...]
    null_safe: frozenset[str]
    _made: dict[Bits, Message] = field(default_factory=dict)

    @cached_property
    def entries(self) -> MatchingEntries | None:
        """Those of its row sketch, if it has one."""
        sketch = self.statistics.row_sketch
        if sketch is None:
            return None
        keys = key_values.allowed_buckets(self.conditions, self.statistics.keys, sketch.widths.keys)
        dropped = frozenset(c for a, c in self.columns.items() if a not in self.null_safe)
        return MatchingEntries(sketch, self.columns, dropped, self._codes(sketch.codes), keys)

    @property
    def pairs(self) -> PairSketch | None:
        return self.statistics.pair_sketch

    def all_bits(self, attribute: str) -> list[int]:
        """Those of its entries and of its tables per filter column; no bits if it has neither."""
        found = [] if self.entries is None else [self.entries.bits(attribute)]
        found += [] if self.pairs is None else [self.pairs.bits[self.columns[attribute]]]
        return found or [0]

    @cached_property
    def total(self) -> float:
        """The most rows that satisfy the conditions."""
        found = [float(self.statistics.rows), *self._most_of_sets()]
        if self.entries is not None:
            found.append(self.entries.total)
        if self.pairs is not None:
            for column, allowed in self._codes(self.pairs.codes).items():
                rows = self.pairs.codes[column].rows
                found.append(float(rows[allowed[: len(rows)]].sum()))
        return min(found)

    def degree(self, attribute: str) -> float:
        """The most rows with one key."""
        return self.own(((attribute, max(self.all_bits(attribute))),)).most

    def own(self, over: Bits) -> Message:
        """Rows and largest degrees of this input alone."""
        if over not in self._made:
            self._made[over] = self._own(over)
        return self._made[over]

    def _own(self, over: Bits) -> Message:
        rows = np.full(buckets_over(over), self.total)
        if self.entries is not None:
            rows = np.minimum(rows, self.entries.summed(over, None))
        degree = np.minimum(rows, min(self._largest_degree(a) for a, _ in over))
        if len(over) == 1 and self.pairs is not None:
            (attribute, bits), *_ = over
            more, largest = self._under_pairs(self.pairs, attribute)
            rows = np.minimum(rows, at_bits(more, bits, add=True))
            degree = np.minimum(degree, at_bits(largest, bits, add=False))
        return Message.of(rows, degree, self.total)

    def _under_pairs(self, pairs: PairSketch, attribute: str) -> tuple[Array, Array]:
        """Rows and largest degrees; rows with NULL, which pairs leave out, where it is a key."""
        column = self.columns[attribute]
        rows, largest = pairs.under(column, self._codes(pairs.codes))
        if attribute in self.null_safe:
            bucket = int(buckets_of(np.array([NULL_HASH]), pairs.bits[column])[0])
            rows[bucket] += self._key(attribute).nulls
            largest[bucket] = max(largest[bucket], self._key(attribute).nulls)
        return rows, largest

    def _codes(self, codes: Mapping[str, ValueCodes]) -> dict[str, Array]:
        """Which codes the conditions allow, by column."""
        by_column = self._by_column
        return {c: codes[c].allowed(by_column[c]) for c in by_column if c in codes}

    def _most_of_sets(self) -> Iterator[float]:
        """The most rows that each set of values leaves."""
        yield from key_values.most_rows(self.conditions, self.statistics.keys)
        for sketch in (self.statistics.row_sketch, self.pairs):
            codes = {} if sketch is None else sketch.codes
            for column in self._by_column.keys() & codes.keys():
                most = codes[column].most_rows(self._by_column[column])
                if most is not None:
                    yield float(most)

    @cached_property
    def _by_column(self) -> dict[str, list[Condition]]:
        found: dict[str, list[Condition]] = {}
        for condition in self.conditions:
            found.setdefault(condition.column, []).append(condition)
        return found

    def _largest_degree(self, attribute: str) -> int:
        return self._key(attribute).largest_degree(attribute in self.null_safe)

    def _key(self, attribute: str) -> KeyColumn:
        return self.statistics.keys[self.columns[attribute]]
