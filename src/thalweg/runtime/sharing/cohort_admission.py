"""Admission to cohorts: queries that only filter a stream, without a sink or options of their own,
are run together once there are many of them. One that is paused or altered is detached, and
readmitted afterwards."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from thalweg.plan.bound_query import SHARE, BoundQuery, QueryOptions
from thalweg.plan.catalog import StreamDef
from thalweg.plan.physical import QueryPlan
from thalweg.plan.sharing.shared_filter import StandingFilter, standing_filter
from thalweg.runtime.lifecycle.query_catalog import Callback, QueryCatalog
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.planner import Planned, Planner, output_schema
from thalweg.runtime.results.described_schema import described_schema
from thalweg.runtime.settings import Settings
from thalweg.runtime.sharing.filter_cohorts import FilterCohorts, memberships
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import Definition, QueryState, Sharing
from thalweg.store.leases import followed
from thalweg.store.storage import Storage

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class CohortAdmission:
    """Makes queries members of cohorts, and lets them run by themselves again."""

    def __init__(
        self,
        storage: Storage,
        state: EngineState,
        settings: Settings,
        planner: Planner,
        queries: QueryCatalog,
        registry: QueryRegistry,
        cohorts: FilterCohorts,
    ) -> None:
        self._storage = storage
        self._state = state
        self._settings = settings
        self._planner = planner
        self._queries = queries
        self._registry = registry
        self._cohorts = cohorts
        self._filters: Counter[str] = Counter()
        self._away = {
            name: None
            for name, q in state.queries.items()
            if q.sharing.was_member or q.definition.altered.get("share") == "on"
        }

    def shared(self, planned: Planned, callback: Callback | None) -> StandingFilter | None:
        """The filter of a new query, if it is to be run together with others."""
        if callback is not None or self._state.known(planned.name):
            return None
        found = self._shareable(planned.bound, planned.plan)
        if found is None:
            return None
        many = planned.bound.options.share == "on" or self._are_many(found.stream)
        return found if many or planned.name in self._cohorts.by_name else None

    def _are_many(self, stream: str) -> bool:
        """Whether enough queries filter the stream for them to be run as one."""
        self._filters[stream] += 1
        return self._filters[stream] > self._settings.share_from

    def _shareable(self, bound: BoundQuery, plan: QueryPlan) -> StandingFilter | None:
        """The filter of a query, if it does nothing else and has no sink or options of its own."""
        options = bound.options
        own = replace(options, history=None, unbounded=False, share=SHARE) != QueryOptions()
        if bound.sink is not None or own or options.share == "off":
            return None
        found = standing_filter(plan)
        if found is None or not _PLAIN_NAME.fullmatch(found.stream):
            return None
        known = self._planner.catalog.relation(found.stream)
        return found if isinstance(known, StreamDef) else None

    def enroll(self, planned: Planned, shared: StandingFilter) -> None:
        """Add a query to a cohort."""
        member = self._cohorts.by_name.get(planned.name)
        if member is None:
            history = planned.bound.options.history
            self._cohorts.admit(planned.name, planned.text, shared, history)
        elif member.cohort not in self._queries.plans:
            self._cohorts.resume()

    def is_shared(self, name: str) -> bool:
        """Whether it is run together with others, or may be again."""
        return name in self._cohorts.by_name or name in self._away

    def detach(self, name: str) -> None:
        """Make a member a query of its own, from its present frontier."""
        if name in self._cohorts.by_name:
            self._detach(name)
        query = self._state.queries.get(name)
        if query is not None and query.sharing.was_member:
            self._away[name] = None

    def offer(self, name: str) -> None:
        """Let a query become a member that has none been yet, if it says share = 'on'."""
        query = self._state.queries.get(name)
        if query is not None and query.definition.altered.get("share") == "on":
            self._away[name] = None

    def _detach(self, name: str) -> None:
        self._cohorts.settle()
        member = self._cohorts.by_name[name]
        bound = self._planner.bind(member.text)
        plan = self._planner.physical(bound)
        filtered = standing_filter(plan)
        assert filtered is not None
        schema = described_schema(output_schema(bound))
        own = self._state.queries[member.cohort].as_far(
            Definition(bound.text, member.created, schema=schema)
        )
        own.progress.delivered = self._state.epoch
        own.sharing = Sharing(was_member=memberships(self._state, member, filtered.columns))
        self._state.queries[name] = own
        self._state.returned.pop(name, None)
        self._cohorts.leave(name)
        self._registry.replan(name, plan, bound.options)
        self._queries.remember(name, bound)

    def settle(self) -> None:
        """Admit former members when they run as before, and what was offered, but not a query with
        followers: these read its own output."""
        coming = {}
        for name in list(self._away):
            query, known = self._state.queries.get(name), self._queries.queries.get(name)
            if query is None or known is None or not _runs_bare(query):
                continue
            found = None
            if known.callback is None:
                found = self._shareable(self._queries.bound(name), self._queries.plan(name))
            if found is None:
                del self._away[name]  # until it changes again
            else:
                coming[name] = found
        if coming:
            followers = followed(self._storage)
            self._cohorts.take_back((n, f) for n, f in coming.items() if n not in followers)
        for name in coming.keys() & self._cohorts.by_name.keys():
            del self._away[name]
            self._queries.remember(name, None)


def _runs_bare(query: QueryState) -> bool:
    """Whether it runs without a past, state or rejects of its own."""
    is_new = query.output.replaces or query.progress.behind or query.is_silent
    return query.runs and not is_new and not query.holds_files
