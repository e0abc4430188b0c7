"""One input of a join as its statistics show it under the conditions of the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.estimate.cached.key_columns import MOST_BITS, KeyColumn, buckets_of
from thalweg.estimate.cached.messages import Message, at_bits
from thalweg.estimate.cached.table_statistics import TableStatistics
from thalweg.estimate.cached.value_codes import ValueCodes
from thalweg.estimate.join_query import Condition
from thalweg.store.hashing import NULL_HASH, hash_column

Array = npt.NDArray[Any]
Bits = tuple[tuple[str, int], ...]
"""Attributes, each with the bits of its buckets: what a message is over."""
_CONSTANTS = {
    "integer": (pa.int64(), int),
    "timestamp": (pa.int64(), int),
    "date32[day]": (pa.int64(), int),
    "text": (pa.string(), str),
    "string": (pa.string(), str),
}


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
    _placed: dict[Bits, Array] = field(default_factory=dict)

    def row_bits(self, attribute: str) -> int | None:
        """Those of the buckets of its entries, if there are any."""
        rows = self.statistics.row_sketch
        return None if rows is None else rows.widths.keys[self.columns[attribute]]

    def pair_bits(self, attribute: str) -> int | None:
        """Those of the tables per filter column, if there are any."""
        pairs = self.statistics.pair_sketch
        return None if pairs is None else pairs.bits[self.columns[attribute]]

    def all_bits(self, attribute: str) -> list[int]:
        """Those of all buckets of the attribute; no bits where there are none."""
        found = [self.row_bits(attribute), self.pair_bits(attribute)]
        return [b for b in found if b is not None] or [0]

    @property
    def has_entries(self) -> bool:
        return self.statistics.row_sketch is not None

    def degree(self, attribute: str) -> float:
        """The most rows with one key."""
        return self.own(((attribute, max(self.all_bits(attribute))),)).most

    def own(self, over: Bits) -> Message:
        """Rows and largest degrees of this input alone."""
        if over not in self._made:
            self._made[over] = self._own(over)
        return self._made[over]

    def _own(self, over: Bits) -> Message:
        rows = np.full(1 << MOST_BITS if len(over) > 1 else 1 << over[0][1], np.inf)
        if self.has_entries:
            rows = self.summed(over, None)
        degree = np.minimum(rows, min(self._key(a).largest_degree(self._safe(a)) for a, _ in over))
        if len(over) == 1:
            rows, degree = self._with_pairs(*over[0], rows, degree)
        rows = np.minimum(rows, self.total)
        return Message.of(rows, degree, self.total)

    def _with_pairs(
        self, attribute: str, bits: int, rows: Array, degree: Array
    ) -> tuple[Array, Array]:
        pairs = self.statistics.pair_sketch
        if pairs is None:
            return rows, degree
        more, largest = pairs.under(self.columns[attribute], self._pair_codes)
        if self._safe(attribute):
            bucket = int(buckets_of(np.array([NULL_HASH]), pairs.bits[self.columns[attribute]])[0])
            more[bucket] += self._key(attribute).nulls
            largest[bucket] = max(largest[bucket], self._key(attribute).nulls)
        rows = np.minimum(rows, at_bits(more, bits, add=True))
        return rows, np.minimum(degree, at_bits(largest, bits, add=False))

    def summed(self, over: Bits, factors: Array | None) -> Array:
        """Per bucket, the rows of its entries, each times its factor."""
        weights = self.weights if factors is None else factors
        if factors is not None and self.weights is not None:
            weights = factors * self.weights
        found = np.bincount(self._buckets(over), weights, minlength=1 << self._width(over))
        return self._at_level(found, over, add=True)

    def largest(self, over: Bits, factors: Array) -> Array:
        """Per bucket, the largest factor of its entries."""
        found = np.zeros(1 << self._width(over))
        np.maximum.at(found, self._buckets(over), factors)
        return self._at_level(found, over, add=False)

    def picked(self, over: Bits, values: Array) -> Array:
        """For each entry, the largest of the values of its buckets."""
        return at_bits(values, self._width(over), add=False)[self._buckets(over)]

    def _at_level(self, values: Array, over: Bits, *, add: bool) -> Array:
        return at_bits(values, over[0][1], add=add) if len(over) == 1 else values

    def _width(self, over: Bits) -> int:
        """The bits of the buckets of entries: at most those that entries have."""
        if len(over) > 1:
            return MOST_BITS
        row_bits = self.row_bits(over[0][0])
        return over[0][1] if row_bits is None else min(over[0][1], row_bits)

    def _buckets(self, over: Bits) -> Array:
        """The bucket of each entry: of several attributes, a hash of theirs."""
        if over not in self._placed:
            self._placed[over] = self._place(over)
        return self._placed[over]

    def _place(self, over: Bits) -> Array:
        parts = []
        for attribute, bits in over:
            more = (self.row_bits(attribute) or 0) - bits
            parts.append(self._entry_buckets[attribute] >> max(more, 0))
        if len(parts) == 1:
            return parts[0].astype(np.intp)
        found = np.zeros(len(parts[0]), np.uint64)
        for part in parts:
            found = (found ^ part.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            found ^= found >> np.uint64(29)
        top = found * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(64 - MOST_BITS)
        return top.astype(np.intp)

    @cached_property
    def total(self) -> float:
        """The most rows that satisfy the conditions."""
        found = [float(self.statistics.rows), *self._most_of_sets]
        if self.has_entries:
            found.append(self._entry_total)
        pairs = self.statistics.pair_sketch
        for codes, allowed in () if pairs is None else self._allowed(pairs.codes):
            found.append(float(codes.rows[allowed[: len(codes.rows)]].sum()))
        return min(found)

    @cached_property
    def weights(self) -> Array | None:
        """The rows of each entry taken; None where each is one row."""
        sketch = self.statistics.row_sketch
        assert sketch is not None
        if sketch.weights is None:
            return None
        return (sketch.weights if self._taken is None else sketch.weights[self._taken]).astype(
            np.float64
        )

    @cached_property
    def _entry_total(self) -> float:
        if self.weights is not None:
            return float(self.weights.sum())
        sketch = self.statistics.row_sketch
        assert sketch is not None
        return float(sketch.entries if self._taken is None else len(self._taken))

    @cached_property
    def _taken(self) -> Array | None:
        """The entries that may satisfy the conditions, and whose keys may join; None for all."""
        sketch = self.statistics.row_sketch
        assert sketch is not None
        found = sketch.matching(self._codes(sketch.codes), self._key_sets)
        for attribute, column in self.columns.items():
            null = None if self._safe(attribute) else sketch.nulls(column)
            if null is not None:
                found = ~null if found is None else found & ~null
        return None if found is None else np.flatnonzero(found)

    @cached_property
    def _entry_buckets(self) -> dict[str, Array]:
        sketch = self.statistics.row_sketch
        assert sketch is not None
        found = {a: sketch.buckets(c) for a, c in self.columns.items()}
        return {a: b if self._taken is None else b[self._taken] for a, b in found.items()}

    @cached_property
    def _by_column(self) -> dict[str, list[Condition]]:
        found: dict[str, list[Condition]] = {}
        for condition in self.conditions:
            found.setdefault(condition.column, []).append(condition)
        return found

    def _allowed(self, codes: Mapping[str, ValueCodes]) -> list[tuple[ValueCodes, Array]]:
        return [(codes[c], a) for c, a in self._codes(codes).items()]

    def _codes(self, codes: Mapping[str, ValueCodes]) -> dict[str, Array]:
        by_column = self._by_column
        return {c: codes[c].allowed(by_column[c]) for c in by_column if c in codes}

    @cached_property
    def _pair_codes(self) -> dict[str, Array]:
        pairs = self.statistics.pair_sketch
        return {} if pairs is None else self._codes(pairs.codes)

    @property
    def _most_of_sets(self) -> list[float]:
        """What sets of values leave: see `ValueCodes.most_rows`; of keys, their largest degree."""
        found = []
        sketches = [self.statistics.row_sketch, self.statistics.pair_sketch]
        for column, conditions in self._by_column.items():
            for sketch in sketches:
                codes = None if sketch is None else sketch.codes.get(column)
                most = None if codes is None else codes.most_rows(conditions)
                found += [] if most is None else [float(most)]
            key = self.statistics.keys.get(column)
            sets = [len(set(c.values)) for c in conditions if c.values is not None]
            found += [float(key.most * s) for s in sets] if key is not None else []
        return found

    @cached_property
    def _key_sets(self) -> dict[str, Array]:
        """The buckets that conditions on join columns allow."""
        sketch = self.statistics.row_sketch
        found: dict[str, Array] = {}
        for column, conditions in self._by_column.items():
            key = self.statistics.keys.get(column)
            for condition in conditions if key is not None and sketch is not None else ():
                hashes = _hashes(key, condition) if key is not None else None
                if hashes is not None and sketch is not None:
                    allowed = np.zeros(1 << sketch.widths.keys[column], np.bool_)
                    allowed[buckets_of(hashes, sketch.widths.keys[column])] = True
                    found[column] = found[column] & allowed if column in found else allowed
        return found

    def _key(self, attribute: str) -> KeyColumn:
        return self.statistics.keys[self.columns[attribute]]

    def _safe(self, attribute: str) -> bool:
        return attribute in self.null_safe


def _hashes(key: KeyColumn, condition: Condition) -> Array | None:
    """Those of the keys that a set of values allows; None if they cannot be told."""
    if condition.values is None or key.family not in _CONSTANTS:
        return None
    kind, kept = _CONSTANTS[key.family]
    if any(type(v) is not kept for v in condition.values):
        return None
    try:
        return hash_column(pa.array(list(condition.values), kind))
    except (pa.ArrowInvalid, OverflowError):
        return None
