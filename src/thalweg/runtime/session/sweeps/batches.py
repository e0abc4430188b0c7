"""Queries of a sweep that differ in nothing but constants, run as one.

Where a constant stands in a SELECT whose rows come of rows of its inputs one by one, it may as well
be a column of a table that is joined: the rows of the answer then tell whose they are. So a batch
is parsed, planned and run once. Whether that is so is asked of the bound plan, and whatever
cannot be bound with a table beside it runs by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.errors import ThalwegError
from thalweg.instants import AFTER_TIME, BEFORE_TIME
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.parser import parse_query
from thalweg.lang.syntax import exp
from thalweg.plan.catalog import Catalog, Names, TableDef
from thalweg.plan.logical import Emit, Field, Node, Scan, walk
from thalweg.plan.types import DOUBLE, INT, DataType, to_arrow
from thalweg.runtime.planner import Planned, Planner
from thalweg.runtime.session.sweeps.parameters import (
    Row,
    occurrences,
    placeholders,
    with_parameters,
)
from thalweg.store.packs import PackMeta, arrange, write_pack
from thalweg.store.storage import MemoryStorage, Storage

MOST_TOGETHER = 64
"""Queries in one batch."""
MOST_CHANGES = 100_000
"""A batch is doubled while its largest relation stays below half of this, and halved above it."""
_TABLE = "__sweep"
_PLACE = "__place"
_INTS = range(-(2**31), 2**31)


@dataclass
class OwnTables(MemoryStorage):
    """Tables of parameters in memory, before the files of another storage."""

    below: Storage = field(default_factory=MemoryStorage)

    def __init__(self, below: Storage) -> None:
        super().__init__()
        self.below = below

    def read_table(self, name: str) -> pa.Table:
        own = name in self.files
        return super().read_table(name) if own else self.below.read_table(name)

    def exists(self, name: str) -> bool:
        return name in self.files or self.below.exists(name)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of parameters, by number. With more than one there is a query over a table of
    their constants, which is called `table`; its answer has their places in the batch in the column
    `place`."""

    numbers: Sequence[int]
    rows: Sequence[Row]
    table: str = ""
    place: str = ""
    constants: Mapping[str, DataType] = field(default_factory=dict)
    query: Planned | None = None

    @property
    def planned(self) -> Planned:
        assert self.query is not None
        return self.query

    def written(self, storage: Storage) -> PackMeta:
        """The pack of the table."""
        columns = {
            f"__{name}": pa.array([row[name] for row in self.rows], to_arrow(dtype))
            for name, dtype in self.constants.items()
        }
        columns[_PLACE] = pa.array(range(len(self.rows)), pa.int32())
        table = arrange(pa.table(columns), np.zeros(len(self.rows), np.int64), [])
        meta = write_pack(storage, f"{self.table}.arrow", table)
        return replace(meta, min_ts=BEFORE_TIME, max_ts=AFTER_TIME)


