"""Views that keep what they emit: a query of its own, whose output is a stream for others.

It is a point at which queries come and go: they read what was kept and then what comes, and neither
side is planned with the other. A view without RETAIN is materialised nowhere, one with it for as
long as it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from thalweg.errors import ConfigError, DuplicateName
from thalweg.exec.frame import BEFORE_TIME
from thalweg.lang import ast
from thalweg.plan.catalog import SourceSpec, StreamDef, ViewDef
from thalweg.plan.logical import EmitKind, format_duration
from thalweg.plan.physical import QueryPlan
from thalweg.plan.query import BoundQuery
from thalweg.runtime.lifecycle.history_start import passes_rows_on, reach
from thalweg.runtime.state.engine_state import VIEWS, EngineState, StreamState
from thalweg.runtime.state.stream_definitions import STREAM, VIEW, described, read_stream

if TYPE_CHECKING:
    from thalweg.runtime.session.session import Session


class RetainedViews:
    """The part of a session that runs them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.coordinator = session.coordinator

    def has(self, name: str) -> bool:
        return f"{VIEWS}{name}" in self.coordinator.state.queries

    def define(self, statement: ast.CreateView, text: str) -> ViewDef:
        name, own = statement.name, f"{VIEWS}{statement.name}"
        known = self.coordinator.state.queries.get(own)
        if known is not None and known.text == statement.text:
            self._refuse_other_retain(name, statement.retain)
            self.resume()
            return ViewDef(name, statement.text)
        if self.session.catalog.relation(name) is not None:
            raise DuplicateName(f"{name} is already defined", remedy="use another name")
        select = ast.SelectStatement(statement.query, statement.text, statement.at)
        prepared = self.session.prepare(own, select, text)
        stream = _stream(name, prepared.bound, statement.retain)

        def begin() -> None:
            session, state = self.session, self.coordinator.state
            session.catalog.streams[name] = stream
            state.definitions[f"{STREAM}{name}"] = described(stream)
            reads = frozenset(prepared.reads)
            kept = {"text": statement.text, "reads": sorted(reads), "retained": True}
            state.definitions[f"{VIEW}{name}"] = json.dumps(kept)
            session.reads[name] = reads
            self.coordinator.add_query(own, statement.text, prepared.plan, prepared.bound.options)
            seen = self.coordinator.state.queries[own].begins
            since = max((_whole_since(s, seen, state) for s in seen), default=BEFORE_TIME)
            state.streams.setdefault(name, StreamState()).whole_since = (
                since if since == BEFORE_TIME else since + _reach(prepared.plan)
            )

        self.session.between_epochs(begin)
        return ViewDef(name, statement.text)

    def _refuse_other_retain(self, name: str, retain: int | None) -> None:
        kept = self._stream(name).retain
        if kept != retain:
            raise DuplicateName(
                f"view {name} keeps what it emits for {format_duration(kept or 0)}",
                remedy=f"say so, or DROP VIEW {name} first",
            )

    def _stream(self, name: str) -> StreamDef:
        stream = read_stream(self.coordinator.state.definitions[f"{STREAM}{name}"])
        assert stream is not None
        return stream

    def restore(self, name: str) -> None:
        """Know the stream of a view of an earlier run."""
        self.session.catalog.streams[name] = self._stream(name)

    def resume(self) -> None:
        """Let the queries of views go on, once their streams are there."""
        for own, query in list(self.coordinator.state.queries.items()):
            if own.startswith(VIEWS) and own not in self.coordinator.plans:
                self.restore(own.removeprefix(VIEWS))
                bound = self.session.bind(query.text)
                self.coordinator.replan(own, self.session.physical(bound), bound.options)

    def drop(self, name: str) -> None:
        state = self.coordinator.state
        self.coordinator.remove_query(f"{VIEWS}{name}")
        self.session.catalog.streams.pop(name)
        state.definitions.pop(f"{STREAM}{name}", None)
        for pack in state.streams.pop(name).packs:
            self.coordinator.drop_later(pack.name)


def _whole_since(stream: str, begins: Mapping[str, int], state: EngineState) -> int:
    return max(begins[stream], state.streams[stream].whole_since)


def _reach(plan: QueryPlan) -> int:
    """How far windows reach back, all together; what never ends does not count."""
    if passes_rows_on(plan):
        return 0
    found = reach(plan, 0)
    return 0 if found == BEFORE_TIME else -found


def _stream(name: str, bound: BoundQuery, retain: int | None) -> StreamDef:
    if bound.root.kind is EmitKind.RELATION:
        raise ConfigError(
            f"view {name} gives a relation: RETAIN keeps the stream that a view emits",
            remedy="write ISTREAM, DSTREAM or RSTREAM after SELECT, or leave RETAIN out",
        )
    if bound.sink is not None or bound.options.materialize is not None:
        raise ConfigError(f"view {name} is read by others", remedy="leave INTO and materialize out")
    return StreamDef(
        name, bound.schema, None, idle=None, retain=retain, source=SourceSpec("view", name)
    )
