"""Queries, views and tables that change and go while data flow, each between two epochs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thalweg.errors import ConfigError, NotAvailableYet, StillRead, UnknownName, did_you_mean
from thalweg.lang import ast
from thalweg.lang.options import checked_options
from thalweg.lang.parser import parse_query, place
from thalweg.lang.windows import source_called, with_window
from thalweg.plan.catalog import ViewDef
from thalweg.plan.query import LIVE_OPTIONS, BoundQuery
from thalweg.runtime.results.results_reader import output_schema
from thalweg.runtime.session.declaring import Declaring
from thalweg.runtime.sharing.filter_cohorts import Members
from thalweg.runtime.state.engine_state import FAILED, PAUSED, QueryState
from thalweg.runtime.state.stream_definitions import VIEW

if TYPE_CHECKING:
    from thalweg.runtime.invoke.materialize_modes import Standing
    from thalweg.runtime.session.query_handle import Prepared, Query
    from thalweg.runtime.sharing.dormant_queries import Sleeping


class Management(Declaring):
    """The part of `Session` that changes what is registered. `reads` are the names that a query or
    view was made from, directly or through others."""

    reads: dict[str, frozenset[str]]

    prepare: Callable[..., Prepared]
    for_good: Callable[[Callable[[], Any]], Any]
    known_query: Callable[[str], Query]
    known_state: Callable[[str], QueryState]
    unfold: Callable[[str], None]
    members: Members
    standing: Standing
    sleeping: Sleeping

    def manage(self, statement: ast.Manage) -> None:
        """PAUSE, RESUME or DROP."""
        rules: dict[tuple[str, str], Callable[[str], None]] = {
            ("PAUSE", "QUERY"): self.pause,
            ("RESUME", "QUERY"): self.resume,
            ("DROP", "QUERY"): self.drop_query,
            ("DROP", "VIEW"): self.drop_view,
            ("DROP", "TABLE"): self.drop_table,
        }
        rule = rules.get((statement.verb, statement.kind))
        if rule is None:
            raise NotAvailableYet(f"{statement.verb} {statement.kind} is not available yet")
        rule(statement.name)

    def pause(self, name: str) -> None:
        """Let a query rest. What it has yet to see is kept for it: its streams' packs pile up."""
        known = self.known_query(name).name
        self.for_good(lambda: self._paused(known))

    def _paused(self, name: str) -> None:
        self.unfold(name)
        self.coordinator.pause(name)

    def resume(self, name: str) -> None:
        """Let a query that rests, or had failed, go on where it stopped: nothing is skipped."""
        query = self.known_query(name)
        if query.status in (PAUSED, FAILED):
            self.for_good(lambda: self._resumed(query.name))

    def _resumed(self, name: str) -> None:
        self.coordinator.resume(name)
        self.sleeping.tire(name)

    def drop_query(self, name: str) -> None:
        """Remove a query with its state and results."""
        known = self.known_query(name).name
        self.for_good(lambda: self._dropped_query(known))

    def _dropped_query(self, name: str) -> None:
        self.known_query(name)
        self._refuse_while_read(name, "dropped")
        is_member = name in self.members.by_name
        self.members.dropped(name)
        if not is_member:
            self.standing.leave(name)
            if not self.sleeping.drop(name):
                self.coordinator.remove_query(name)
        del self.queries[name]
        self.reads.pop(name, None)
        self.catalog.views.pop(name, None)

    def share_windows(self, on: bool) -> None:
        """Let windows over the order of rows be kept once for all queries, or not."""
        self.for_good(lambda: setattr(self.coordinator.stores, "enabled", on))

    def drop_view(self, name: str) -> None:
        name = self._called(name)
        if name in self.queries:
            raise ConfigError(f"{name} is a query", remedy=f"use DROP QUERY {name}")
        if name not in self.catalog.views and not self.retained.has(name):
            raise UnknownName(f"unknown view {name}", remedy=did_you_mean(name, self.catalog.views))
        self.for_good(lambda: self._dropped_view(name))

    def _dropped_view(self, name: str) -> None:
        self._refuse_while_read(name, "dropped")
        self.reads.pop(name, None)
        self.catalog.views.pop(name, None)
        if self.retained.has(name):
            self.retained.drop(name)
        self.coordinator.state.definitions.pop(f"{VIEW}{name}", None)

    def drop_table(self, name: str) -> None:
        name = self._called(name)
        tables = self.coordinator.state.tables
        if name not in tables:
            raise UnknownName(f"unknown table {name}", remedy=did_you_mean(name, tables))
        self.for_good(lambda: self._dropped_table(name))

    def _dropped_table(self, name: str) -> None:
        self._refuse_while_read(name, "dropped")
        state = self.coordinator.state
        for pack in state.tables.pop(name, ()):
            self.coordinator.drop_later(pack.name)
        state.versions.pop(name, None)
        self.catalog.tables.pop(name, None)

    def _called(self, name: str) -> str:
        """What is meant, as it is written: case makes no difference."""
        known = self.catalog.relation(name)
        return name if known is None else known.name

    def readers_of(self, name: str) -> list[str]:
        """Queries and views made from this name."""
        return [reader for reader, read in list(self.reads.items()) if name in read]

    def _refuse_while_read(self, name: str, what: str) -> None:
        readers = self.readers_of(name)
        if readers:
            shown = ", ".join(readers[:5]) + (", ..." if len(readers) > 5 else "")
            raise StillRead(
                f"{name} cannot be {what}: {shown} read{'s' if len(readers) == 1 else ''} it",
                remedy=f"drop {'it' if len(readers) == 1 else 'them'} first",
            )

    # -- altering ----------------------------------------------------------------------------

    def alter(self, statement: ast.AlterQuery, text: str) -> None:
        """ALTER QUERY: options, a window, or all of it."""
        query = self.known_query(statement.name)
        if statement.options:
            self._alter_options(query, statement, text)
        elif statement.window is not None:
            self._alter_window(query, statement, text)
        else:
            assert statement.query is not None
            select = ast.SelectStatement(statement.query, statement.text, statement.at)
            self._alter_text(query, self.prepare(query.name, select, text))

    def _alter_options(self, query: Query, statement: ast.AlterQuery, text: str) -> None:
        """Options that steer how a query runs, set while it runs."""
        changes = checked_options(statement.options, text, statement.at)
        fixed = [name for name in changes if name not in LIVE_OPTIONS]
        if fixed:
            raise ConfigError(
                f"{', '.join(fixed)} cannot be changed while a query runs",
                remedy=f"these can: {', '.join(LIVE_OPTIONS)}; otherwise register another query",
            )
        self.for_good(lambda: self.set_options(query, changes))

    def set_options(self, query: Query, changes: dict[str, Any]) -> None:
        bound = replace(query.bound, options=replace(query.bound.options, **changes))
        known = self.known_state(query.name)
        mode = self.standing.mode_after(query.name, bound, known)
        self.unfold(query.name)
        self.coordinator.state.queries[query.name].altered |= changes
        query.known = bound
        query.limit()
        if mode != known.mode:
            self.standing.switch(query.name, mode, bound)
        self.standing.watch(query.name, bound)
        if changes.keys() & {"filters", "profile", "share"}:
            plan = query.session.physical(query.bound)
            self.coordinator.replan(query.name, plan, query.bound.options)

    def _alter_window(self, query: Query, statement: ast.AlterQuery, text: str) -> None:
        """Another window over one source: the query's text with the new one in its place."""
        assert statement.window_source is not None
        parsed = parse_query(query.text)
        try:
            source = source_called(parsed, statement.window_source, query.name)
        except ConfigError as error:
            raise error.at(text, *place(text, statement.at)) from None
        changed = with_window(query.text, source, statement.text)
        select = ast.SelectStatement(parse_query(changed), changed, 0)
        altered = self.known_state(query.name).altered
        self._alter_text(query, self.prepare(query.name, select, changed, altered))

    def _alter_text(self, query: Query, prepared: Prepared) -> None:
        _refuse_other_columns(query.name, query.bound, prepared.bound)
        self.for_good(lambda: self._set_text(query, prepared))

    def _set_text(self, query: Query, prepared: Prepared) -> None:
        self.known_query(query.name)
        self._refuse_while_read(query.name, "changed")
        prepared = prepared.again() if prepared.is_outdated else prepared
        known = self.known_state(query.name)
        mode = self.standing.mode_after(query.name, prepared.bound, known)
        self.unfold(query.name)
        self.standing.leave(query.name)
        self.coordinator.replace_query(
            query.name, prepared.text, prepared.plan, prepared.bound.options
        )
        self.coordinator.state.queries[query.name].altered = dict(prepared.altered)
        if mode:
            self.standing.switch(query.name, mode, prepared.bound)
        query.text, query.known = prepared.text, prepared.bound
        self.standing.watch(query.name, query.bound)
        query.limit()
        self.reads[query.name] = frozenset(prepared.reads)
        self.catalog.views[query.name] = ViewDef(query.name, query.text)

    # -- views outlive the process -----------------------------------------------------------

    def keep_view(self, view: ViewDef, reads: frozenset[str]) -> None:
        described = json.dumps({"text": view.text, "reads": sorted(reads)})
        self.coordinator.state.definitions[f"{VIEW}{view.name}"] = described
        self.catalog.views[view.name] = view
        self.reads[view.name] = reads

    def restore_views(self) -> None:
        """Views of an earlier run."""
        for key, described in self.coordinator.state.definitions.items():
            if key.startswith(VIEW):
                kept = json.loads(described)
                name = key.removeprefix(VIEW)
                self.reads[name] = frozenset(kept["reads"])
                if kept.get("retained"):
                    self.retained.restore(name)
                else:
                    self.catalog.views[name] = ViewDef(name, kept["text"])


def _refuse_other_columns(name: str, old: BoundQuery, new: BoundQuery) -> None:
    """Who reads the results must not be surprised by other columns in the midst of them."""
    before, after = output_schema(old), output_schema(new)
    if [(f.name, f.type) for f in before] != [(f.name, f.type) for f in after]:
        raise ConfigError(
            f"the results of {name} would change from ({_columns(before)}) to ({_columns(after)})",
            remedy="keep the columns and whether it is a relation, or drop the query and create it "
            "anew",
        )


def _columns(schema: Any) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)
