"""The queries of this process, for readers."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.physical import QueryPlan
from thalweg.plan.sharing.shared_filter import standing_filter
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog
from thalweg.runtime.results.lookup import Membership
from thalweg.runtime.sharing.filter_cohorts import FilterCohorts, memberships
from thalweg.runtime.sharing.placement import Placement
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import QUERY, QueryState


class LiveQueries:
    """A `QueryLookup` over what is registered."""

    def __init__(
        self,
        state: EngineState,
        plans: PlanTable,
        queries: QueryCatalog,
        cohorts: FilterCohorts,
        placement: Placement,
    ) -> None:
        self._state = state
        self._plans = plans
        self._queries = queries
        self._cohorts = cohorts
        self._placement = placement

    def listed(self) -> list[tuple[str, str, QueryState, bool]]:
        known, state = self._queries.queries, self._state
        own = [(n, q.definition.text, q) for n, q in state.of_kind(QUERY)]
        own += [(n, q.definition.text, q) for n, q in list(state.dormant.items())]
        for member in list(self._cohorts.by_name.values()):
            own.append((member.name, member.text, self._placement.state_of(member.name)))
        return [(name, text, query, name in known) for name, text, query in own]

    def find(self, name: str) -> str:
        return self._queries.find(name).name

    def text(self, name: str) -> str:
        return self._queries.queries[name].text

    def bound(self, name: str) -> BoundQuery:
        return self._queries.bound(name)

    def plan(self, name: str) -> QueryPlan:
        return self._queries.plan(name)

    def windows(self, name: str) -> QueryPlan:
        query = self._state.dormant.get(name)
        if query is not None:
            leader = self._state.leaders[query.sharing.dormant_group]
            if leader in self._plans:
                return self._plans[leader]
        return self._queries.plan(name)

    def state(self, name: str) -> QueryState:
        if name not in self._queries.queries:
            name = self.find(name)
        return self._placement.state_of(name)

    def memberships(self, name: str) -> Sequence[Membership]:
        queries = self._state.queries
        query, member = queries.get(name), self._cohorts.by_name.get(name)
        if member is not None:
            filtered = standing_filter(self.plan(name))
            assert filtered is not None
            return memberships(self._state, member, filtered.columns)
        return (query or queries[name]).sharing.was_member  # it may have left just now

    def cohort(self, name: str) -> str | None:
        member = self._cohorts.by_name.get(name)
        return None if member is None else member.cohort

    def guarantees(self, name: str) -> Sequence[str]:
        return [sink.guarantee for sink in self._queries.queries[name].sinks]
