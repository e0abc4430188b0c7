"""CREATE ALERT name AS SELECT ... WITHIN ... WHEN ...: the grammar only, so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from thalweg.errors import NotAvailableYet
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.select_grammar import parse_select
from thalweg.lang.syntax import TokenType, exp
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Services


@dataclass(frozen=True, slots=True)
class CreateAlert:
    effect: ClassVar[Effect] = Effect.SOURCE
    name: str
    query: ast.Select
    within: tuple[tuple[str, int], ...]
    domains: tuple[tuple[exp.Expr, exp.Expr, exp.Expr], ...]
    when: exp.Expr
    clear_below: exp.Expr | None
    at: int

    def run(self, on: Services, script: str) -> None:
        raise NotAvailableYet(
            "CREATE ALERT is not available yet",
            remedy="write CREATE QUERY with the condition in WHERE, and read its output",
        )


def parse_create_alert(c: Cursor, at: int) -> CreateAlert:
    c.need("CREATE", "ALERT")
    name = c.name("an alert name")
    c.need("AS")
    query = parse_select(c)
    if not isinstance(query, ast.Select):
        c.fail("an alert takes one SELECT", "combine them in a view, and select from it", at=at)
    c.need("WITHIN")
    within = _within(c)
    if c.word("WHERE"):
        query = replace(query, conditions=(*query.conditions, c.expression_()))
    domains = []
    while c.word("DOMAIN"):
        domains.append(_domain(c))
    c.need("WHEN")
    when = c.expression_()
    clear = c.expression_() if c.word("CLEAR", "BELOW") else None
    return CreateAlert(name, query, within, tuple(domains), when, clear, at)


def _domain(c: Cursor) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    # not an expression: `r.x (0, 100)` would be read as a call
    at = c.offset()
    table, _, name = c.dotted_name("a column").rpartition(".")
    bounds = c.wrapped(c.expression_)
    if len(bounds) != 2:
        c.fail("DOMAIN takes a lower and an upper bound", "write DOMAIN r.x (lo, hi)", at)
    column = exp.column(name, table or None)
    column.meta["at"] = at
    return column, bounds[0], bounds[1]


def _within(c: Cursor) -> tuple[tuple[str, int], ...]:
    if not c._match(TokenType.L_PAREN):
        return (("*", c.duration()),)
    found = [_pair(c)]
    while c._match(TokenType.SEMICOLON) or c._match(TokenType.COMMA):
        found.append(_pair(c))
    c.symbol(TokenType.R_PAREN, ")")
    return tuple(found)


def _pair(c: Cursor) -> tuple[str, int]:
    left = c.name("a source")
    c.symbol(TokenType.COMMA, ",")
    right = c.name("a source")
    return f"{left},{right}", c.duration()


CREATE_ALERT = StatementKind(
    ("CREATE ALERT",),
    "CREATE ALERT name AS select WITHIN duration WHEN condition",
    parse_create_alert,
    ("CREATE ALERT a AS SELECT r.k FROM r, s WITHIN 5 MINUTES WHEN r.v > s.v",),
)
