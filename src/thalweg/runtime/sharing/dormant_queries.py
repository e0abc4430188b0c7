"""Queries that work only when they are invoked sleep meanwhile: an epoch does nothing for them.

How far such a query has come follows from its streams, and what is kept for it from its windows. So
of all that have the same windows over the same streams one stays awake, their *leader*, and goes
with the epochs; the others are looked at when somebody asks for them. A query that is to be changed
or paused is woken first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state.engine_state import ASLEEP, RUNNING, QueryState
from thalweg.store.manifest import State

if TYPE_CHECKING:
    from thalweg.runtime.session.session import Session


class Sleeping:
    """Who sleeps, by kin: those that have the same windows over the same streams."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.coordinator = session.coordinator
        self.state = session.coordinator.state
        self._kin: dict[str, dict[str, None]] = {}
        for name, query in self.state.asleep.items():
            self._kin.setdefault(query.kin, {})[name] = None
        self._tired = {n: None for n, q in self.state.queries.items() if q.mode in ASLEEP}
        self.coordinator.before_commit.append(self.settle)

    def settle(self) -> None:
        """Let those fall asleep whose leader has come as far."""
        for name in list(self._tired):
            query = self.state.queries.get(name)
            if query is None or query.mode not in ASLEEP or query.status != RUNNING:
                del self._tired[name]
            elif name in self.coordinator.plans and not query.behind:
                self._settle(name, query, kin_of(self.coordinator.plans[name]))

    def _settle(self, name: str, query: QueryState, kin: str) -> None:
        leader = self.state.leaders.setdefault(kin, name)
        if leader == name:
            del self._tired[name]
        elif self.state.queries[leader].frontier == query.frontier and not query.holds_files:
            del self._tired[name]
            self._fall_asleep(name, kin)

    def _fall_asleep(self, name: str, kin: str) -> None:
        query = self.state.queries[name]
        query.kin, query.reads = kin, sorted(self.session.reads.get(name, ()))
        query.schema, query.delivered = "", 0  # nothing is put out
        self.state.asleep[name] = query  # before it goes: others may be looking for it
        del self.state.queries[name]
        self.state.stirred.add(name)
        self._kin.setdefault(kin, {})[name] = None
        self.coordinator.forget_plan(name)
        if not query.altered and name in self.session.queries:
            self.session.queries[name].known = None  # bound again when it is asked

    def wake(self, name: str) -> None:
        """Let a query go with the epochs, until it may sleep again."""
        if name in self.state.asleep:
            self._rise(name)
        else:
            self._hand_over(name)
        query = self.state.queries.get(name)
        if query is not None and query.mode in ASLEEP:
            self._tired[name] = None

    def _rise(self, name: str) -> None:
        query = self.state.asleep_as_awake(name)
        self.state.queries[name] = query
        self._remove(name)
        query.kin, query.reads = "", []
        bound = self.session.bind(query.text)
        options = replace(bound.options, **query.altered)
        self.coordinator.replan(name, self.session.physical(bound), options)
        if name in self.session.queries:
            self.session.queries[name].known = replace(bound, options=options)

    def _hand_over(self, name: str) -> None:
        """Another of its kin leads, if there is one."""
        for kin in [k for k, leader in self.state.leaders.items() if leader == name]:
            heir = next(iter(self._kin.get(kin, ())), None)
            if heir is None:
                del self.state.leaders[kin]
            else:
                self._rise(heir)
                self.state.leaders[kin] = heir

    def tire(self, name: str) -> None:
        """It may fall asleep when it has come as far as its leader."""
        self._tired[name] = None

    def drop(self, name: str) -> bool:
        """Forget a query; whether it slept. One that is awake leads nobody any more."""
        if name not in self.state.asleep:
            self._hand_over(name)
            return False
        self._remove(name)
        return True

    def _remove(self, name: str) -> None:
        kin = self.state.asleep.pop(name).kin
        self.state.stirred.add(name)
        del self._kin[kin][name]

    def plan_like(self, name: str) -> QueryPlan | None:
        """A plan with the windows of a query that sleeps: its leader's."""
        query = self.state.asleep.get(name)
        return None if query is None else self.coordinator.plans.get(self.state.leaders[query.kin])


def kin_of(plan: QueryPlan) -> str:
    """Equal for plans whose queries come equally far, and for which the same rows are kept."""
    leaves = [(type(r).__name__, leaf.relation, leaf.window) for r, leaf in plan.stored_leaves]
    said = f"{leaves} {plan.windows}"
    return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()


def committed_query(committed: State, name: str) -> Mapping[str, Any] | None:
    """A query as it is committed, asleep or not."""
    found: Mapping[str, Any] | None = committed.get("queries", {}).get(name)
    own = committed.get("asleep", {}).get(name)
    if own is None:
        return found
    leader = committed["queries"][committed["leaders"][own["kin"]]]
    return {**own, "frontier": leader["frontier"], "behind": False}
