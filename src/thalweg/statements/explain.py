"""EXPLAIN of a query by name or text: its plan; with ADAPT what was learned while it ran, with
BOUND how large its join can be, with ANALYZE that beside an estimate and a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from thalweg.errors import ConfigError, NotAvailableYet
from thalweg.lang.parsing.cursor import Cursor
from thalweg.statements.create_query import (
    CreateQuery,
    SelectStatement,
    parse_create_query,
    parse_select_statement,
)
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Reading

MODES = ("ESTIMATE", "BOUND", "ANALYZE", "ADAPT")


@dataclass(frozen=True, slots=True)
class Explain:
    effect: ClassVar[Effect] = Effect.READ
    mode: str | None
    statement: SelectStatement | CreateQuery | str
    at: int

    def run(self, on: Reading, script: str) -> str:
        inner = self.statement
        if self.mode == "ADAPT" and isinstance(inner, str):
            return on.explain_adaptation(inner)
        if self.mode == "ADAPT":
            raise ConfigError(
                "EXPLAIN ADAPT tells what a query has learned while it ran",
                remedy="register it, and give its name",
            )
        text = inner if isinstance(inner, str) else inner.text
        if self.mode == "BOUND":
            return on.explain_bound(text)
        if self.mode == "ANALYZE":
            return on.explain_sizes(text)
        if self.mode is not None:
            raise NotAvailableYet(
                f"EXPLAIN {self.mode} is not available yet",
                remedy="leave it out: EXPLAIN alone gives the plan and what bounds the state",
            )
        return on.explain(inner) if isinstance(inner, str) else on.explain_text(inner.text)


def parse_explain(c: Cursor, at: int) -> Explain:
    c.need("EXPLAIN")
    mode = next((m for m in MODES if c.word(m)), None)
    if c.peek("CREATE", "QUERY"):
        return Explain(mode, parse_create_query(c, c.offset()), at)
    if c.peek("CREATE"):
        c.fail("only queries can be explained", "write EXPLAIN SELECT ..., or its name", at=at)
    if c.peek("SELECT"):
        return Explain(mode, parse_select_statement(c, c.offset()), at)
    return Explain(mode, c.name("a query or SELECT"), at)


EXPLAIN = StatementKind(
    ("EXPLAIN",),
    "EXPLAIN [ADAPT | BOUND | ANALYZE] (query | select)",
    parse_explain,
    ("EXPLAIN SELECT k FROM s", "EXPLAIN BOUND SELECT a.k FROM s a, s b WHERE a.k = b.k"),
)
