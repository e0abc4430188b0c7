"""CREATE QUERY name AS SELECT ..., and a SELECT by itself, whose name the engine chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from thalweg.lang.parsing import ast
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.select_grammar import parse_select
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Services


@dataclass(frozen=True, slots=True)
class CreateQuery:
    effect: ClassVar[Effect] = Effect.CHANGE
    name: str
    query: ast.Query
    text: str
    at: int

    def run(self, on: Services, script: str) -> Any:
        return on.queries.create(self.name, self.query, self.text, script)


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A bare SELECT."""

    effect: ClassVar[Effect] = Effect.CHANGE
    query: ast.Query
    text: str
    at: int

    def run(self, on: Services, script: str) -> Any:
        return on.queries.create(None, self.query, self.text, script)


def parse_create_query(c: Cursor, at: int) -> CreateQuery:
    c.need("CREATE", "QUERY")
    name = c.name("a query name")
    c.need("AS")
    start = c.offset()
    query = parse_select(c)
    return CreateQuery(name, query, c.text_since(start), at)


def parse_select_statement(c: Cursor, at: int) -> SelectStatement:
    query = parse_select(c)
    return SelectStatement(query, c.text_since(at), at)


CREATE_QUERY = StatementKind(
    ("CREATE QUERY",),
    "CREATE QUERY name AS select",
    parse_create_query,
    ("CREATE QUERY large AS SELECT k, v FROM s WHERE v > 10",),
)
SELECT = StatementKind(
    ("SELECT", "("), "select", parse_select_statement, ("SELECT k, v FROM s WHERE v > 10",)
)
