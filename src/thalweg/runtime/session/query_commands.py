"""What handles of queries ask of their engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from thalweg.adapt.planlog import Switch
from thalweg.errors import ConfigError
from thalweg.lang.parser import parse_query
from thalweg.plan.physical import QueryPlan
from thalweg.plan.query import BoundQuery
from thalweg.runtime.lifecycle.coverage import Coverage
from thalweg.runtime.lifecycle.query_catalog import Registered
from thalweg.runtime.planner import output_schema
from thalweg.runtime.results.results_reader import output_table
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.query_handle import Query
from thalweg.runtime.session.services import EngineServices
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

    def bound(self, name: str) -> BoundQuery:
        return self._core.queries.bound(name)

    def plan(self, name: str) -> QueryPlan:
        return self._core.queries.plan(name)

    def schema(self, name: str) -> pa.Schema:
        return output_schema(self.bound(name))

    def status(self, name: str) -> str:
        return self._core.lookup.state(name).lifecycle.status

    def results(self, name: str) -> pa.Table:
        self._core.invocations.refuse_failed(name)
        is_member = self._core.lookup.cohort(name) is not None
        if not is_member and self._core.lookup.state(name).definition.mode:
            raise ConfigError(
                f"query {name} answers when it is invoked",
                remedy="use invoke(); without materialize a query emits changes",
            )
        return self._core.results.results(name)

    def output(self, name: str, packs: Sequence[PackMeta]) -> pa.Table:
        return output_table(self._core.storage, self.schema(name), packs)

    def rejects_of_query(self, name: str) -> pa.Table:
        return self._core.results.rejects_of_query(name)

    def invoke(self, name: str, at: int | None) -> pa.Table:
        return self._core.invocations.invoke(name, at)

    def stats(self, name: str) -> dict[str, Any]:
        return self._core.stats.of(name)

    def plan_log(self, name: str) -> list[Switch]:
        return list(self._core.adaptation.log(name))

    def coverage(self, name: str) -> Coverage:
        return self._core.coverage.of(name)

    def manage(self, verb: str, name: str) -> None:
        self._core.changes.committed(partial(manage, self._services, verb, "QUERY", name))

    def alter(self, name: str, sql: str) -> None:
        replace = partial(self._core.alteration.replace, name, parse_query(sql), sql, sql)
        self._core.changes.committed(replace)

    def explain_query(self, name: str, adapt: bool) -> str:
        explainer = self._core.explainer
        return explainer.adaptation(name) if adapt else explainer.query(name)
