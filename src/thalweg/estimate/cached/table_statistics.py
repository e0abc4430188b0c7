"""Statistics of one table, built once, from which joins with filters are bounded without its rows.

They hold at most so many bytes. Where these suffice for a row sketch in which no column that
could use more bits has an error above a quarter, all of them go there; otherwise half go to it
and half to the pair sketch, which keeps one condition at a time but needs no more bytes for more
rows. See `row_sketch`, `pair_sketch`.
"""

from __future__ import annotations

import math
import os
from functools import partial
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from thalweg.estimate.cached import ordered_values, statistics_bytes
from thalweg.estimate.cached.array_file import ArrayReader, ArrayWriter
from thalweg.estimate.cached.key_columns import MOST_BITS, HashedKeys, KeyColumn
from thalweg.estimate.cached.pair_sketch import PairSketch, build_pairs, pair_bytes
from thalweg.estimate.cached.row_sketch import RowSketch, build_rows, wanted_bytes
from thalweg.estimate.cached.value_codes import RankedColumn

COARSE = float(os.environ.get('FINE','1'))


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """What is kept of one table; `version` is that of the table it was made from."""

    rows: int
    keys: dict[str, KeyColumn]
    row_sketch: RowSketch | None
    pair_sketch: PairSketch | None
    version: str | None
    nbytes: int

    @staticmethod
    def build(
        table: pa.Table,
        join_columns: Sequence[str] | None,
        filter_columns: Sequence[str] | None,
        limit_bytes: int,
        version: str | None = None,
    ) -> TableStatistics:
        """Statistics of at most `limit_bytes`, at least the few hundred of its header.

        Without `join_columns` those of `likely_join_columns` are taken, without `filter_columns`
        all others whose values have an order that conditions can be about.
        """
        source = _Columns.of(table, join_columns, filter_columns)
        header = 0
        while True:
            made = source.statistics(table.num_rows, max(limit_bytes - header, 0), version)
            data = made.to_bytes()
            if len(data) <= limit_bytes or header >= limit_bytes:
                return TableStatistics.from_bytes(data)
            header += len(data) - limit_bytes

    def to_bytes(self) -> bytes:
        to = ArrayWriter()
        rows, pairs = self.row_sketch, self.pair_sketch
        header = {
            "rows": self.rows,
            "version": self.version,
            "keys": [asdict(k) for k in self.keys.values()],
            "row_sketch": None if rows is None else statistics_bytes.write_rows(rows, to),
            "pair_sketch": None if pairs is None else statistics_bytes.write_pairs(pairs, to),
        }
        return to.bytes(header)

    @staticmethod
    def from_bytes(data: bytes) -> TableStatistics:
        source = ArrayReader(data)
        header = source.header
        rows, pairs = header["row_sketch"], header["pair_sketch"]
        return TableStatistics(
            rows=header["rows"],
            keys={k["name"]: KeyColumn(**k) for k in header["keys"]},
            row_sketch=None if rows is None else statistics_bytes.read_rows(rows, source),
            pair_sketch=None if pairs is None else statistics_bytes.read_pairs(pairs, source),
            version=header["version"],
            nbytes=len(data),
        )


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that statistics are made from."""

    keys: list[HashedKeys]
    filters: dict[str, RankedColumn]

    @staticmethod
    def of(table: pa.Table, joins: Sequence[str] | None, filters: Sequence[str] | None) -> _Columns:
        joins = likely_join_columns(table) if joins is None else joins
        if filters is None:
            filters = [n for n in table.column_names if n not in joins]
        keys = [HashedKeys.of(n, _whole(table, n)) for n in joins]
        ranked = {}
        for name in filters:
            order = ordered_values.order_of(table.schema.field(name).type)
            if order is not None:
                ranked[name] = RankedColumn.of(_whole(table, name), order)
        return _Columns(keys, ranked)

    @property
    def header_bytes(self) -> int:
        """About what a header takes."""
        columns, pairs = len(self.keys) + len(self.filters), len(self.keys) * len(self.filters)
        return 400 + 200 * columns + 80 * pairs

    def statistics(self, length: int, limit: int, version: str | None) -> TableStatistics:
        """Sketches of at most `limit` bytes, their header apart."""
        rows, error = build_rows(self.keys, self.filters, length, limit)
        pairs = None
        if rows is None or error > COARSE:
            pairs = build_pairs(self.keys, self.filters, limit)
            left = limit - (0 if pairs is None else pairs.nbytes)
            rows, _ = build_rows(self.keys, self.filters, length, left)
        return TableStatistics(
            length, {k.column.name: k.column for k in self.keys}, rows, pairs, version, 0
        )


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def likely_join_columns(table: pa.Table) -> list[str]:
    """Integers and texts with at least as many different values as the square root of the rows.

    Columns of fewer values join poorly and are better used for conditions. Which columns are
    joined is better said than guessed.
    """
    found = []
    for field in table.schema:
        if pa.types.is_signed_integer(field.type) or pa.types.is_string(field.type):
            different = table[field.name].drop_null().unique()
            if len(different) >= max(math.sqrt(table.num_rows), 2):
                found.append(field.name)
    return found


def split_limit(
    tables: Mapping[str, tuple[pa.Table, Sequence[str] | None, Sequence[str] | None]],
    limit_bytes: int,
) -> dict[str, int]:
    """What each table gets of a common limit: so that the errors of all of them are about equal.

    `tables` has for each the arguments of `build`. Errors go down by halves from one as long as
    the row sketches of all tables fit; the rest, and what is lacking if even an error of one does
    not fit, is split in proportion to the sizes reached.
    """
    columns = {n: (_Columns.of(*args), args[0].num_rows) for n, args in tables.items()}
    most = max((length for _, length in columns.values()), default=1)
    found = dict.fromkeys(columns, 1)
    for wish in _wishes():
        sizes = {n: wish(c, length, length / max(most, 1)) for n, (c, length) in columns.items()}
        if sum(sizes.values()) <= limit_bytes:
            found = sizes
            break
    total = max(sum(found.values()), 1)
    return {n: limit_bytes * size // total for n, size in found.items()}


Wish = Callable[["_Columns", int, float], int]


def _wishes() -> Iterator[Wish]:
    """Sizes of the statistics of a table, from fine to coarse, by its share of the rows."""
    for quarters in range(40, -1, -1):
        yield partial(_row_wish, COARSE * 0.5 ** (quarters / 4))
    for bits in range(MOST_BITS, -1, -1):
        yield partial(_pair_wish, bits)


def _row_wish(error: float, columns: _Columns, length: int, share: float) -> int:
    size = wanted_bytes(columns.keys, columns.filters, length, error * share)
    return columns.header_bytes + size


def _pair_wish(bits: int, columns: _Columns, length: int, share: float) -> int:
    pairs = columns.header_bytes + pair_bytes(columns.keys, columns.filters, bits)
    return min(_row_wish(COARSE, columns, length, share), pairs)
