"""The rows at hand of a join: those that pass its filters, with their keys as small integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from thalweg.estimate.hypergraph import Hypergraph
from thalweg.estimate.join_query import JoinInput, JoinQuery
from thalweg.estimate.keys.compiled import merge_distinct, positions_within
from thalweg.estimate.keys.key_type import key_type
from thalweg.estimate.keys.keyed_table import KeyColumn, KeyedTable, Numbers, passing_rows
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.instants import Ints
from thalweg.plan.types import DataType
from thalweg.store.hashing import NULL_HASH, Hashes

RowsOf = Callable[[JoinInput], KeyedTable]
"""Where the rows of an input are: all of its relation that live, not yet filtered."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The keys of one attribute: per input a translation from the numbers of its own column to
    those of the attribute, counted from 1. 0 joins nothing. The last entry is that of NULL."""

    size: int
    translations: dict[int, Numbers]
    lossy: bool


@dataclass(slots=True)
class JoinRows:
    """All that bounds and counts of one query are made of."""

    query: JoinQuery
    graph: Hypergraph
    tables: tuple[KeyedTable, ...]
    passing: tuple[Ints | None, ...]
    _domains: dict[str, Domain] = field(default_factory=dict)
    _codes: dict[tuple[int, str], Numbers] = field(default_factory=dict)

    @staticmethod
    def of(
        query: JoinQuery, rows_of: RowsOf, functions: Mapping[str, UserFunction] | None = None
    ) -> JoinRows:
        tables = tuple(rows_of(r) for r in query.inputs)
        passing = tuple(
            passing_rows(t, r.alias, r.predicates, functions)
            for t, r in zip(tables, query.inputs, strict=True)
        )
        return JoinRows(query, Hypergraph.of(query), tables, passing)

    def size(self, one: int) -> int:
        """How many rows of an input pass."""
        rows = self.passing[one]
        return len(self.tables[one]) if rows is None else len(rows)

    def keys(self, one: int, attribute: str) -> KeyColumn:
        """The keys of an input's column, of all of its rows."""
        column = self.query.inputs[one].column(attribute)
        return self.tables[one].keys(column, self._key_type(attribute))

    def numbers(self, one: int, attribute: str) -> Numbers:
        """Per passing row the number of its key within its own column, -1 for NULL."""
        return self._taken(self.keys(one, attribute).numbers, one)

    def hashes(self, one: int, attribute: str) -> Hashes:
        """Per passing row the hash of its key, NULL_HASH for NULL."""
        keys = self.keys(one, attribute)
        return np.append(keys.distinct, NULL_HASH)[self._taken(keys.numbers, one)]

    def codes(self, one: int, attribute: str) -> Numbers:
        """Per passing row the number of its key within the attribute; 0 joins nothing."""
        if (one, attribute) not in self._codes:
            translation = self.domain(attribute).translations[one]
            self._codes[one, attribute] = translation[self.numbers(one, attribute)]
        return self._codes[one, attribute]

    def domain(self, attribute: str) -> Domain:
        if attribute not in self._domains:
            self._domains[attribute] = self._domain(attribute)
        return self._domains[attribute]

    def is_null_safe(self, attribute: str) -> bool:
        return next(a.null_safe for a in self.query.attributes if a.name == attribute)

    def _taken(self, numbers: Numbers, one: int) -> Numbers:
        rows = self.passing[one]
        return numbers if rows is None else numbers[rows]

    def _key_type(self, attribute: str) -> DataType:
        inputs = self.query.inputs_of(attribute)
        return key_type(
            [self.tables[i].type(self.query.inputs[i].column(attribute)) for i in inputs]
        )

    def _domain(self, attribute: str) -> Domain:
        columns = {i: self.keys(i, attribute) for i in self.query.inputs_of(attribute)}
        hashes = [c.distinct for c in columns.values()]
        among = min(hashes, key=len)
        if len(hashes) > 2:
            for other in hashes:
                among = merge_distinct(among, other)
        null = len(among) + 1 if self.is_null_safe(attribute) else 0
        translations = {
            i: np.append(positions_within(c.distinct, among), np.int32(null))
            for i, c in columns.items()
        }
        return Domain(len(among) + 2, translations, any(c.lossy for c in columns.values()))


def from_tables(tables: Mapping[str, pa.Table]) -> RowsOf:
    """The rows of relations by name, each hashed when first joined."""
    keyed: dict[str, KeyedTable] = {}

    def rows_of(one: JoinInput) -> KeyedTable:
        if one.relation not in keyed:
            keyed[one.relation] = KeyedTable(tables[one.relation])
        return keyed[one.relation]

    return rows_of
