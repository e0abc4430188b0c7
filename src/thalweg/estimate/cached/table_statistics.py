"""Statistics of one table, built once, from which joins with filters are bounded without its rows.

They hold at most so many bytes, and what these are spent on follows from the error of a column
(`bit_budget`): in a row sketch a key shares its bucket with so many others, and each end of a
range takes up to so large a share of the rows too many.

- Error at most 1 everywhere: all bytes go to the row sketch.
- At most 4 with three quarters of the bytes: it gets them, and the pair sketch a quarter, which
  sees to ends of ranges.
- Else the pair sketch gets all that it can use: it takes conditions one at a time, but needs no
  more bytes for more rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import pyarrow as pa

from thalweg.estimate.cached import ordered_values, statistics_bytes
from thalweg.estimate.cached.array_file import ArrayReader, ArrayWriter
from thalweg.estimate.cached.key_columns import HashedKeys, KeyColumn
from thalweg.estimate.cached.pair_sketch import PairSketch, build_pairs
from thalweg.estimate.cached.row_sketch import RowSketch, build_rows
from thalweg.estimate.cached.value_codes import RankedColumn

FINE = 1.0
COARSE = 4.0
ROW_SHARE = 0.75


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
        """Statistics of at most `limit_bytes`, at least the few hundred bytes of their header.

        Without `join_columns` those of `likely_join_columns` are taken, without `filter_columns`
        all others whose values have an order that conditions can be about.
        """
        source = SourceColumns.of(table, join_columns, filter_columns)
        keys = {k.column.name: k.column for k in source.keys}
        header = 0
        while True:
            sketches = source.sketches(max(limit_bytes - header, 0))
            data = TableStatistics(table.num_rows, keys, *sketches, version, 0).to_bytes()
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
class SourceColumns:
    """The columns that statistics are made from, hashed and ranked."""

    length: int
    keys: list[HashedKeys]
    filters: dict[str, RankedColumn]

    @staticmethod
    def of(
        table: pa.Table, joins: Sequence[str] | None, filters: Sequence[str] | None
    ) -> SourceColumns:
        joins = likely_join_columns(table) if joins is None else joins
        if filters is None:
            filters = [n for n in table.column_names if n not in joins]
        keys = [HashedKeys.of(n, _whole(table, n)) for n in joins]
        ranked = {}
        for name in filters:
            order = ordered_values.order_of(table.schema.field(name).type)
            if order is not None:
                ranked[name] = RankedColumn.of(_whole(table, name), order)
        return SourceColumns(table.num_rows, keys, ranked)

    def sketches(self, limit: int) -> tuple[RowSketch | None, PairSketch | None]:
        """Sketches of at most `limit` bytes, their header apart."""
        rows, error = build_rows(self.keys, self.filters, self.length, limit)
        if error <= FINE:
            return rows, None
        rows, error = build_rows(self.keys, self.filters, self.length, int(limit * ROW_SHARE))
        if rows is not None and error <= COARSE:
            return rows, build_pairs(self.keys, self.filters, limit - rows.nbytes)
        pairs = build_pairs(self.keys, self.filters, limit)
        left = limit - (0 if pairs is None else pairs.nbytes)
        return build_rows(self.keys, self.filters, self.length, left)[0], pairs


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
