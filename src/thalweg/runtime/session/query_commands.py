"""What handles of queries ask of their engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from thalweg.adapt.planlog import Switch
from thalweg.lang.parsing.parser import parse_query
from thalweg.models.picture import Picture, picture_of
from thalweg.models.segments import segments_of
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.coverage import Coverage
from thalweg.runtime.lifecycle.query_catalog import Registered
from thalweg.runtime.planner import output_schema
from thalweg.runtime.results.results_reader import output_table
from thalweg.runtime.results.stream_history import history
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.query_handle import Query
from thalweg.runtime.session.services import EngineServices
from thalweg.runtime.state.query_state import RUNNING
from thalweg.statements.manage import manage
from thalweg.store.packs import PackMeta


class QueryCommands:
    """The `Commands` of handles; `follow` makes a stream of a query's results. An engine that takes
    the place of another (in tests) takes over its handles by `attach`."""

    def __init__(self, follow: Callable[[str], Any]) -> None:
        self.follow = follow

    def attach(self, core: EngineCore, services: EngineServices) -> None:
        self._core = core
        self._services = services

    def handle(self, query: Registered) -> Query:
        """What the owner of a query holds."""
        return Query(query, self)

    def is_registered(self, query: Registered) -> bool:
        return self._core.queries.queries.get(query.name) is query

    def bound(self, query: Registered) -> BoundQuery:
        return self._core.queries.bound_of(query)

    def plan(self, query: Registered) -> QueryPlan:
        if self.is_registered(query):
            return self._core.queries.plan(query.name)
        return self._core.planner.physical(self.bound(query))

    def schema(self, query: Registered) -> pa.Schema:
        return output_schema(self.bound(query))

    def status(self, name: str) -> str:
        return self._core.lookup.state(name).lifecycle.status

    def results(self, name: str, after: int) -> pa.Table:
        self._core.invocations.refuse_without_output(name)
        return self._core.results.results(name, after)

    def output(self, query: Registered, packs: Sequence[PackMeta]) -> pa.Table:
        return output_table(self._core.storage, self.schema(query), packs)

    def rejects_of_query(self, name: str) -> pa.Table:
        return self._core.results.rejects_of_query(name)

    def invoke(self, name: str, at: int | None) -> pa.Table:
        return self._core.invocations.invoke(name, at)

    def models(self, name: str) -> pa.Table:
        core = self._core
        return segments_of(core.queries.plan(name), partial(core.results.in_slot, name))

    def plot(self, name: str, column: str | None) -> Picture:
        core = self._core
        plan = core.queries.plan(name)
        kept = partial(history, core.storage, core.state)
        return picture_of(name, plan, self.models(name), kept, column)

    def stats(self, name: str) -> dict[str, Any]:
        return self._core.stats.of(name)

    def plan_log(self, name: str) -> list[Switch]:
        return list(self._core.adaptation.log(name))

    def coverage(self, name: str) -> Coverage:
        return self._core.coverage.of(name)

    def manage(self, verb: str, name: str) -> None:
        if verb == "RESUME" and self.status(name) == RUNNING:
            return  # nothing is to be waited for
        self._core.changes.committed(partial(manage, self._services, verb, "QUERY", name))

    def alter(self, name: str, sql: str) -> None:
        replace = partial(self._core.alteration.replace, name, parse_query(sql), sql, sql)
        self._core.changes.committed(replace)

    def explain_query(self, query: Registered, adapt: bool) -> str:
        explainer = self._core.explainer
        if not self.is_registered(query):
            return explainer.text(query.text)
        return explainer.adaptation(query.name) if adapt else explainer.query(query.name)
