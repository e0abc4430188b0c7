"""CREATE VIEW name [RETAIN duration] AS SELECT ...: a named query for others to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from thalweg.lang.parsing import ast
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.select_grammar import parse_select
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Services


@dataclass(frozen=True, slots=True)
class CreateView:
    effect: ClassVar[Effect] = Effect.CHANGE
    name: str
    query: ast.Query
    text: str
    retain: int | None
    at: int

    def run(self, on: Services, script: str) -> Any:
        return on.views.define(self.name, self.query, self.text, self.retain, script)


def parse_create_view(c: Cursor, at: int) -> CreateView:
    c.need("CREATE", "VIEW")
    name = c.name("a view name")
    retain = c.duration() if c.word("RETAIN") else None
    c.need("AS")
    start = c.offset()
    query = parse_select(c)
    return CreateView(name, query, c.text_since(start), retain, at)


CREATE_VIEW = StatementKind(
    ("CREATE VIEW",),
    "CREATE VIEW name [RETAIN duration] AS select",
    parse_create_view,
    ("CREATE VIEW large AS SELECT k, v FROM s WHERE v > 10",),
)
