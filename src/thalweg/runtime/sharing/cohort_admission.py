"""Which queries are run together with others: those that only filter a stream, in no way of their
own, once there are many of them. Whoever rests or changes leaves, and comes back afterwards."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from thalweg.plan.catalog import StreamDef
from thalweg.plan.physical import QueryPlan
from thalweg.plan.query import SHARE, BoundQuery, QueryOptions
from thalweg.plan.standing import StandingFilter, standing_filter
from thalweg.runtime.results.results_reader import described_schema, output_schema
from thalweg.runtime.state.engine_state import RUNNING, QueryState
from thalweg.store.leases import followed

if TYPE_CHECKING:
    from thalweg.runtime.session.query_handle import Callback, Prepared
    from thalweg.runtime.session.session import Session

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class Folding:
    """The part of a session that folds queries into cohorts and unfolds them."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.coordinator = session.coordinator
        self.members = session.members
        self._filters: Counter[str] = Counter()
        state = self.coordinator.state
        self._away = {name: None for name, query in state.queries.items() if query.was_member}
        self.coordinator.before_commit.append(self.settle)

    def shared(self, prepared: Prepared, callback: Callback | None) -> StandingFilter | None:
        """What a new query filters by, if it is to be run together with others."""
        if callback is not None or self.coordinator.state.known(prepared.name):
            return None
        found = self._shareable(prepared.bound, prepared.plan)
        if found is None:
            return None
        many = prepared.bound.options.share == "on" or self._are_many(found.stream)
        return found if many or prepared.name in self.members.by_name else None

    def _are_many(self, stream: str) -> bool:
        """Whether so many filter the stream that they are worth being run as one."""
        self._filters[stream] += 1
        return self._filters[stream] > self.coordinator.share_from

    def _shareable(self, bound: BoundQuery, plan: QueryPlan) -> StandingFilter | None:
        """What a query filters by, if it does nothing else, in no way of its own."""
        options = bound.options
        own = replace(options, history=None, unbounded=False, share=SHARE) != QueryOptions()
        if bound.sink is not None or own or options.share == "off":
            return None
        found = standing_filter(plan)
        if found is None or not _PLAIN_NAME.fullmatch(found.stream):
            return None
        known = self.session.catalog.relation(found.stream)
        return found if isinstance(known, StreamDef) else None

    def folds(self, name: str) -> bool:
        """Whether it is run together with others, or may be again."""
        return name in self.members.by_name or name in self._away

    def unfold(self, name: str) -> None:
        """Let a member go on as a query of its own, from where it is."""
        members, state = self.members, self.coordinator.state
        if name in members.by_name:
            self._unfold(name)
        if name in state.queries and state.queries[name].was_member:
            self._away[name] = None

    def _unfold(self, name: str) -> None:
        members, state, session = self.members, self.coordinator.state, self.session
        members.settle()
        cohort = session.known_state(name)
        bound = session.bind(members.by_name[name].text)
        plan = session.physical(bound)
        own = cohort.as_far(bound.text)
        own.created = members.by_name[name].created
        own.delivered = state.epoch
        own.schema = described_schema(output_schema(bound))
        own.was_member = members.memberships(members.by_name[name], plan)
        state.queries[name] = own
        state.returned.pop(name, None)
        members.leave(name)
        self.coordinator.replan(name, plan, bound.options)
        if name in session.queries:
            session.queries[name].known = bound

    def settle(self) -> None:
        """Let members that have left come back when they run as before. One that somebody follows
        stays away: followers read its own output."""
        coming = {}
        for name in list(self._away):
            query, known = self.coordinator.state.queries.get(name), self.session.queries.get(name)
            if query is None or known is None or not _runs_bare(query):
                continue
            found = self._shareable(known.bound, known.plan) if known.callback is None else None
            if found is None:
                del self._away[name]  # until it changes again
            else:
                coming[name] = found
        if coming:
            followed_by = followed(self.session.storage)
            self.members.take_back((n, f) for n, f in coming.items() if n not in followed_by)
        for name in coming.keys() & self.members.by_name.keys():
            del self._away[name]
            self.session.queries[name].known = None  # bound again when it is asked


def _runs_bare(query: QueryState) -> bool:
    """Whether it runs with nothing to hold: no past, no state, no rejects."""
    is_new = query.replaces or query.behind or query.frontier < query.silent_until
    return query.status == RUNNING and not is_new and not query.holds_files
