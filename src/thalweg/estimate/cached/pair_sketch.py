"""For each join column and filter column: rows and largest degrees per code and key bucket.

For key bucket i and code f of one filter column, n[f, i] is the number of rows with a key in i and
a value of f, and d[f, i] the largest number of them that share a key. Rows that satisfy a
condition have an allowed code, so for each bucket

    rows   <= sum of n[f, i] over allowed f,     rows of one key <= sum of d[f, i] over allowed f:

both sums run over the same rows split by code. Over several filter columns, and over the sums
without a condition, the minimum is taken. Numbers are kept in a byte each, rounded up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.estimate.cached.key_columns import MOST_BITS, HashedKeys
from thalweg.estimate.cached.rounded_counts import levels_for, round_up
from thalweg.estimate.cached.value_codes import RankedColumn, ValueCodes

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class RoundedTable:
    """Numbers per code and bucket; `most` is the largest, which the levels follow from."""

    most: int
    cells: Array

    @staticmethod
    def of(numbers: Array) -> RoundedTable:
        most = int(numbers.max()) if numbers.size else 0
        return RoundedTable(most, round_up(numbers, levels_for(most)))

    def over(self, allowed: Array) -> Array:
        """The sum per bucket over the allowed codes."""
        levels = levels_for(self.most)
        return levels[self.cells[allowed]].sum(axis=0)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class PairSketch:
    """Tables by (join column, filter column), the filter column "" standing for no condition.
    `degrees` has none for columns whose keys occur once."""

    bits: dict[str, int]
    codes: dict[str, ValueCodes]
    rows: dict[tuple[str, str], RoundedTable]
    degrees: dict[tuple[str, str], RoundedTable]

    @property
    def nbytes(self) -> int:
        tables = [*self.rows.values(), *self.degrees.values()]
        return sum(t.cells.nbytes for t in tables) + sum(c.nbytes for c in self.codes.values())

    def under(self, column: str, conditions: Mapping[str, Array]) -> tuple[Array, Array]:
        """Rows and largest degree per bucket of a join column; NULL keys are left out."""
        rows = _least(self.rows, column, conditions)
        if (column, "") not in self.degrees:
            return rows, np.minimum(rows, 1.0)
        return rows, np.minimum(rows, _least(self.degrees, column, conditions))


def _least(
    tables: Mapping[tuple[str, str], RoundedTable], column: str, conditions: Mapping[str, Array]
) -> Array:
    found = tables[column, ""].over(np.ones(1, np.bool_))
    for name, allowed in conditions.items():
        if (column, name) in tables:
            found = np.minimum(found, tables[column, name].over(allowed))
    return found


_CODES = (16, 8, 4)
_FEWEST_BITS = 6


def build_pairs(
    keys: Sequence[HashedKeys], filters: Mapping[str, RankedColumn], limit: int
) -> PairSketch | None:
    """The most buckets of at most `limit` bytes, with sixteen codes a filter column, so that an
    end of a range costs a sixteenth of the rows; fewer codes only where there would be less than
    64 buckets; None if even those do not fit."""
    for size in _CODES:
        codes = {n: ValueCodes.of(c, size) for n, c in filters.items()}
        free = limit - sum(c.nbytes for c in codes.values())
        bits = _shared_bits(keys, codes, free)
        if bits is not None:
            return _build(keys, filters, codes, bits)
    return None


def pair_bytes(keys: Sequence[HashedKeys], filters: Mapping[str, RankedColumn], bits: int) -> int:
    """What a sketch of at most 2^bits buckets a join column takes, about."""
    codes = sum(min(c.wanted, _CODES[0]) for c in filters.values())
    cells = sum((1 + codes << min(bits, _useful(k))) * (1 + (k.column.most > 1)) for k in keys)
    return cells + 16 * codes


def _shared_bits(
    keys: Sequence[HashedKeys], codes: Mapping[str, ValueCodes], limit: int
) -> dict[str, int] | None:
    """Doubles the buckets of the column with the most keys in one, as long as that fits."""
    bits = {k.column.name: min(_FEWEST_BITS, _useful(k)) for k in keys}
    if _cells(keys, bits, codes) > limit:
        return None
    left = list(keys)
    while left:
        key = max(left, key=lambda k: k.column.domain / 2.0 ** bits[k.column.name])
        more = {**bits, key.column.name: bits[key.column.name] + 1}
        if more[key.column.name] > _useful(key) or _cells(keys, more, codes) > limit:
            left.remove(key)
        else:
            bits = more
    return bits


def _useful(key: HashedKeys) -> int:
    return min(max(key.column.domain, 1).bit_length() + 1, MOST_BITS)


def _cells(
    keys: Sequence[HashedKeys], bits: Mapping[str, int], codes: Mapping[str, ValueCodes]
) -> int:
    each = 1 + sum(c.size for c in codes.values())
    return sum((each << bits[k.column.name]) * (1 + (k.column.most > 1)) for k in keys)


def _build(
    keys: Sequence[HashedKeys],
    filters: Mapping[str, RankedColumn],
    codes: dict[str, ValueCodes],
    bits: dict[str, int],
) -> PairSketch:
    encoded = {n: (codes[n].encode(c), codes[n].size) for n, c in filters.items()}
    rows, degrees = {}, {}
    for key in keys:
        name = key.column.name
        grouped = _GroupedKeys.of(key, bits[name])
        nothing = (np.zeros(len(key.null), np.int64), 1)
        for other, (code, size) in {"": nothing, **encoded}.items():
            counted, largest = grouped.count(code, size)
            rows[name, other] = RoundedTable.of(counted)
            if key.column.most > 1:
                degrees[name, other] = RoundedTable.of(largest)
    return PairSketch(bits, codes, rows, degrees)


@dataclass(frozen=True, slots=True)
class _GroupedKeys:
    """The different keys of a column in the order of their hashes, so that those of a bucket
    follow each other."""

    row_key: Array
    valid: Array
    buckets: Array
    size: int

    @staticmethod
    def of(key: HashedKeys, bits: int) -> _GroupedKeys:
        valid = ~key.null
        hashes, inverse = np.unique(key.hashes[valid], return_inverse=True)
        one = HashedKeys(key.column, hashes, np.zeros(len(hashes), np.bool_))
        return _GroupedKeys(inverse, valid, one.buckets(bits), 1 << bits)

    def count(self, code: Array, size: int) -> tuple[Array, Array]:
        """n[f, i] and d[f, i]."""
        rows = np.zeros((size, self.size), np.int64)
        largest = np.zeros((size, self.size), np.int64)
        cells, numbers = np.unique(self.row_key * size + code[self.valid], return_counts=True)
        at = (cells % size, self.buckets[cells // size])
        np.add.at(rows, at, numbers)
        np.maximum.at(largest, at, numbers)
        return rows, largest
