"""ALTER QUERY: options, the window of a source, or all of it, while the query runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from thalweg.errors import ConfigError
from thalweg.lang.binding.query_options import checked_options
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.alter_window import source_called, with_window
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.parser import parse_query
from thalweg.lang.parsing.places import place
from thalweg.lang.parsing.select_grammar import parse_select, window_clause
from thalweg.plan.bound_query import LIVE_OPTIONS
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Services
from thalweg.windows.protocol import WindowClause


@dataclass(frozen=True, slots=True)
class AlterQuery:
    """SET WINDOW of a source, SET options, or AS another query; `text` is that of the window in its
    brackets, or of the query."""

    effect: ClassVar[Effect] = Effect.COMMIT
    name: str
    window_source: str | None
    window: WindowClause | None
    options: tuple[tuple[str, Any], ...]
    query: ast.Query | None
    at: int
    text: str = ""

    def run(self, on: Services, script: str) -> None:
        if self.options:
            self._set_options(on, script)
        elif self.window is not None:
            self._set_window(on, script)
        else:
            assert self.query is not None
            on.queries.replace(self.name, self.query, self.text, script)

    def _set_options(self, on: Services, script: str) -> None:
        """Options that steer how a query runs, set while it runs."""
        on.queries.text(self.name)  # refused first, if there is none
        changes = checked_options(self.options, script, self.at)
        fixed = [name for name in changes if name not in LIVE_OPTIONS]
        if fixed:
            raise ConfigError(
                f"{', '.join(fixed)} cannot be changed while a query runs",
                remedy=f"these can: {', '.join(LIVE_OPTIONS)}; otherwise register another query",
            )
        on.queries.set_options(self.name, changes)

    def _set_window(self, on: Services, script: str) -> None:
        """Another window over one source: the query's text with the new one in its place."""
        assert self.window_source is not None
        text = on.queries.text(self.name)
        try:
            source = source_called(parse_query(text), self.window_source, self.name)
        except ConfigError as error:
            raise error.at(script, *place(script, self.at)) from None
        changed = with_window(text, source, self.text)
        altered = on.queries.altered(self.name)
        on.queries.replace(self.name, parse_query(changed), changed, changed, altered)


def parse_alter(c: Cursor, at: int) -> AlterQuery:
    c.need("ALTER")
    c.need("QUERY")
    name = c.name("a query")
    if c.word("AS"):
        start = c.offset()
        query = parse_select(c)
        return AlterQuery(name, None, None, (), query, at, c.text_since(start))
    c.need("SET")
    if c.word("WINDOW"):
        source = c.name("a source")
        start = c.offset()
        window = window_clause(c)
        return AlterQuery(name, source, window, (), None, at, c.text_since(start))
    return AlterQuery(name, None, None, c.options(), None, at)


ALTER_QUERY = StatementKind(
    ("ALTER",),
    "ALTER QUERY name (SET WINDOW source [window] | SET (option = value, ...) | AS select)",
    parse_alter,
    (
        "ALTER QUERY q SET WINDOW s [RANGE 5 MINUTES]",
        "ALTER QUERY q SET (filters = 'fixed')",
        "ALTER QUERY q AS SELECT k FROM s",
    ),
)
