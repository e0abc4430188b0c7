"""Modes of queries that give an answer when they are invoked: how much work is done in advance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from thalweg.errors import ConfigError
from thalweg.instants import AFTER_TIME
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import Catalog
from thalweg.plan.instant_plan import has_snapshots
from thalweg.plan.logical import EmitKind
from thalweg.runtime.invoke.conditions import Conditions, condition_key
from thalweg.runtime.invoke.instant_answers import InstantAnswers
from thalweg.runtime.lifecycle.history_start import REPLAY, SEED, begin, beginning
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.results.committed_state import CommittedState
from thalweg.runtime.sharing.filter_cohorts import FilterCohorts
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import AUTO, NONE, ON_DEMAND, PAUSED, C, P, QueryState
from thalweg.store.storage import Storage

DECIDE_EVERY = 16
"""Epochs between two checks of how often a query under `auto` is invoked."""
OFTEN = 1.0
"""Invocations per epoch from which on the answer is kept up to date; without any, nothing is."""


class MaterializeModes:
    """Modes of queries. `detach` makes one run by its own plan, `may_rest` lets it be dormant."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        state: EngineState,
        plans: PlanTable,
        registry: QueryRegistry,
        queries: QueryCatalog,
        conditions: Conditions,
        cohorts: FilterCohorts,
        answers: InstantAnswers,
        committed: Callable[[], CommittedState],
        detach: Callable[[str], None],
        may_rest: Callable[[str], None],
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._state = state
        self._plans = plans
        self._registry = registry
        self._queries = queries
        self._conditions = conditions
        self._cohorts = cohorts
        self._answers = answers
        self._committed = committed
        self._detach = detach
        self._may_rest = may_rest
        self._users: dict[str, set[str]] = {}
        for name, query in state.dormant.items():
            if query.definition.mode == P:
                self._users.setdefault(query.sharing.condition, set()).add(name)
        self._invoked: Counter[str] = Counter()
        self._looked_at: dict[str, int] = {}
        """Queries under `auto` by the epoch of their last check, the longest ago first."""

    # -- the mode of a query -----------------------------------------------------------------

    def refuse(self, name: str, bound: BoundQuery) -> None:
        """Refuse impossible requests, before anything is changed."""
        wanted = bound.options.materialize
        if wanted is None:
            return
        if bound.root.kind is not EmitKind.RELATION:
            kind = bound.root.kind.value
            raise ConfigError(
                f"query {name} emits {kind}: there is nothing to invoke",
                remedy=f"leave out materialize, or {kind}",
            )
        if bound.sink is not None:
            raise ConfigError(
                f"query {name} answers when it is invoked and puts nothing out",
                remedy="leave out materialize, or INTO",
            )
        if wanted in ON_DEMAND and wanted not in self.modes(bound):
            raise ConfigError(
                f"the answer of {name} does not follow from which rows its windows hold, or its "
                "WHERE from single rows",
                remedy="say materialize = 'c', or 'auto'",
            )

    def mode_after(self, name: str, bound: BoundQuery, query: QueryState) -> str:
        """The mode of a query after a change of its text, or a refusal; empty if it emits."""
        mode, wanted = query.definition.mode, bound.options.materialize
        if not mode:
            if wanted is not None:
                raise ConfigError(
                    f"query {name} emits its changes",
                    remedy="drop it and create it WITH (materialize = ...)",
                )
            return mode
        chosen = mode if wanted in (None, AUTO) else wanted
        if wanted == AUTO and mode not in self.modes(bound):
            chosen = self._usual(bound)
        self.refuse(name, replace(bound, options=replace(bound.options, materialize=chosen)))
        if chosen == C and query.lifecycle.status == PAUSED:
            raise ConfigError(
                f"the answer of {name} cannot be made while it is paused",
                remedy=f"RESUME QUERY {name} first",
            )
        return chosen

    def modes(self, bound: BoundQuery) -> tuple[str, ...]:
        """The possible modes of a query, the least work in advance first."""
        if not has_snapshots(bound) or self._has_changing_tables(bound):
            return (C,)
        return (NONE, C) if self._conditions.of(bound) is None else (NONE, P, C)

    def _usual(self, bound: BoundQuery) -> str:
        """The initial mode under `auto`."""
        return P if P in self.modes(bound) else C

    def _has_changing_tables(self, bound: BoundQuery) -> bool:
        tables = self._catalog.tables
        return any(s.is_table and tables[s.relation].changes for s in bound.scans)

    # -- changing modes ----------------------------------------------------------------------

    def begin(self, name: str, bound: BoundQuery) -> None:
        """Set up the mode of a query that has just been added."""
        query, wanted = self._state.queries[name], bound.options.materialize
        if query.definition.mode == P:
            self._use(name, query, bound)
        elif not query.definition.mode and wanted is not None:
            self.switch(name, self._usual(bound) if wanted == AUTO else wanted, bound)
        self.watch(name, bound)

    def watch(self, name: str, bound: BoundQuery) -> None:
        """Record the requested mode; under `auto`, count invocations."""
        self._looked_at.pop(name, None)
        wanted = bound.options.materialize
        if wanted == AUTO:
            self._looked_at[name] = self._state.epoch
        query = self._state.queries.get(name)
        if query is not None and query.definition.materialize != (wanted or ""):
            query.definition = replace(query.definition, materialize=wanted or "")

    def switch(self, name: str, mode: str, bound: BoundQuery) -> None:
        """Switch to another mode from here on; the answers stay the same."""
        query, plan = self._state.queries[name], self._plans[name]
        self.leave(name)
        self._registry.drop_state(query)
        streams = [self._state.streams[s] for s in plan.streams]
        now = query.progress.frontier
        if query.lifecycle.status != PAUSED:  # streams it has not read before may be behind
            now = min((s.watermark for s in streams), default=now)
        given = beginning(plan, SEED if mode == C else REPLAY, self._state, now)
        begin(query, given, self._state, self._storage)
        query.definition = replace(query.definition, mode=mode)
        if mode == C:
            query.history = replace(query.history, silent_until=AFTER_TIME)
            packs = [p for s in streams for p in s.packs]
            frontier = query.progress.frontier
            kept = any(p.max_ts >= frontier and p.min_ts < now for p in packs)
            if not kept and any(s.rows for s in streams):
                query.progress.start = frontier  # the windows no longer hold what was there
        else:
            query.progress.frontier, query.progress.behind = now, False
        if mode == P:
            self._use(name, query, bound)
        if mode in ON_DEMAND:
            self._may_rest(name)

    def _use(self, name: str, query: QueryState, bound: BoundQuery) -> None:
        found = self._conditions.of(bound)
        assert found is not None
        key = condition_key(found)
        if query.sharing.condition != key:
            query.sharing = replace(query.sharing, condition=key)
        if key not in self._cohorts.by_name:
            self._cohorts.admit(key, query.definition.text, found, REPLAY)
        self._users.setdefault(key, set()).add(name)

    def leave(self, name: str) -> None:
        """Forget a query, and its condition if no other query uses that."""
        query = self._state.known(name)
        assert query is not None
        self._looked_at.pop(name, None)
        self._answers.forget(name)
        condition = query.sharing.condition
        users = self._users.get(condition, set())
        if name in users:
            users.remove(name)
            if not users:
                del self._users[condition]
                self._cohorts.leave(condition)
                self._answers.forget_condition(condition)

    # -- auto --------------------------------------------------------------------------------

    def invoked(self, name: str) -> None:
        """Count an invocation."""
        if name in self._looked_at:
            self._invoked[name] += 1

    def settle(self) -> None:
        """Under `auto`, check at intervals how often queries are invoked."""
        epoch = self._state.epoch
        while self._looked_at:
            name, since = next(iter(self._looked_at.items()))
            if epoch - since < DECIDE_EVERY:
                return
            rate = self._invoked.pop(name, 0) / (epoch - since)
            self._decide(name, NONE if not rate else (C if rate >= OFTEN else P))
            self._looked_at.pop(name, None)
            self._looked_at[name] = epoch

    def _decide(self, name: str, wanted: str) -> None:
        query = self._state.known(name)
        known = name in self._queries.queries
        if query is None or not known or wanted == query.definition.mode:
            return
        bound = self._queries.bound(name)
        if wanted in self.modes(bound):
            self._detach(name)
            self.switch(name, wanted, bound)

    # -- progress ----------------------------------------------------------------------------

    def is_uncommitted(self, name: str) -> bool:
        """Whether it was created or changed after the last commit."""
        query = self._state.known(name)
        known = self._committed().query(name)
        mode = None if known is None else known.mode
        return query is not None and query.definition.mode != "" and mode != query.definition.mode

    def is_behind(self, name: str) -> bool:
        """Whether it, or its condition, still has to process the past. Answers are made from
        committed state, so that counts."""
        committed = self._committed()
        known = committed.query(name)
        if known is None or known.mode != P:
            return known is None or known.behind
        query = self._state.known(name)
        assert query is not None
        cohort = committed.query(self._cohorts.by_name[query.sharing.condition].cohort)
        return cohort is None or cohort.behind or cohort.frontier < known.frontier
