"""Every row of a table in a few bits of each column, rows alike in all of these as one.

A row is kept as the hash buckets of its join keys and the codes of its filter values. Under the
conditions of a query the entries whose codes may satisfy *all* of them are taken, so that columns
that go together are seen to. Each row that satisfies the conditions is among those of the entries
taken, under its own bucket of each key; this is all that a bound needs (`bucket_sums`).

Entries are sorted by the first bits of one key, which therefore need not be kept with each: their
numbers per bucket are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.estimate.cached import bit_budget, bit_fields
from thalweg.estimate.cached.bit_budget import CodeWish, KeyWish, Wish
from thalweg.estimate.cached.bit_fields import Place
from thalweg.estimate.cached.key_columns import MOST_BITS, HashedKeys
from thalweg.estimate.cached.value_codes import RankedColumn, ValueCodes

Array = npt.NDArray[Any]
_FULL = 255


@dataclass(frozen=True, slots=True)
class Widths:
    """The bits of each field. `lead` is the key that entries are sorted by, by its first
    `prefix` bits; `nullable` keys have a bit that says whether they are NULL."""

    keys: dict[str, int]
    codes: dict[str, int]
    nullable: tuple[str, ...]
    lead: str | None
    prefix: int

    @property
    def fields(self) -> list[tuple[str, str, int]]:
        """Kind, column and bits of each field kept with an entry."""
        keys = [
            ("key", k, b - (self.prefix if k == self.lead else 0)) for k, b in self.keys.items()
        ]
        nulls = [("null", k, 1) for k in self.nullable]
        return keys + nulls + [("code", c, b) for c, b in self.codes.items()]

    def places(self) -> tuple[dict[tuple[str, str], Place], list[int]]:
        found, sizes = bit_fields.places([b for _, _, b in self.fields])
        named = {(k, c): p for (k, c, _), p in zip(self.fields, found, strict=True)}
        return named, sizes


@dataclass(frozen=True, slots=True)
class RowSketch:
    """`starts` counts the entries of each bucket of the lead, up to 255; those with more are in
    `full`, with their numbers in `full_counts`. `weights` are the rows of each entry, None if one.
    """

    widths: Widths
    codes: dict[str, ValueCodes]
    starts: Array
    full: Array
    full_counts: Array
    words: list[list[Array]]
    weights: Array | None
    entries: int

    @property
    def nbytes(self) -> int:
        arrays = [self.starts, self.full, self.full_counts, *(p for w in self.words for p in w)]
        weights = 0 if self.weights is None else self.weights.nbytes
        return sum(a.nbytes for a in arrays) + weights + sum(c.nbytes for c in self.codes.values())

    def matching(self, conditions: Mapping[str, Array], keys: Mapping[str, Array]) -> Array | None:
        """Which entries may satisfy all: `conditions` has the allowed codes of columns, `keys` the
        allowed buckets of join columns. None: all of them may."""
        found: Array | None = None
        for column, allowed in conditions.items():
            if column in self.codes and not allowed.all():
                found = _and(found, allowed[self._field("code", column)])
        for column, allowed in keys.items():
            bits = self.widths.keys[column]
            within: Array = np.any(allowed.reshape(1 << bits, -1), axis=1)
            found = _and(found, within[self.buckets(column)])
        return found

    def buckets(self, column: str) -> Array:
        """The bucket of each entry's key, among 2^`widths.keys[column]`."""
        rest = self._field("key", column)
        if column != self.widths.lead:
            return rest
        counts = self.starts.astype(np.int64)
        counts[self.full] = self.full_counts
        first = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
        bits = np.uint32(self.widths.keys[column] - self.widths.prefix)
        return (first << bits) | rest.astype(np.uint32)

    def nulls(self, column: str) -> Array | None:
        """Which entries have NULL in this join column; None if the column has none."""
        if column not in self.widths.nullable:
            return None
        found: Array = self._field("null", column) == 1
        return found

    def _field(self, kind: str, column: str) -> Array:
        found, _ = self.widths.places()
        return bit_fields.read(self.words, found[kind, column], self.entries)


def _and(found: Array | None, more: Array) -> Array:
    return more if found is None else found & more


@dataclass(frozen=True, slots=True)
class _Source:
    """The columns that a sketch is made from."""

    keys: Sequence[HashedKeys]
    filters: Mapping[str, RankedColumn]
    length: int

    @property
    def lead(self) -> HashedKeys | None:
        return max(self.keys, key=lambda k: k.column.domain, default=None)

    @property
    def prefix(self) -> int:
        """The most bits to sort by: about four to eight rows for each number of `starts`."""
        return 0 if self.lead is None else min(max(self.length.bit_length() - 3, 0), MOST_BITS)

    @property
    def wishes(self) -> list[Wish]:
        keys: list[Wish] = [KeyWish(k.column.domain, MOST_BITS) for k in self.keys]
        return keys + [CodeWish(c.wanted) for c in self.filters.values()]

    @property
    def nullable(self) -> tuple[str, ...]:
        return tuple(k.column.name for k in self.keys if k.column.nulls)

    def widths(self, bits: int) -> Widths:
        """Those of rows of so many bits, the prefix included."""
        given = bit_budget.share_bits(self.wishes, bits - len(self.nullable))
        keys = {k.column.name: b for k, b in zip(self.keys, given, strict=False)}
        codes = dict(zip(self.filters, given[len(self.keys) :], strict=True))
        codes = {c: b for c, b in codes.items() if b}
        lead = None if self.lead is None else self.lead.column.name
        prefix = 0 if lead is None else min(self.prefix, keys[lead])
        return Widths(keys, codes, self.nullable, lead, prefix)


