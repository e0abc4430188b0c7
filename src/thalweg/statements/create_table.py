"""CREATE TABLE name [(columns)] FROM ..., and REFRESH TABLE name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from thalweg.errors import NotAvailableYet
from thalweg.lang.column_definitions import (
    TABLE_OPTIONS,
    fields_of,
    parse_columns,
    parse_source,
    source_spec,
)
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.places import place
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Services


@dataclass(frozen=True, slots=True)
class CreateTable:
    effect: ClassVar[Effect] = Effect.SOURCE
    name: str
    columns: tuple[ast.ColumnDefinition, ...]
    source: ast.SourceClause
    at: int

    def run(self, on: Services, script: str) -> Any:
        source = source_spec(self.source, script, self.at, TABLE_OPTIONS)
        if source.kind != "files":
            raise NotAvailableYet(
                f"a table cannot be read FROM {source.kind.upper()}",
                remedy="use FROM FILES, or engine.table(name, df)",
            ).at(script, *place(script, self.at))
        fields = fields_of(self.columns, script) if self.columns else None
        return on.sources.create_table(self.name, fields, source)


@dataclass(frozen=True, slots=True)
class Refresh:
    """Read the rows of a table again: what differs is its next version."""

    effect: ClassVar[Effect] = Effect.SOURCE
    name: str
    at: int

    def run(self, on: Services, script: str) -> None:
        on.sources.refresh_table(self.name)


def parse_create_table(c: Cursor, at: int) -> CreateTable:
    c.need("CREATE", "TABLE")
    name = c.name("a table name")
    columns = parse_columns(c) if c.peek("(") else ()
    c.need("FROM")
    return CreateTable(name, columns, parse_source(c), at)


def parse_refresh(c: Cursor, at: int) -> Refresh:
    c.need("REFRESH")
    c.word("TABLE")
    return Refresh(c.name("a name"), at)


CREATE_TABLE = StatementKind(
    ("CREATE TABLE",),
    "CREATE TABLE name [(columns)] FROM FILES 'path' FORMAT format",
    parse_create_table,
    ("CREATE TABLE t (k BIGINT) FROM FILES 'data/t' FORMAT csv",),
)
REFRESH = StatementKind(("REFRESH",), "REFRESH [TABLE] name", parse_refresh, ("REFRESH TABLE t",))
