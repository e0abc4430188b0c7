"""Dormant queries: those that give an answer only when invoked, between invocations.

Those with the same windows over the same streams are a group: they have the same frontier, and the
same rows are kept for them. One of them, the leader, advances with the epochs for all.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.planner import Planner
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import QueryState


class DormantQueries:
    """The dormant queries, by group."""

    def __init__(
        self,
        state: EngineState,
        plans: PlanTable,
        planner: Planner,
        queries: QueryCatalog,
        registry: QueryRegistry,
    ) -> None:
        self._state = state
        self._plans = plans
        self._planner = planner
        self._queries = queries
        self._registry = registry
        self._groups: dict[str, dict[str, None]] = {}
        for name, query in state.dormant.items():
            self._groups.setdefault(query.sharing.dormant_group, {})[name] = None
        self._candidates = {n: None for n, q in state.queries.items() if q.works_on_demand}

    def settle(self) -> None:
        """Make queries dormant that have the frontier of their leader."""
        for name in list(self._candidates):
            query = self._state.queries.get(name)
            if query is None or not query.works_on_demand or not query.runs:
                del self._candidates[name]
            elif name in self._plans and not query.progress.behind:
                self._settle(name, query, group_of(self._plans[name]))

    def _settle(self, name: str, query: QueryState, group: str) -> None:
        leader = self._state.leaders.setdefault(group, name)
        if leader == name:
            del self._candidates[name]
            return
        level = self._state.queries[leader].progress.frontier == query.progress.frontier
        if level and not query.holds_files:
            del self._candidates[name]
            self._put_to_rest(name, group)

    def _put_to_rest(self, name: str, group: str) -> None:
        query, reads = self._state.queries[name], self._queries.reads.get(name, ())
        query.sharing = replace(query.sharing, dormant_group=group)
        # there is no output
        query.definition = replace(query.definition, reads=tuple(sorted(reads)), schema="")
        query.progress.delivered = 0
        self._state.dormant[name] = query  # before it is dormant: others may be looking for it
        del self._state.queries[name]
        self._state.dormant_changed.add(name)
        self._groups.setdefault(group, {})[name] = None
        self._plans.forget(name)
        if not query.definition.altered:
            self._queries.remember(name, None)

    def detach(self, name: str) -> None:
        """Make a query advance with the epochs, until it may be dormant again."""
        if name in self._state.dormant:
            self._wake(name)
        else:
            self._hand_over(name)
        query = self._state.queries.get(name)
        if query is not None and query.works_on_demand:
            self._candidates[name] = None

    def _wake(self, name: str) -> None:
        query = self._state.dormant_as_awake(name)
        self._state.queries[name] = query
        self._remove(name)
        query.sharing = replace(query.sharing, dormant_group="")
        query.definition = replace(query.definition, reads=())
        bound = self._planner.bind(query.definition.text)
        options = replace(bound.options, **query.definition.altered)
        self._registry.replan(name, self._planner.physical(bound), options)
        self._queries.remember(name, replace(bound, options=options))

    def _hand_over(self, name: str) -> None:
        """Make another query of its group the leader, if there is one."""
        for group in [g for g, leader in self._state.leaders.items() if leader == name]:
            heir = next(iter(self._groups.get(group, ())), None)
            if heir is None:
                del self._state.leaders[group]
            else:
                self._wake(heir)
                self._state.leaders[group] = heir

    def may_rest(self, name: str) -> None:
        """Let it become dormant when it has the frontier of its leader."""
        self._candidates[name] = None

    def drop(self, name: str) -> bool:
        """Forget a query; returns whether it was dormant. One that is not leads no group any
        more."""
        if name not in self._state.dormant:
            self._hand_over(name)
            return False
        self._remove(name)
        return True

    def _remove(self, name: str) -> None:
        group = self._state.dormant.pop(name).sharing.dormant_group
        self._state.dormant_changed.add(name)
        del self._groups[group][name]


def group_of(plan: QueryPlan) -> str:
    """A key that is equal for plans whose queries have the same frontier and need the same rows."""
    leaves = [(type(r).__name__, leaf.relation, leaf.window) for r, leaf in plan.stored_leaves]
    said = f"{leaves} {plan.windows}"
    return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
