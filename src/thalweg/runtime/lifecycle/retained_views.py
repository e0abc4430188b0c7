"""Views that keep what they emit: a query of its own, whose output is a stream for others.

Queries are added and dropped there: they read what was kept and then what arrives, and neither
side is planned with the other. A view without RETAIN is materialised nowhere, one with it for as
long as it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from thalweg.errors import ConfigError, DuplicateName
from thalweg.exec.relations.emit import SIGN
from thalweg.instants import BEFORE_TIME, format_duration
from thalweg.models.functions.curve import START
from thalweg.plan.bound_query import BoundQuery, QueryOptions
from thalweg.plan.catalog import Catalog, SourceSpec, StreamDef
from thalweg.plan.logical import EmitKind, Field
from thalweg.plan.physical import QueryPlan
from thalweg.plan.types import TINYINT
from thalweg.runtime.lifecycle.history_start import passes_rows_on, reach
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.planner import Planned, Planner
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.internal_names import view_query
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import VIEW, Definition
from thalweg.runtime.state.stream_definitions import STREAM, described, read_stream
from thalweg.runtime.state.stream_state import StreamState


class RetainedViews:
    """The queries of views, and the streams they feed."""

    def __init__(
        self,
        catalog: Catalog,
        state: EngineState,
        plans: PlanTable,
        planner: Planner,
        registry: QueryRegistry,
        definitions: Definitions,
        files: PendingFiles,
    ) -> None:
        self._catalog = catalog
        self._state = state
        self._plans = plans
        self._planner = planner
        self._registry = registry
        self._definitions = definitions
        self._files = files

    def text(self, name: str) -> str | None:
        """What a view says, if there is one of this name."""
        query = self._state.queries.get(view_query(name))
        return None if query is None else query.definition.text

    def begin(self, name: str, planned: Planned, retain: int | None) -> None:
        """Run the query of a view, and know the stream it feeds."""
        bound = _recorded(planned.bound)
        own, stream = view_query(name), _stream(name, bound, retain)
        self._catalog.streams[name] = stream
        self._definitions.put(STREAM, name, described(stream))
        text = planned.text
        definition = Definition(text, created=text, kind=VIEW, feeds=name)
        plan = planned.plan if bound is planned.bound else self._planner.physical(bound)
        query = self._registry.add(own, definition, plan, _options(bound))
        seen = query.history.begins
        since = max((_whole_since(s, seen, self._state) for s in seen), default=BEFORE_TIME)
        self._state.streams.setdefault(name, StreamState()).whole_since = (
            since if since == BEFORE_TIME else since + _reach(plan)
        )

    def refuse_other_retain(self, name: str, retain: int | None) -> None:
        kept = self._stream(name).retain
        if kept != retain:
            raise DuplicateName(
                f"view {name} keeps what it emits for {format_duration(kept or 0)}",
                remedy=f"say so, or DROP VIEW {name} first",
            )

    def _stream(self, name: str) -> StreamDef:
        stream = read_stream(self._definitions.get(STREAM, name) or "")
        assert stream is not None
        return stream

    def restore(self, name: str) -> None:
        """Know the stream of a view of an earlier run."""
        self._catalog.streams[name] = self._stream(name)

    def resume(self) -> None:
        """Let the queries of views go on, once their streams are there."""
        for own, query in self._state.of_kind(VIEW):
            if own not in self._plans:
                self.restore(query.definition.feeds)
                bound = _recorded(self._planner.bind(query.definition.text))
                self._registry.replan(own, self._planner.physical(bound), _options(bound))

    def drop(self, name: str) -> None:
        self._registry.remove(view_query(name))
        self._catalog.streams.pop(name)
        self._definitions.pop(STREAM, name)
        self._files.drop(pack.name for pack in self._state.streams.pop(name).packs)


def _options(bound: BoundQuery) -> QueryOptions:
    """What others read is not shortened."""
    return replace(bound.options, state_limit=None)


def _whole_since(stream: str, begins: Mapping[str, int], state: EngineState) -> int:
    return max(begins[stream], state.streams[stream].whole_since)


def _reach(plan: QueryPlan) -> int:
    """How far windows reach back, all together; what never ends does not count."""
    if passes_rows_on(plan):
        return 0
    found = reach(plan, 0)
    return 0 if found == BEFORE_TIME else -found


def _recorded(bound: BoundQuery) -> BoundQuery:
    """The query whose changes a view keeps: segments as they are, not as rows of an answer."""
    node = bound.root.input.recorded() if bound.root.kind is EmitKind.RELATION else None
    return bound if node is None else replace(bound, root=replace(bound.root, input=node))


def _stream(name: str, bound: BoundQuery, retain: int | None) -> StreamDef:
    fields = bound.schema
    if bound.root.kind is EmitKind.RELATION and any(f.name == START for f in fields):
        fields = (*fields, Field(SIGN, TINYINT, False))
    elif bound.root.kind is EmitKind.RELATION:
        raise ConfigError(
            f"view {name} gives a relation: RETAIN keeps the stream that a view emits",
            remedy="write ISTREAM, DSTREAM or RSTREAM after SELECT, or leave RETAIN out",
        )
    if bound.sink is not None or bound.options.materialize is not None:
        raise ConfigError(f"view {name} is read by others", remedy="leave INTO and materialize out")
    return StreamDef(name, fields, None, idle=None, retain=retain, source=SourceSpec("view", name))