@dataclass(slots=True)
class Batches:
    """Parts rows of parameters into batches."""

    catalog: Catalog
    sql: str
    rows: Sequence[Row]
    _made: int = 0

    def each(self, largest: Callable[[], int]) -> Iterator[Batch]:
        """All rows in batches, which grow as long as what they compute stays small."""
        constants = self._constants()
        together = 1
        for numbers in self._alike(constants):
            while numbers:
                batch = self._batch(numbers[:together], constants)
                if batch is None:
                    together, constants = 1, {}
                    continue
                numbers = numbers[together:]
                yield batch
                if constants and largest() <= MOST_CHANGES / 2:
                    together = min(2 * together, MOST_TOGETHER)
                elif largest() > MOST_CHANGES:
                    together = max(together // 2, 1)

    def _alike(self, constants: Mapping[str, DataType]) -> list[list[int]]:
        """Numbers of rows that differ in constants alone."""

        def others(number: int) -> str:
            return repr([(n, v) for n, v in self.rows[number].items() if n not in constants])

        ordered = sorted(range(len(self.rows)), key=others)
        return [list(group) for _, group in groupby(ordered, others)]

    def _batch(self, numbers: Sequence[int], constants: Mapping[str, DataType]) -> Batch | None:
        """None if the rows cannot be run together."""
        rows = [self.rows[n] for n in numbers]
        if len(rows) == 1:
            return Batch(numbers, rows)
        self._made += 1  # a name of its own, so that plans over other tables differ
        table = f"{_TABLE}{self._made}"
        planned = self._planned(rows[0], table, constants)
        if planned is None or not _row_by_row(planned.bound.root, table):
            return None
        return Batch(numbers, rows, table, self._place, constants, planned)

    def _planned(self, row: Row, table: str, constants: Mapping[str, DataType]) -> Planned | None:
        """The query with constants in columns of a table that it joins, and with that of their
        numbers."""
        text = with_parameters(self.sql, row, _columns(table, constants))
        fields = [Field(f"__{n}", t, False) for n, t in constants.items()]
        definition = TableDef(table, (*fields, Field(_PLACE, INT, False)))
        known = self.catalog
        tables = Names({**known.tables, table: definition})
        catalog = Catalog(known.streams, tables, known.views, known.functions)
        try:
            query = _beside(parse_query(text), table, self._place)
            return None if query is None else Planner(catalog).planned("", query, text, text)
        except ThalwegError:
            return None  # it is refused by itself too, or can be run by itself only

    @property
    def _place(self) -> str:
        """A name that does not occur in the query."""
        found = "place_in_batch"
        while found in self.sql.lower():
            found += "_"
        return found

    def _constants(self) -> dict[str, DataType]:
        """The parameters that are numbers throughout, and expressions of the outermost SELECT."""
        found: dict[str, DataType] = {}
        for name in placeholders(self.sql):
            dtype = _number_type([row[name] for row in self.rows])
            if dtype is not None and self._is_outermost(name):
                found[name] = dtype
        return found

    def _is_outermost(self, name: str) -> bool:
        text = with_parameters(self.sql, self.rows[0], _columns(_TABLE, [name]))
        try:
            query = parse_query(text)
        except ThalwegError:
            return False
        if not isinstance(query, ast.Select):
            return False
        columns = (c for e in _expressions(query) for c in e.find_all(exp.Column))
        return sum(c.table == _TABLE for c in columns) == occurrences(self.sql, name)


def _columns(table: str, names: Mapping[str, Any] | Sequence[str]) -> dict[str, str]:
    return {name: f"{table}.__{name}" for name in names}


def _expressions(query: ast.Select) -> Iterator[exp.Expr]:
    yield from query.items
    yield from query.conditions
    for item in query.from_items:
        yield from _conditions(item)


def _conditions(item: ast.FromItem) -> Iterator[exp.Expr]:
    if isinstance(item, ast.JoinRef):
        if item.condition is not None:
            yield item.condition
        yield from _conditions(item.left)
        yield from _conditions(item.right)


def _beside(query: ast.Query, table: str, place: str) -> ast.Query | None:
    """The query with a table in its FROM, the places of whose rows it shows. None where the table
    would be in its answer, or change what kind of answer it is."""
    if not isinstance(query, ast.Select) or query.kind is None or query.limit is not None:
        return None
    if query.order_by or any(e.find(exp.Star) for e in query.items):
        return None
    source = ast.Source(table, None, None, table, None, query.at)
    shown = exp.alias_(exp.column(_PLACE, table=table), place)
    for node in shown.walk():
        node.meta["at"] = query.at
    return replace(query, items=(*query.items, shown), from_items=(*query.from_items, source))


def _number_type(values: Sequence[Any]) -> DataType | None:
    """The type of constants as they are written in SQL, if all have the same."""
    if all(type(v) is int and v in _INTS for v in values):
        return INT
    return DOUBLE if all(type(v) is float and np.isfinite(v) for v in values) else None


def _row_by_row(root: Emit, table: str) -> bool:
    """Whether nothing between a table and the answer looks at several rows at once."""
    return root.input is not None and _reaches(root.input, table)


def _reaches(node: Node, table: str) -> bool:
    if isinstance(node, Scan):
        return node.relation == table
    if not any(isinstance(n, Scan) and n.relation == table for n in walk(node)):
        return False
    return node.row_by_row and any(_reaches(child, table) for child in node.inputs)
