"""The entries of a row sketch that may satisfy the conditions of a query, by key bucket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.estimate.cached.key_columns import MOST_BITS
from thalweg.estimate.cached.messages import at_bits
from thalweg.estimate.cached.row_sketch import RowSketch

Array = npt.NDArray[Any]
Bits = tuple[tuple[str, int], ...]
"""Attributes, each with the bits of its buckets: what numbers per bucket are over. Of several
attributes, the buckets are those of a hash of theirs, as many as one attribute can have."""


def buckets_over(over: Bits) -> int:
    return 1 << (over[0][1] if len(over) == 1 else MOST_BITS)


@dataclass(frozen=True)
class MatchingEntries:
    """`columns` has the join column of each attribute, and `dropped` those of them in which NULL
    joins nothing. `codes` are the allowed ones of filter columns, `keys` the allowed buckets of
    join columns."""

    sketch: RowSketch
    columns: Mapping[str, str]
    dropped: frozenset[str]
    codes: Mapping[str, Array]
    keys: Mapping[str, Array]
    _placed: dict[Bits, Array] = field(default_factory=dict)

    def bits(self, attribute: str) -> int:
        return self.sketch.widths.keys[self.columns[attribute]]

    @cached_property
    def total(self) -> float:
        """The rows of all of them."""
        if self._weights is not None:
            return float(self._weights.sum())
        return float(self.sketch.entries if self._taken is None else len(self._taken))

    def summed(self, over: Bits, factors: Array | None) -> Array:
        """Per bucket, the rows of its entries, each times its factor."""
        weights = self._weights if factors is None else factors
        if factors is not None and self._weights is not None:
            weights = factors * self._weights
        found = np.bincount(self._buckets(over), weights, minlength=self._size(over))
        return self._at_level(found, over, add=True)

    def largest(self, over: Bits, factors: Array) -> Array:
        """Per bucket, the largest factor of its entries."""
        found = np.zeros(self._size(over))
        np.maximum.at(found, self._buckets(over), factors)
        return self._at_level(found, over, add=False)

    def picked(self, over: Bits, values: Array) -> Array:
        """For each entry, the largest of the values of its buckets."""
        bits = self._size(over).bit_length() - 1
        return at_bits(values, bits, add=False)[self._buckets(over)]

    def _at_level(self, values: Array, over: Bits, *, add: bool) -> Array:
        return at_bits(values, over[0][1], add=add) if len(over) == 1 else values

    def _size(self, over: Bits) -> int:
        """The number of buckets that entries tell apart: at most those of the sketch."""
        if len(over) > 1:
            return buckets_over(over)
        return 1 << min(over[0][1], self.bits(over[0][0]))

    def _buckets(self, over: Bits) -> Array:
        """The bucket of each entry."""
        if over not in self._placed:
            self._placed[over] = self._place(over)
        return self._placed[over]

    def _place(self, over: Bits) -> Array:
        parts = [self._finest[a] >> max(self.bits(a) - bits, 0) for a, bits in over]
        if len(parts) == 1:
            return parts[0].astype(np.intp)
        found = np.zeros(len(parts[0]), np.uint64)
        for part in parts:
            found = (found ^ part.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            found ^= found >> np.uint64(29)
        top = found * np.uint64(0xBF58476D1CE4E5B9) >> np.uint64(64 - MOST_BITS)
        return top.astype(np.intp)

    @cached_property
    def _weights(self) -> Array | None:
        """The rows of each entry; None where each is one row."""
        weights = self.sketch.weights
        if weights is not None:
            weights = (weights if self._taken is None else weights[self._taken]).astype(np.float64)
        return weights

    @cached_property
    def _taken(self) -> Array | None:
        """The entries that may satisfy the conditions, and whose keys may join; None for all."""
        found = self.sketch.matching(self.codes, self.keys)
        for column in self.dropped:
            null = self.sketch.nulls(column)
            if null is not None:
                found = ~null if found is None else found & ~null
        return None if found is None else np.flatnonzero(found)

    @cached_property
    def _finest(self) -> dict[str, Array]:
        found = {a: self.sketch.buckets(c) for a, c in self.columns.items()}
        return {a: b if self._taken is None else b[self._taken] for a, b in found.items()}
