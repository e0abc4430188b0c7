"""Queries that come, are replaced, rest and go: the coordinator's state of them, between epochs."""

from __future__ import annotations

from collections import Counter

from thalweg.adapt.loop import Adaptation
from thalweg.exec.frame import BEFORE_TIME
from thalweg.exec.shared import Common, common_predicates
from thalweg.plan.catalog import Catalog
from thalweg.plan.physical import QueryPlan
from thalweg.plan.query import QueryOptions
from thalweg.runtime.epoch.catch_up import PUSH, Pace, chosen_backfill
from thalweg.runtime.lifecycle.history_start import SEED, begin, beginning, usual_history
from thalweg.runtime.state.engine_state import PAUSED, RUNNING, EngineState, QueryState, StreamState
from thalweg.runtime.state.output_keys import keys_of
from thalweg.runtime.upkeep.output_compaction import Gathering
from thalweg.store.packs import Key
from thalweg.store.storage import Storage


class Registering:
    """The part of `Coordinator` that knows which queries there are, and by which plans."""

    storage: Storage
    catalog: Catalog
    state: EngineState
    plans: dict[str, QueryPlan]
    limits: dict[str, int]
    adaptation: Adaptation
    pace: Pace
    gathering: Gathering
    apart: set[str]
    _dropped: list[str]
    _common: Common | None

    def add_query(self, name: str, text: str, plan: QueryPlan, options: QueryOptions) -> None:
        """A new query sees log entries from now on; a known one goes on where it was."""
        for leaf in plan.leaves:
            if not leaf.is_table:
                self.state.streams.setdefault(leaf.relation, StreamState())
        if name not in self.state.queries:
            history = options.history or usual_history(plan, self.catalog)
            given = beginning(plan, history, self.state)
            query = self.state.queries[name] = QueryState(
                text, created=text, delivered=self.state.epoch
            )
            begin(query, given, self.state, self.storage)
            streams = [self.state.streams[s] for s in plan.streams]
            query.begun = any(
                s.kept_since > BEFORE_TIME or any(p.min_ts < given.silent_until for p in s.packs)
                for s in streams
            )
            if query.behind:
                query.backfill = chosen_backfill(
                    options.backfill, plan, query, self.state, self.storage, self.pace.rows
                )
        self.replan(name, plan, options)

    def replace_query(self, name: str, text: str, plan: QueryPlan, options: QueryOptions) -> None:
        """Let another version of a query take over at its frontier, its windows filled from what is
        kept. Of a relation the difference between the two answers is put out then. (One that is
        invoked has a mode, in which it begins afresh.)"""
        query = self.state.queries[name]
        is_silent = query.frontier < query.silent_until
        cut = query.silent_until if is_silent else query.frontier
        self.drop_state(query)
        query.text, query.orders = text, []
        for stream in plan.streams:
            self.state.streams.setdefault(stream, StreamState())
        if cut > BEFORE_TIME and not query.mode:
            query.begun = query.begun if query.start is None else query.start < cut
            begin(query, beginning(plan, SEED, self.state, cut), self.state, self.storage)
            query.backfill = PUSH
            query.replaces = query.replaces or not is_silent
        self.replan(name, plan, options)

    def drop_state(self, query: QueryState) -> None:
        self._dropped += [f for slot in query.slots.values() for p in slot for f in p.files]
        self._dropped += [p[0] for p in query.filling]
        query.slots, query.filling, query.stubs = {}, [], {}
        kept = ("emitted", "rejected")
        query.counts = {k: n for k, n in query.counts.items() if k in kept}

    def remove_query(self, name: str) -> None:
        """Forget a query and everything that was kept for it alone."""
        query = self.state.queries.pop(name)
        self.drop_state(query)
        self._dropped += [p[0] for p in (*query.rejects, *query.base, *query.roll)]
        self.forget_outputs(name)
        self.limits.pop(name, None)
        self.forget_plan(name)

    def hand_over(self, name: str) -> None:
        """A query is run by another from here on; what it has put out stays."""
        del self.state.queries[name]
        self.limits.pop(name, None)
        self.forget_plan(name)

    def forget_plan(self, name: str) -> None:
        """A query no longer goes with the epochs."""
        self.plans.pop(name, None)
        self.apart.discard(name)
        self.adaptation.forget(name)
        self._common = None

    def forget_outputs(self, name: str) -> None:
        self.gathering.forget(name)
        for key in keys_of(self.state.outputs, name):
            self._dropped += [p[0] for p in self.state.outputs.pop(key)]

    def pause(self, name: str) -> None:
        """Let a query rest; what it has yet to see is kept for it."""
        self.state.queries[name].status = PAUSED

    def resume(self, name: str) -> None:
        """Let a query that rests, or that had failed, go on where it stopped."""
        query = self.state.queries[name]
        query.status, query.error, query.behind = RUNNING, None, True
        query.backfill = PUSH

    @property
    def common(self) -> Common:
        """Predicates that several queries ask; found out once after many changes."""
        if self._common is None:
            self._common = common_predicates(self.plans.values())
        return self._common

    @property
    def is_behind(self) -> bool:
        """Whether some query has still to go through the past."""
        return any(q.behind and q.status == RUNNING for q in self.state.queries.values())

    def replan(self, name: str, plan: QueryPlan, options: QueryOptions) -> None:
        """Run a query by another plan from the next epoch on, its conjunctions as they were."""
        (self.apart.add if options.share == "off" else self.apart.discard)(name)
        orders = [tuple(o) for o in self.state.queries[name].orders]
        self.plans[name] = self.adaptation.watch(name, plan, options, orders)
        self._common = None

    def keys_of(self, stream: str) -> tuple[Key, ...]:
        """Key indexes wanted on a stream's packs, the most used first."""
        wanted: Counter[Key] = Counter()
        for plan in self.plans.values():
            for of, key, use in plan.keys_wanted:
                if of == stream:
                    wanted[key] += use
        definition = self.catalog.streams.get(stream)
        if definition is not None and definition.key and definition.is_retained:
            wanted[definition.key] += 1  # for those who will ask about the past of one entity
        return tuple(k for k, _ in wanted.most_common())
