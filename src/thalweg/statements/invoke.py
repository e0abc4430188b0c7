"""INVOKE query [AT instant]: its answer, now or at an instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from thalweg.lang.binding.instant_literals import moment
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.syntax import exp
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Reading


@dataclass(frozen=True, slots=True)
class Invoke:
    effect: ClassVar[Effect] = Effect.READ
    name: str
    moment: exp.Expr | None
    at: int

    def run(self, on: Reading, script: str) -> Any:
        at = None if self.moment is None else moment(self.moment, script)
        return on.invoke(self.name, at)


def parse_invoke(c: Cursor, at: int) -> Invoke:
    c.need("INVOKE")
    name = c.name("a query")
    return Invoke(name, c.expression_() if c.word("AT") else None, at)


INVOKE = StatementKind(
    ("INVOKE",),
    "INVOKE query [AT instant]",
    parse_invoke,
    ("INVOKE q", "INVOKE q AT TIMESTAMP '2026-01-01 12:00:00'"),
)
