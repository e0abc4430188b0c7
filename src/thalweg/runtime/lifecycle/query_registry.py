"""Queries that begin, are replaced, pause and end: their state, changed between two epochs."""

from __future__ import annotations

from dataclasses import replace

from thalweg.instants import BEFORE_TIME
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.catalog import Catalog
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.backfill import PUSH, Pace, chosen_backfill
from thalweg.runtime.lifecycle.history_start import SEED, begin, beginning, usual_history
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.transitions import Event, after
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.outputs import Outputs
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import Definition, OperatorState, QueryState, Sharing
from thalweg.runtime.state.stream_state import StreamState
from thalweg.store.storage import Storage

_COUNTED_FOR_EVER = ("emitted", "rejected")


class QueryRegistry:
    """Which queries there are, cohorts and those of views among them."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        state: EngineState,
        plans: PlanTable,
        outputs: Outputs,
        files: PendingFiles,
        pace: Pace,
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._state = state
        self._plans = plans
        self._outputs = outputs
        self._files = files
        self._pace = pace

    def add(
        self,
        name: str,
        definition: Definition,
        plan: QueryPlan,
        options: QueryOptions,
        sharing: Sharing | None = None,
    ) -> QueryState:
        """A new query sees log entries from now on; a known one goes on where it was."""
        self._know_streams(plan)
        if name not in self._state.queries:
            query = QueryState(definition, sharing=sharing or Sharing())
            query.progress.delivered = self._state.epoch
            self._state.queries[name] = query
            self._begin(query, plan, options)
        self.replan(name, plan, options)
        return self._state.queries[name]

    def _begin(self, query: QueryState, plan: QueryPlan, options: QueryOptions) -> None:
        history = options.history or usual_history(plan, self._catalog)
        given = beginning(plan, history, self._state)
        begin(query, given, self._state, self._storage)
        streams = [self._state.streams[s] for s in plan.streams]
        had_rows = any(
            s.kept_since > BEFORE_TIME or any(p.min_ts < given.silent_until for p in s.packs)
            for s in streams
        )
        query.history = replace(query.history, had_rows=had_rows)
        if query.progress.behind:
            query.progress.backfill = chosen_backfill(
                options.backfill, plan, query, self._state, self._storage, self._pace.rows
            )

    def replace(self, name: str, text: str, plan: QueryPlan, options: QueryOptions) -> None:
        """Let another version of a query take over at its frontier, its windows filled from what is
        kept. Of a relation the difference between the two answers is put out then. (One that is
        invoked has a mode, in which it begins afresh.)"""
        query = self._state.queries[name]
        was_silent, start = query.is_silent, query.progress.start
        cut = query.history.silent_until if was_silent else query.progress.frontier
        self.drop_state(query)
        query.definition = replace(query.definition, text=text, learned={})
        self._know_streams(plan)
        if cut > BEFORE_TIME and not query.definition.mode:
            had_rows = query.history.had_rows if start is None else start < cut
            given = beginning(plan, SEED, self._state, cut)
            begin(query, given, self._state, self._storage)
            query.history = replace(query.history, had_rows=had_rows)
            query.progress.backfill = PUSH
            query.output = replace(query.output, replaces=query.output.replaces or not was_silent)
        self.replan(name, plan, options)

    def _know_streams(self, plan: QueryPlan) -> None:
        for stream in plan.streams:
            self._state.streams.setdefault(stream, StreamState())

    def replan(self, name: str, plan: QueryPlan, options: QueryOptions) -> None:
        """Run a query by another plan from the next epoch on, with what was learned so far."""
        self._plans.put(name, plan, options, self._state.queries[name].definition.learned)

    def drop_state(self, query: QueryState) -> None:
        """Let a query hold nothing; what it has put out stays."""
        self._files.drop(query.operators.files)
        self._files.drop(p[0] for p in query.output.pending)
        counts = {k: n for k, n in query.operators.counts.items() if k in _COUNTED_FOR_EVER}
        query.operators = OperatorState(counts=counts)
        query.output = replace(query.output, pending=())

    def remove(self, name: str) -> None:
        """Forget a query and everything that was kept for it alone."""
        query = self._state.queries.pop(name)
        self.drop_state(query)
        output = query.output
        self._files.drop(p[0] for p in (*output.rejects, *output.base, *query.sharing.roll))
        self._outputs.forget(name)
        self._plans.forget(name)

    def hand_over(self, name: str) -> None:
        """A query is run by another from here on; what it has put out stays."""
        del self._state.queries[name]
        self._plans.forget(name)

    def pause(self, name: str) -> None:
        """Pause a query; what it has yet to see is kept for it."""
        query = self._state.queries[name]
        query.lifecycle = after(query.lifecycle, Event.PAUSE)

    def resume(self, name: str) -> None:
        """Resume a query that is paused or failed, where it stopped."""
        query = self._state.queries[name]
        query.lifecycle = after(query.lifecycle, Event.RESUME)
        query.progress.behind, query.progress.backfill = True, PUSH

    @property
    def is_behind(self) -> bool:
        """Whether some query still has to process the past."""
        return any(q.progress.behind and q.runs for q in self._state.queries.values())
