"""The queries of a committed state, for readers."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.errors import UnknownName, did_you_mean
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import ViewDef
from thalweg.plan.physical import QueryPlan
from thalweg.plan.sharing.shared_filter import standing_filter
from thalweg.runtime.planner import Planner, output_schema
from thalweg.runtime.results.lookup import Membership
from thalweg.runtime.sharing.filter_cohorts import Member, load_members, memberships
from thalweg.runtime.sinks.factory import PlannedSinks
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import FILTERS, QUERY, Definition, QueryState
from thalweg.store.storage import Storage


class CommittedQueries:
    """A `QueryLookup` over a committed state. Queries are bound when they are asked for."""

    def __init__(self, storage: Storage, state: EngineState, planner: Planner) -> None:
        self._storage = storage
        self._state = state
        self._planner = planner
        self._members: dict[str, Member] = load_members(storage, state, FILTERS)
        own = {n: q.definition.text for n, q in state.of_kind(QUERY)}
        own |= {n: q.definition.text for n, q in state.dormant.items()}
        self._texts = own | {n: m.text for n, m in self._members.items()}
        self._bound: dict[str, BoundQuery] = {}

    def listed(self) -> list[tuple[str, str, QueryState, bool]]:
        return [(name, text, self.state(name), True) for name, text in self._texts.items()]

    def find(self, name: str) -> str:
        if name in self._texts:
            return name
        alike = (n for n in self._texts if n.lower() == name.lower())
        found = next(alike, None)
        if found is None:
            raise UnknownName(f"unknown query {name}", remedy=did_you_mean(name, self._texts))
        return found

    def text(self, name: str) -> str:
        return self._texts[name]

    def bound(self, name: str) -> BoundQuery:
        if name not in self._bound:
            views = self._planner.catalog.views
            for other, text in self._texts.items():  # it may read any of them
                views.setdefault(other, ViewDef(other, text))
            planned = self._planner.planned_again(
                name, self._texts[name], self.state(name).definition.altered
            )
            self._bound[name] = planned.bound
        return self._bound[name]

    def plan(self, name: str) -> QueryPlan:
        return self._planner.physical(self.bound(name))

    def windows(self, name: str) -> QueryPlan:
        return self.plan(name)

    def state(self, name: str) -> QueryState:
        member = self._members.get(name)
        found = self._state.known(name if member is None else member.cohort)
        return QueryState(Definition(self._texts[name])) if found is None else found

    def memberships(self, name: str) -> Sequence[Membership]:
        member = self._members.get(name)
        if member is None:
            return self.state(name).sharing.was_member
        filtered = standing_filter(self.plan(name))
        assert filtered is not None
        return memberships(self._state, member, filtered.columns)

    def cohort(self, name: str) -> str | None:
        member = self._members.get(name)
        return None if member is None else member.cohort

    def guarantees(self, name: str) -> Sequence[str]:
        bound = self.bound(name)
        if bound.sink is None:
            return []
        sinks = PlannedSinks(self._storage, self._state)
        return [sinks.make(name, bound.sink, output_schema(bound)).guarantee]
