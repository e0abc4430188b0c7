"""The surface that Engine and Runner share: statements, queries, answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa

from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.lang.parsing.places import placed
from thalweg.plan.catalog import Catalog
from thalweg.runtime.lifecycle.query_catalog import Callback as Callback
from thalweg.runtime.lifecycle.query_catalog import Registered
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.query_commands import QueryCommands
from thalweg.runtime.session.query_handle import Query as Query
from thalweg.runtime.session.resumption import restore_objects, resume_queries
from thalweg.statements import CreateQuery, SelectStatement, parse
from thalweg.statements.protocol import Statement
from thalweg.statements.run import changes_registrations, commits, run_statements
from thalweg.statements.services import Sources


class Handles(Mapping[str, Query]):
    """All registered queries by name, each as a handle."""

    def __init__(self, core: EngineCore, handle: Callable[[Registered], Query]) -> None:
        self._queries = core.queries.queries
        self._handle = handle

    def __getitem__(self, name: str) -> Query:
        return self._handle(self._queries[name])

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._queries))

    def __len__(self) -> int:
        return len(self._queries)


class Session:
    """Names and statements over one engine. `sources` make streams and tables; `commands` are those
    of the handles of queries."""

    def __init__(
        self,
        core: EngineCore,
        sources: Sources | None = None,
        commands: QueryCommands | None = None,
    ) -> None:
        self.core = core
        self.commands = commands or QueryCommands(_refuse_to_follow)
        self.services = core.services(self.commands.handle, sources)
        self.commands.attach(core, self.services)
        self.queries = Handles(core, self.commands.handle)
        restore_objects(core, self.services)

    @property
    def catalog(self) -> Catalog:
        return self.core.catalog

    def sql(self, script: str) -> Any:
        """Run statements separated by semicolons; returns the last one's result. While an engine
        runs, changes that follow one another are made at once."""
        return self.run(parse(script, self.core.language), script)

    def run(self, statements: Iterable[Statement], script: str) -> Any:
        """Run statements of a script that has been parsed."""
        result: Any = None
        for is_change, group in groupby(statements, key=changes_registrations):
            together = list(group)
            # without a driver each change is committed by itself: what fails undoes none before it
            several = [together] if self.core.changes.is_running else [[s] for s in together]
            for some in several if is_change else [together]:
                result = self._made(is_change, some, script)
        return result

    def _made(self, is_change: bool, statements: Sequence[Statement], script: str) -> Any:
        run = partial(run_statements, statements, self.services, script)
        if not is_change:
            return run()
        if any(map(commits, statements)):
            return self.core.changes.committed(run)
        return self.core.changes.between_epochs(run)

    def query(self, sql: str, name: str | None = None, callback: Callback | None = None) -> Query:
        """Register a continuous query; `callback` gets each epoch's output as a table. It is
        planned before the epoch under way ends."""
        statements = parse(sql, self.core.language)
        if len(statements) != 1 or not isinstance(statements[0], (SelectStatement, CreateQuery)):
            raise ConfigError(
                "query() takes one SELECT (or CREATE QUERY)", remedy="use sql() for scripts"
            )
        said, registration = statements[0], self.core.registration
        if isinstance(said, CreateQuery):
            name = name or said.name
        chosen = name or registration.free_name(said.text)
        with placed(sql, said.at):
            planned = registration.plan(chosen, said.query, said.text, sql)
            admit = partial(registration.admit, planned, callback)
            return self.commands.handle(self.core.changes.between_epochs(admit))

    def resume(self, callbacks: Mapping[str, Callback] | None = None) -> None:
        """Resume the queries of an earlier run."""
        resume_queries(self.core, callbacks)

    def explain(self, query: str | Query) -> str:
        """The plan, routing and bounded-state verdict of a query (by name, handle or text)."""
        name = query.name if isinstance(query, Query) else query
        if name in self.core.queries.queries:
            return self.core.explainer.query(name)
        return self.core.explainer.text(name)

    def rejects(self, stream: str) -> pa.Table:
        """Rows of a stream that were late, had no time, or lay too far ahead, with the reason."""
        known = {*self.core.catalog.streams, *self.core.state.streams}
        if stream not in known:
            raise UnknownName(f"unknown stream {stream}", remedy=did_you_mean(stream, known))
        return self.core.results.rejects_of_stream(stream)

    def share_windows(self, on: bool) -> None:
        """Let windows over the order of rows be kept once for all queries, or not."""
        settings = self.core.settings
        self.core.changes.committed(partial(setattr, settings, "share_windows", on))


def _refuse_to_follow(name: str) -> Any:
    raise ConfigError("to_stream() needs an Engine", remedy="start one with thalweg.Engine()")
