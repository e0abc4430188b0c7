"""Tables that are known by name, and what follows when one begins to change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from thalweg.errors import DuplicateName, UnknownName, did_you_mean
from thalweg.plan.catalog import Catalog, SourceSpec, TableDef
from thalweg.runtime.invoke.materialize_modes import MaterializeModes
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.lifecycle.table_versions import TableVersions
from thalweg.runtime.planner import Planner
from thalweg.runtime.sharing.placement import Placement
from thalweg.runtime.sources.python_arguments import (
    arrow_fields,
    normalized,
    refuse_name,
    refuse_reserved,
)
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import C
from thalweg.runtime.state.stream_definitions import RESUMED, TABLE, described_table, read_table

Collect = Callable[[], pa.Table]


@dataclass(slots=True)
class _Unread:
    """A table whose rows nothing has asked for: how they are collected, and they, once they are."""

    collect: Collect
    rows: pa.Table | None = None

    def fetched(self) -> pa.Table:
        if self.rows is None:
            self.rows = self.collect()
        return self.rows


class Tables:
    """Defines and drops tables, between two epochs.

    The rows of a table may be `unread`: they are collected when the first query that reads the
    table is planned, and become part of the state between two epochs.
    """

    def __init__(
        self,
        catalog: Catalog,
        state: EngineState,
        plans: PlanTable,
        planner: Planner,
        queries: QueryCatalog,
        registry: QueryRegistry,
        placement: Placement,
        modes: MaterializeModes,
        versions: TableVersions,
        definitions: Definitions,
    ) -> None:
        self._catalog = catalog
        self._state = state
        self._plans = plans
        self._planner = planner
        self._queries = queries
        self._registry = registry
        self._placement = placement
        self._modes = modes
        self.versions = versions
        self._definitions = definitions
        self._restored: set[str] = set()
        self._unread: dict[str, _Unread] = {}

    @property
    def unread(self) -> Iterable[str]:
        """The tables of which no rows have been collected."""
        return tuple(self._unread)

    def define_unread(self, name: str, schema: pa.Schema, collect: Collect) -> TableDef:
        """Add a table whose rows are collected when they are first read. Its content is that of the
        first read, for all times; one that has rows or queries already gets its next version."""
        empty = schema.empty_table()
        definition = self.check(name, empty)
        if name in self._state.tables or (name in self._unread and self._state.queries):
            return self.define(name, collect())
        normalized(empty, definition.fields)
        self._unread[name] = _Unread(collect)
        self._catalog.tables[name] = definition
        return definition

    def fetch(self, names: Iterable[str]) -> None:
        """Collect the rows of tables that are going to be read. At any time: the state does not
        change before `settle`."""
        lowered = {n.lower() for n in names}
        for name, unread in list(self._unread.items()):
            if name.lower() in lowered:
                unread.fetched()

    def settle(self) -> None:
        """Take collected rows into the state, between two epochs."""
        for name in [n for n, u in self._unread.items() if u.rows is not None]:
            self._take(name)

    def need(self, names: Iterable[str]) -> None:
        """Both, between two epochs: tables that are read now."""
        self.fetch(names)
        self.settle()

    def _take(self, name: str) -> None:
        rows = self._unread.pop(name).fetched()
        self.versions.put(name, normalized(rows, self._catalog.tables[name].fields))

    def define(
        self,
        name: str,
        table: pa.Table,
        source: SourceSpec | None = None,
        at: int | None = None,
    ) -> TableDef:
        """Add a table, or give one that is known its next version, from the instant `at` on."""
        definition = self.check(name, table, source)
        known = self._catalog.relation(name)
        if name in self._unread and (at is not None or self._state.queries):
            self._take(name)
        self._unread.pop(name, None)
        self.versions.put(name, normalized(table, definition.fields), at)
        definition = replace(definition, changes=self.versions.changes(name))
        self._catalog.tables[name] = definition
        self._restored.discard(name)
        self._definitions.pop(TABLE, name)
        if definition.source.kind in RESUMED:
            self._definitions.put(TABLE, name, described_table(definition))
        if known is not None and known != definition:
            self._plan_again(name)
        return definition

    def check(self, name: str, table: pa.Table, source: SourceSpec | None = None) -> TableDef:
        """The definition of a table, or a refusal if the name stands for something else."""
        refuse_name(name)
        refuse_reserved(*table.column_names)
        definition = TableDef(name, arrow_fields(table.schema), source or SourceSpec("frame"))
        known = self._catalog.relation(name)
        if known is not None and not self._is_same(known, definition):
            raise DuplicateName(
                f"{name} is already defined differently",
                remedy="use another name, or the same columns for a new version of the table",
            )
        return definition

    def drop(self, name: str) -> None:
        known = self._catalog.relation(name)
        name = name if known is None else known.name
        if name not in self._state.tables and name not in self._unread:
            tables = {**self._state.tables, **self._unread}
            raise UnknownName(f"unknown table {name}", remedy=did_you_mean(name, tables))
        self._queries.refuse_while_read(name, "dropped")
        self.versions.drop(name)
        self._unread.pop(name, None)
        self._definitions.pop(TABLE, name)
        self._restored.discard(name)
        self._catalog.tables.pop(name, None)

    def resume_from(self, name: str, text: str) -> None:
        """Know a table of an earlier run, with the rows it had, until it is given again."""
        if name in self._state.tables:
            definition = replace(read_table(text), changes=self.versions.changes(name))
            self._catalog.tables[name] = definition
            self._restored.add(name)

    def _is_same(self, known: object, definition: TableDef) -> bool:
        if not isinstance(known, TableDef):
            return False
        source = definition.source if known.name in self._restored else known.source
        return replace(known, changes=False, source=source) == definition

    def _plan_again(self, table: str) -> None:
        """A table that begins to change is read in another way: answers that were made from it at
        invocations are kept from now on."""
        for name in self._queries.readers_of(table):
            known = self._state.known(name)
            if known is not None and known.works_on_demand:
                self._placement.detach(name)
                self._modes.switch(name, C, self._queries.bound(name))
        for name in list(self._plans):
            leaves = self._plans[name].leaves if name in self._queries.queries else ()
            if any(leaf.relation == table and leaf.is_table for leaf in leaves):
                bound = self._queries.bound(name)
                self._registry.replan(name, self._planner.physical(bound), bound.options)
