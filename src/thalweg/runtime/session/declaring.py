"""Streams, tables, views and functions: what queries may name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.errors import ConfigError, DuplicateName
from thalweg.exec.expressions import UserFunction
from thalweg.lang import ast
from thalweg.lang.binder import check
from thalweg.lang.scope import is_reserved_function
from thalweg.plan.catalog import (
    Catalog,
    FunctionDef,
    NotedCatalog,
    SourceSpec,
    StreamDef,
    TableDef,
    ViewDef,
)
from thalweg.plan.types import DataType, type_named
from thalweg.runtime.epoch.coordinator import Coordinator
from thalweg.runtime.lifecycle.table_versions import Tables
from thalweg.runtime.sources.python_arguments import (
    arrow_fields,
    normalized,
    refuse_name,
    refuse_reserved,
)
from thalweg.runtime.state.engine_state import ASLEEP, C
from thalweg.runtime.state.stream_definitions import STREAM, described, described_before
from thalweg.store.storage import Storage

if TYPE_CHECKING:
    from thalweg.runtime.invoke.materialize_modes import Standing
    from thalweg.runtime.lifecycle.retained_views import RetainedViews
    from thalweg.runtime.session.query_handle import Query


class Declaring:
    """The part of `Session` that gives names their meaning."""

    coordinator: Coordinator
    storage: Storage
    queries: dict[str, Query]
    function_deadline: float | None
    retained: RetainedViews
    physical: Callable[..., Any]
    between_epochs: Callable[[Callable[[], Any]], Any]
    keep_view: Callable[..., None]
    readers_of: Callable[[str], list[str]]
    unfold: Callable[[str], None]
    standing: Standing

    @property
    def catalog(self) -> Catalog:
        return self.coordinator.catalog

    @property
    def tables(self) -> Tables:
        return Tables(self.coordinator, self.storage)

    def define_stream(self, definition: StreamDef) -> StreamDef:
        """Add a stream, or attach to the same one defined before."""
        known = self.catalog.relation(definition.name)
        if known is not None and known != definition:
            raise DuplicateName(
                f"{definition.name} is already defined differently",
                remedy="use another name, or the same definition",
            )
        self._record(definition)
        self.catalog.streams[definition.name] = definition
        return definition

    def _record(self, stream: StreamDef) -> None:
        """Definitions outlive the process: a different one on the same path is refused."""
        key = f"{STREAM}{stream.name}"
        known = self.coordinator.state.definitions.get(key)
        if known not in (None, described(stream), described_before(stream)):
            raise DuplicateName(
                f"this path knows another definition of stream {stream.name}",
                remedy="use the same definition, another name or another path",
            )
        self.coordinator.state.definitions[key] = described(stream)

    def define_table(
        self,
        name: str,
        table: pa.Table,
        source: SourceSpec | None = None,
        at: int | None = None,
    ) -> TableDef:
        """Add a table, or give one that is known its next version, from the instant `at` on."""
        definition = self.check_table(name, table, source)
        known = self.catalog.relation(name)
        self.tables.put(name, normalized(table, definition.fields), at)
        definition = replace(definition, changes=self.tables.changes(name))
        self.catalog.tables[name] = definition
        if known is not None and known != definition:
            self._plan_again(name)
        return definition

    def check_table(self, name: str, table: pa.Table, source: SourceSpec | None = None) -> TableDef:
        """The definition of a table, or a refusal if the name stands for something else."""
        refuse_name(name)
        refuse_reserved(*table.column_names)
        definition = TableDef(name, arrow_fields(table.schema), source or SourceSpec("frame"))
        known = self.catalog.relation(name)
        if known is not None and not _same_table(known, definition):
            raise DuplicateName(
                f"{name} is already defined differently",
                remedy="use another name, or the same columns for a new version of the table",
            )
        return definition

    def _plan_again(self, table: str) -> None:
        """A table that begins to change is read in another way: answers that were made from it when
        somebody asked are kept from now on."""
        for name in self.readers_of(table):
            known = self.coordinator.state.known(name)
            if known is not None and known.mode in ASLEEP:
                self.unfold(name)
                self.standing.switch(name, C, self.queries[name].bound)
        for name in self.coordinator.plans:
            query = self.queries.get(name)
            leaves = () if query is None else query.plan.leaves
            if query is not None and any(f.relation == table and f.is_table for f in leaves):
                self.coordinator.replan(query.name, self.physical(query.bound), query.bound.options)

    def define_view(self, statement: ast.CreateView, text: str) -> ViewDef:
        """A named query for others to read. It is checked now and runs as a part of each; with
        RETAIN it runs by itself, and others read the stream it emits."""
        refuse_name(statement.name)
        if statement.retain is not None:
            return self.retained.define(statement, text)
        definition = ViewDef(statement.name, statement.text)
        known = self.catalog.relation(statement.name)
        if known is not None and known != definition:
            raise DuplicateName(
                f"{statement.name} is already defined",
                remedy=f"use another name, or DROP VIEW {statement.name} first",
            )
        names = NotedCatalog.of(self.catalog)
        check(statement.query, names, text)
        reads = frozenset(names.asked)
        self.between_epochs(lambda: self.keep_view(definition, reads))
        return definition

    def function(
        self,
        name: str,
        function: Callable[..., Any],
        returns: str | DataType = "BOOLEAN",
        *,
        arguments: Sequence[str | DataType] | None = None,
        vectorized: bool = False,
        deterministic: bool = True,
        movable: bool | None = None,
        raises: bool | None = None,
    ) -> None:
        """Register a Python function for use in SQL.

        A scalar function gets Python values, a vectorised one pyarrow arrays. An exception is an
        error of that row: it is rejected, the query goes on.

        Predicates that call it are asked in whatever order is cheapest. One that is not
        `deterministic` keeps its place in the text unless it is declared `movable`. With `raises`
        true everything before it in the text stays before it; false promises that it never
        raises; unsaid, what stays before it is learned from the rows on which it raised.
        """
        types = None if arguments is None else tuple(_type(a) for a in arguments)
        free = deterministic if movable is None else movable
        definition = FunctionDef(name, _type(returns), types, deterministic, free, raises)
        if is_reserved_function(name):
            raise DuplicateName(
                f"{name}() is a function of the language", remedy="register it by another name"
            )
        if name.lower() in (n.lower() for n in self.catalog.functions if n != name):
            raise DuplicateName(f"a function {name} exists already")
        self.catalog.functions[name] = definition
        self.coordinator.functions[name] = UserFunction(
            name, function, definition.returns, types, vectorized, deterministic,
            self.function_deadline,
        )  # fmt: skip


def _same_table(known: object, definition: TableDef) -> bool:
    return isinstance(known, TableDef) and replace(known, changes=False) == definition


def _type(given: str | DataType) -> DataType:
    if isinstance(given, DataType):
        return given
    found = type_named(given)
    if found is None:
        raise ConfigError(
            f"{given} is not a type", remedy="use BOOLEAN, BIGINT, DOUBLE, STRING, ..."
        )
    return found
