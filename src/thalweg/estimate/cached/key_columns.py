"""Join columns: the hash buckets of their keys, and how often a key occurs.

The bucket of a key is the top bits of the store's one hash of normalised keys, so that tables
looked at on their own agree on it, and the buckets of few bits are unions of those of more bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.store.hashing import Hashes, hash_column

Array = npt.NDArray[Any]
MOST_BITS = 17
"""Buckets of one column are at most 2^17: a vector over them, a megabyte, is worked on at once."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """What is known of a join column as a whole.

    `family` tells apart types whose equal values may hash differently. `most` is the largest
    number of rows with one key, NULL apart; `domain` is a guess at how many keys there are in the
    tables that it is joined with, which only decides how many buckets are worth having.
    """

    name: str
    family: str
    most: int
    nulls: int
    domain: int

    def largest_degree(self, null_safe: bool) -> int:
        return max(self.most, self.nulls) if null_safe else self.most


@dataclass(frozen=True, slots=True)
class HashedKeys:
    """A join column while statistics are built."""

    column: KeyColumn
    hashes: Hashes
    null: Array

    @staticmethod
    def of(name: str, values: pa.Array) -> HashedKeys:
        hashes = hash_column(normalised(values))
        null = values.is_null().to_numpy(zero_copy_only=False)
        _, counts = np.unique(hashes[~null], return_counts=True)
        most = int(counts.max()) if len(counts) else 0
        domain = _domain(values, len(counts))
        column = KeyColumn(name, family_of(values.type), most, int(null.sum()), domain)
        return HashedKeys(column, hashes, null)

    def buckets(self, bits: int) -> Array:
        return buckets_of(self.hashes, bits)


def buckets_of(hashes: Hashes, bits: int) -> Array:
    """The bucket of each hash among 2^bits."""
    if bits == 0:
        return np.zeros(len(hashes), np.int64)
    return (hashes >> np.uint64(64 - bits)).astype(np.int64)


def family_of(kind: pa.DataType) -> str:
    """Types of one family hash their equal values alike; between families nothing is known."""
    if pa.types.is_signed_integer(kind):
        return "integer"
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return "double"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamp with time zone"
    if pa.types.is_decimal(kind):
        return f"decimal of scale {kind.scale}"
    return str(kind)


def normalised(values: pa.Array) -> pa.Array:
    """Timestamps of every unit as microseconds; other values as they are."""
    if not pa.types.is_timestamp(values.type):
        return values
    return values.cast(pa.timestamp("us", values.type.tz), safe=False)


def _domain(values: pa.Array, different: int) -> int:
    """Integers are often numbers given out in turn: other tables then use those of one range."""
    if not different or not pa.types.is_signed_integer(values.type):
        return different
    ends = pc.min_max(values).as_py()
    span = int(ends["max"]) - int(ends["min"]) + 1
    return max(different, span if span < 1 << MOST_BITS else 1 << MOST_BITS)
