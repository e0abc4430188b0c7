"""Registering queries: a name, a plan, and a place to run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from thalweg.errors import DuplicateName
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.parser import parse_query, same_text
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import SYSSTREAM, Catalog
from thalweg.runtime.invoke.materialize_modes import MaterializeModes
from thalweg.runtime.lifecycle.query_catalog import Callback, QueryCatalog, Registered
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.planner import Planned, Planner, output_schema
from thalweg.runtime.results.described_schema import described_schema
from thalweg.runtime.sharing.cohort_admission import CohortAdmission
from thalweg.runtime.sharing.filter_cohorts import FilterCohorts
from thalweg.runtime.sharing.placement import Placement
from thalweg.runtime.sinks.factory import SinkFactory
from thalweg.runtime.sinks.sinks import FunctionSink, Sink
from thalweg.runtime.sizes.admission import refuse_larger
from thalweg.runtime.sizes.initial_plan import initial_plan
from thalweg.runtime.sizes.join_sizes import JoinSizes
from thalweg.runtime.sources.python_arguments import refuse_name
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import Definition


class Registration:
    """Lets queries in. `plan` may be asked at any time, `admit` between two epochs only. `fetch`
    collects the rows of tables that a query is going to read."""

    def __init__(
        self,
        catalog: Catalog,
        state: EngineState,
        planner: Planner,
        queries: QueryCatalog,
        registry: QueryRegistry,
        cohorts: FilterCohorts,
        admission: CohortAdmission,
        placement: Placement,
        modes: MaterializeModes,
        sinks: SinkFactory,
        sizes: JoinSizes,
        fetch: Callable[[Iterable[str]], None],
    ) -> None:
        self._catalog = catalog
        self._state = state
        self._planner = planner
        self._queries = queries
        self._registry = registry
        self._cohorts = cohorts
        self._admission = admission
        self._placement = placement
        self._modes = modes
        self._sinks = sinks
        self._sizes = sizes
        self._fetch = fetch
        self._unnamed = 0

    def free_name(self, text: str) -> str:
        """A name for a bare SELECT: the one it had on this path, or a new one."""
        known = self._state.texts()
        known |= {name: member.text for name, member in self._cohorts.by_name.items()}
        taken = self._queries.queries
        for name, other in known.items():
            if name not in taken and same_text(other, text):
                return name
        while (name := f"q{self._unnamed + 1}") in taken or name in known:
            self._unnamed += 1
        return name

    def plan(self, name: str, query: ast.Query, text: str, script: str) -> Planned:
        """Bind and plan a query; nothing is changed by it. One that this path knows says what
        ALTER QUERY has made of it."""
        self._refuse_taken(name, text)
        known = self._known(name)
        if known is not None and not same_text(known[0], text):
            text = script = known[0]
            query = parse_query(text)
        return self.planned(name, query, text, script)

    def replanned(self, name: str, text: str) -> Planned:
        """The plan of a query that this path knows."""
        return self.plan(name, parse_query(text), text, text)

    def planned(
        self,
        name: str,
        query: ast.Query,
        text: str,
        script: str,
        altered: Mapping[str, Any] | None = None,
    ) -> Planned:
        """The plan of a query, with options that were `altered`: these hold for the same text
        again, or if they are given."""
        known = self._state.known(name)
        definition = None if known is None else known.definition
        is_same = definition is not None and same_text(definition.text, text)
        if altered is None:
            altered = definition.altered if definition is not None and is_same else {}
        found = self._planner.planned(name, query, text, script, altered)
        self._fetch(found.reads)
        if definition is None or not definition.mode or not is_same:
            self._modes.refuse(name, found.bound)  # one that runs has found its mode
        return found

    def admit(self, planned: Planned, callback: Callback | None = None) -> Registered:
        """Register a query, between two epochs."""
        name = planned.name
        self._refuse_taken(name, planned.text)
        if not self._planner.is_current(planned):
            planned = self.planned(
                name, planned.query, planned.text, planned.script, planned.altered
            )
        if self._known(name) is None:  # one that has run goes on
            refuse_larger(self._sizes, planned.bound)
        bound, query = planned.bound, Registered(name, planned.text, callback)
        shared = self._admission.shared(planned, callback)
        if shared is not None:
            self._admission.enroll(planned, shared)
        elif name in self._state.dormant:
            self._modes.watch(name, bound)
        else:
            query.bound = bound
            self._run_by_itself(planned, query)
        return self._queries.add(query, planned.reads)

    def _run_by_itself(self, planned: Planned, query: Registered) -> None:
        name, bound = planned.name, planned.bound
        if name in self._cohorts.by_name:
            self._placement.detach(name)
        for stream in bound.streams:  # rejects become a stream when somebody reads them
            self._catalog.streams.setdefault(stream, self._catalog.stream(stream))
        query.sinks = self._sinks_of(query, bound)
        definition = Definition(planned.text, created=planned.text)
        plan = planned.plan
        if self._known(name) is None:
            plan = initial_plan(self._sizes, bound, plan)
        state = self._registry.add(name, definition, plan, bound.options)
        self._modes.begin(name, bound)
        schema = described_schema(output_schema(bound))
        state.definition = replace(state.definition, schema=schema)

    def _sinks_of(self, query: Registered, bound: BoundQuery) -> list[Sink]:
        found: list[Sink] = []
        if bound.sink is not None:
            found.append(self._sinks.make(query.name, bound.sink, output_schema(bound)))
        if query.callback is not None:
            found.append(FunctionSink(query.callback))
        return found

    def _known(self, name: str) -> tuple[str, str] | None:
        """What a query of this path says, and what it said when it was created."""
        query, member = self._state.known(name), self._cohorts.by_name.get(name)
        if query is not None:
            return query.definition.text, query.definition.created
        return None if member is None else (member.text, member.created)

    def _refuse_taken(self, name: str, text: str) -> None:
        refuse_name(name)
        if name.lower() == SYSSTREAM.lower():
            raise DuplicateName(f"{SYSSTREAM} is the engine's own", remedy="use another name")
        known = self._known(name)
        if known is not None and not any(same_text(said, text) for said in known):
            raise DuplicateName(
                f"a different query {name} exists",
                remedy=f"use another name, or ALTER QUERY {name} AS SELECT ...",
            )
        taken = None if name in self._queries.queries else self._catalog.relation(name)
        if known is None and taken is not None:
            raise DuplicateName(f"{taken.name} is already defined", remedy="use another name")
