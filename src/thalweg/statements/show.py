"""SHOW: what there is, as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from thalweg.lang.parsing.cursor import Cursor
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Reading


@dataclass(frozen=True, slots=True)
class Show:
    """The objects of a kind by its plural, the PLANS of a query, or the STATE of streams."""

    effect: ClassVar[Effect] = Effect.READ
    what: str
    name: str | None
    at: int

    def run(self, on: Reading, script: str) -> pa.Table:
        if self.what == "PLANS":
            return pa.Table.from_pylist([{"plan": on.explain(str(self.name))}])
        rows = on.state() if self.what == "STATE" else on.listed(self.what)
        return pa.Table.from_pylist(list(rows))


def parse_show(c: Cursor, at: int) -> Show:
    c.need("SHOW")
    for what in (*c.object_plurals, "STATE"):
        if c.word(what):
            return Show(what, None, at)
    if c.word("PLANS"):
        return Show("PLANS", c.name("a query"), at)
    c.unexpected(f"{', '.join(c.object_plurals)}, PLANS q or STATE")


SHOW = StatementKind(
    ("SHOW",),
    "SHOW (STREAMS | QUERIES | TABLES | VIEWS | PLANS query | STATE)",
    parse_show,
    ("SHOW QUERIES", "SHOW PLANS q"),
)
