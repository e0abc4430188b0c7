"""ANALYZE TABLE: make the statistics that bounds of joins are computed from when no row is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from thalweg.lang.parsing.cursor import Cursor
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Services


@dataclass(frozen=True, slots=True)
class Analyze:
    effect: ClassVar[Effect] = Effect.CHANGE
    names: tuple[str, ...]
    at: int

    def run(self, on: Services, script: str) -> None:
        on.statistics.analyze(*self.names)


def parse_analyze(c: Cursor, at: int) -> Analyze:
    c.need("ANALYZE", "TABLE")
    return Analyze(tuple(c.listed(lambda: c.name("a table or stream"))), at)


ANALYZE = StatementKind(
    ("ANALYZE TABLE",), "ANALYZE TABLE name [, name]", parse_analyze, ("ANALYZE TABLE t",)
)
