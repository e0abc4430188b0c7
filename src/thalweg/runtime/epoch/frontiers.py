"""How far each query advances in an epoch: from watermarks to frontiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum

from thalweg.plan.catalog import Catalog
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.epoch import watermarks
from thalweg.runtime.epoch.scheduler import Scheduler
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.failures import STREAM
from thalweg.runtime.state.internal_names import view_query
from thalweg.runtime.state.query_state import QueryState
from thalweg.runtime.state.stream_state import StreamState
from thalweg.runtime.upkeep.stream_demand import StreamDemand
from thalweg.runtime.upkeep.upkeep import Upkeep


class Close(Enum):
    """How far time goes when a run has read everything."""

    SETTLED = "until all rows have appeared"
    FINAL = "until time has taken out all that it can"


Marks = Mapping[str, tuple[int, bool]]
"""Per stream its watermark, and whether it is idle."""


class Frontiers:
    """Lets time pass. `awake_since` is when sources were first asked in this run; `idle` are the
    streams that are not waited for just now."""

    def __init__(
        self,
        catalog: Catalog,
        state: EngineState,
        plans: PlanTable,
        scheduler: Scheduler,
        upkeep: Upkeep,
        keeps_answer: Callable[[str], bool],
    ) -> None:
        self._catalog = catalog
        self._state = state
        self._plans = plans
        self._scheduler = scheduler
        self._upkeep = upkeep
        self._keeps_answer = keeps_answer
        self.awake_since = 0
        self.idle: set[str] = set()

    def advance(self, clock: int, *, close: Close | None, live: bool, busy: bool) -> dict[str, int]:
        """Raise the watermarks; the queries that move in this epoch, and how far."""
        if live:
            self._follow_others()
        marks = self._marks(clock, live)
        self.idle = {name for name, (_, idle) in marks.items() if idle}
        targets = self._targets(marks, live) if close is None else self._closing(close)
        reached = self._scheduler.choose(targets, busy=busy, close=close is not None)
        self._raise_watermarks(marks, reached, close)
        queries = self._state.queries
        moving = {n: f for n, f in reached.items() if f > queries[n].progress.frontier}
        if close is not Close.FINAL:
            for name in moving:
                queries[name].progress.ended = None
        return moving

    def _follow_others(self) -> None:
        """Raise the watermarks of streams that are declared BEHIND others."""
        states = self._state.streams
        for name, state in states.items():
            definition = self._catalog.streams.get(name)
            if definition is not None and definition.behind:
                state.watermark = max(state.watermark, watermarks.behind(definition, states))

    def _marks(self, clock: int, live: bool) -> Marks:
        found: dict[str, tuple[int, bool]] = {}
        for name, state in self._state.streams.items():
            definition = self._catalog.streams.get(name)
            if definition is None:
                continue
            if live:
                found[name] = watermarks.passing(definition, state, clock, self.awake_since)
            else:
                found[name] = watermarks.watermark(definition, state), False
        return found

    def _targets(self, marks: Marks, live: bool) -> dict[str, int]:
        demand = StreamDemand(self._plans, self._state) if live else None
        targets = {}
        for name, plan in self._plans.items():
            query = self._state.queries[name]
            if not query.runs:
                continue
            frontier = query.progress.frontier
            reached = watermarks.frontier([marks[s] for s in plan.streams], frontier)
            reached = max(frontier, plan.begun(reached))
            due = demand is None or self._scheduler.is_short or query.wakes_before(reached)
            if due or (demand is not None and self._upkeep.keeps_rows(plan.streams, demand)):
                frontier = reached
            targets[name] = frontier  # the same, if nothing is kept that time could change
        return targets

    def _closing(self, close: Close) -> dict[str, int]:
        """Just past all rows that have arrived, once views have brought theirs."""
        targets = {}
        for name, plan in self._plans.items():
            query = self._state.queries[name]
            if not query.runs or any(self._stays_open(s) for s in plan.streams):
                continue
            if any(self._is_filling(s, close) for s in plan.streams):
                targets[name] = query.progress.frontier
            else:
                targets[name] = self._closing_frontier(name, plan, query, close)
        return targets

    def _closing_frontier(self, name: str, plan: QueryPlan, query: QueryState, close: Close) -> int:
        states = [self._closing_state(s) for s in plan.streams]
        progress = query.progress
        ended = watermarks.closing_frontier(plan, states, progress.frontier)
        if close is Close.SETTLED or query.definition.mode or self._keeps_answer(name):
            return ended
        final = watermarks.closing_frontier(plan, states, progress.frontier, emptied=True)
        if progress.ended is None and final > ended:
            progress.ended = ended
        return final

    def _stays_open(self, stream: str) -> bool:
        """Whether rows may still come that must not be late: its source has failed, and goes on
        where it was once it is mended."""
        if self._state.failure(STREAM, stream) is not None:
            return True
        plan = self._plans.get(view_query(stream))
        return plan is not None and any(map(self._stays_open, plan.streams))

    def _is_filling(self, stream: str, close: Close) -> bool:
        """Whether, at a close, a view has still to bring rows of this stream."""
        name = view_query(stream)
        query = self._state.queries.get(name)
        if query is None or name not in self._plans or not query.runs:
            return False
        plan = self._plans[name]
        if self._closing_frontier(name, plan, query, close) > query.progress.frontier:
            return True
        return any(self._is_filling(s, close) for s in plan.streams)

    def _closing_state(self, stream: str) -> StreamState:
        """A view without rows up to its query's frontier has seen that time, too."""
        state = self._state.streams[stream]
        if view_query(stream) not in self._state.queries:
            return state
        return replace(state, max_ts=max(state.max_ts, state.heartbeat - 1))

    def _raise_watermarks(
        self, marks: Marks, reached: Mapping[str, int], close: Close | None
    ) -> None:
        """A row below W, or below what a query has passed, is late from the next epoch on."""
        for name, (mark, idle) in marks.items():
            state = self._state.streams[name]
            if not idle:  # the clock alone makes no row late, only a query that went past it
                state.watermark = max(state.watermark, mark)
            if close is not None and state.rows and not self._stays_open(name):
                state.watermark = max(state.watermark, state.max_ts + 1)
        for name, frontier in reached.items():
            if frontier == self._state.queries[name].progress.frontier:
                continue  # it may have come further by other streams, which it has read before
            for stream in self._plans[name].streams:
                state = self._state.streams[stream]
                state.watermark = max(state.watermark, frontier)
