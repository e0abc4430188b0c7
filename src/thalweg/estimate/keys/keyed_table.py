"""A table whose key columns are hashed and numbered once, however many queries join it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.columns.vector import Vector, from_arrow
from thalweg.estimate.keys.key_type import key_values, loses_digits
from thalweg.exec.expressions.evaluate import UserFunction, evaluate
from thalweg.instants import Ints
from thalweg.plan.expr import Predicate, columns_of
from thalweg.plan.types import DataType, of_result
from thalweg.store.hashing import Hashes, hash_column

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column as keys: its distinct hashes in ascending order, and per row the place of its own
    among them, -1 for NULL. `lossy` says that keys may be equal where values are not."""

    distinct: Hashes
    numbers: Numbers
    lossy: bool


class KeyedTable:
    """Rows of one relation that do not change.

    Columns become vectors and keys when first asked for, and stay: that is all that is kept
    between queries.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._vectors: dict[str, Vector] = {}
        self._keys: dict[tuple[str, DataType], KeyColumn] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def type(self, column: str) -> DataType:
        """The SQL type of a column."""
        return of_result(self.table.schema.field(column).type)

    def vector(self, column: str) -> Vector:
        """A column for the evaluation of expressions."""
        if column not in self._vectors:
            self._vectors[column] = from_arrow(self.table.column(column), self.type(column))
        return self._vectors[column]

    def keys(self, column: str, wanted: DataType) -> KeyColumn:
        """A column as keys of a type."""
        if (column, wanted) not in self._keys:
            self._keys[column, wanted] = _key_column(self.table.column(column), wanted)
        return self._keys[column, wanted]


def _key_column(column: pa.ChunkedArray, wanted: DataType) -> KeyColumn:
    values = key_values(column, wanted)
    hashes = hash_column(values)
    numbers = np.full(len(values), -1, np.int32)
    there = values.is_valid().to_numpy(zero_copy_only=False)
    distinct, numbers[there] = np.unique(hashes[there], return_inverse=True)
    return KeyColumn(distinct, numbers, loses_digits(column, wanted))


def passing_rows(
    table: KeyedTable,
    alias: str,
    predicates: tuple[Predicate, ...],
    functions: Mapping[str, UserFunction] | None = None,
) -> Ints | None:
    """The rows on which every predicate is true, None for all; rows on which one errs are rejects
    and no part of an answer. Predicates name columns `alias.column`."""
    if not predicates:
        return None
    kept = np.ones(len(table), np.bool_)
    for predicate in predicates:
        columns = {n: table.vector(n.removeprefix(f"{alias}.")) for n in columns_of(predicate.expr)}
        found = evaluate(predicate.expr, columns, len(table), functions)
        kept &= found.data
        if found.valid is not None or found.errors is not None:
            kept &= found.usable
    rows: Ints = np.flatnonzero(kept)
    return None if len(rows) == len(table) else rows