def build_rows(
    keys: Sequence[HashedKeys], filters: Mapping[str, RankedColumn], length: int, limit: int
) -> tuple[RowSketch | None, float]:
    """The widest sketch of at most `limit` bytes, and the largest error of its columns; None if
    there is none."""
    source = _Source(keys, filters, length)
    for width in range(_widest(source, limit), 0, -1):
        sketch = _at(source, 8 * width + source.prefix)
        if sketch.nbytes <= limit:
            return sketch, _error(source, sketch.widths)
    return _merging(source, limit)


def _merging(source: _Source, limit: int) -> tuple[RowSketch | None, float]:
    """With less than a byte a row, by halving the range of bits: the fewer, the more rows merge."""
    best, error = None, math.inf
    least, most = 0, 8 + source.prefix
    while least + 1 < most:
        bits = (least + most) // 2
        sketch = _at(source, bits)
        if sketch.nbytes <= limit:
            least, best, error = bits, sketch, _error(source, sketch.widths)
        else:
            most = bits
    return best, error


def _at(source: _Source, bits: int) -> RowSketch:
    return _sketch(source, source.widths(max(bits, len(source.nullable))))


def wanted_bytes(
    keys: Sequence[HashedKeys], filters: Mapping[str, RankedColumn], length: int, error: float
) -> int:
    """What a sketch of all rows takes whose columns have at most this error."""
    source = _Source(keys, filters, length)
    for width in range(1, _most_width(source) + 1):
        widths = source.widths(8 * width + source.prefix)
        if _error(source, widths) <= error:
            break
    edges = sum(16 << b for b in widths.codes.values())
    return length * width + (1 << widths.prefix) + edges


def _most_width(source: _Source) -> int:
    bits = sum(w.most_bits for w in source.wishes) - source.prefix + len(source.nullable)
    return max(-(-bits // 8), 1)


def _widest(source: _Source, limit: int) -> int:
    """The most bytes a row that may fit; none if not one does."""
    return min(_most_width(source), limit // max(source.length, 1))


def _error(source: _Source, widths: Widths) -> float:
    given = [*widths.keys.values(), *(widths.codes.get(c, 0) for c in source.filters)]
    return bit_budget.largest_error(source.wishes, given)


def _sketch(source: _Source, widths: Widths) -> RowSketch:
    codes = {c: ValueCodes.of(source.filters[c], 1 << b) for c, b in widths.codes.items()}
    first, words = _words(source, widths, codes)
    first, words, counts = _merged(first, words)
    starts = np.bincount(first, minlength=1 << widths.prefix)
    full = np.flatnonzero(starts >= _FULL)
    _, sizes = widths.places()
    return RowSketch(
        widths=widths,
        codes=codes,
        starts=np.minimum(starts, _FULL).astype(np.uint8),
        full=full.astype(np.uint32),
        full_counts=starts[full].astype(np.uint32),
        words=[bit_fields.planes(w, s) for w, s in zip(words, sizes, strict=True)],
        weights=_narrow(counts),
        entries=len(first),
    )


def _words(
    source: _Source, widths: Widths, codes: Mapping[str, ValueCodes]
) -> tuple[Array, list[Array]]:
    """The prefix of the lead, and the words, of each row."""
    fields: list[Array] = []
    prefix = np.zeros(source.length, np.int64)
    for key in source.keys:
        name = key.column.name
        buckets = key.buckets(widths.keys[name])
        if name == widths.lead:
            rest = widths.keys[name] - widths.prefix
            prefix = buckets >> rest
            buckets = buckets & ((1 << rest) - 1)
        fields.append(buckets)
    fields += [k.null for k in source.keys if k.column.nulls]
    fields += [c.encode(source.filters[name]) for name, c in codes.items()]
    found, sizes = bit_fields.places([b for _, _, b in widths.fields])
    return prefix, bit_fields.pack(fields, found, len(sizes), source.length)


def _merged(first: Array, words: list[Array]) -> tuple[Array, list[Array], Array]:
    """Sorted, equal rows once, with how often each was there."""
    order = np.lexsort((*words, first))
    first, words = first[order], [w[order] for w in words]
    changes = np.ones(len(first), np.bool_)
    if len(first):
        changes[1:] = first[1:] != first[:-1]
        for word in words:
            changes[1:] |= word[1:] != word[:-1]
    starts = np.flatnonzero(changes)
    counts = np.diff(np.append(starts, len(first)))
    if len(starts) > len(first) // 2:  # numbers of rows would cost what merging saves
        return first, words, np.ones(len(first), np.int64)
    return first[starts], [w[starts] for w in words], counts


def _narrow(counts: Array) -> Array | None:
    most = int(counts.max()) if len(counts) else 1
    if most == 1:
        return None
    return counts.astype(np.min_scalar_type(most))
