"""How far each query may go in an epoch: from watermarks to frontiers, and slices of the past."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from thalweg.exec import slots
from thalweg.plan.catalog import Catalog
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.epoch import watermarks
from thalweg.runtime.epoch.catch_up import Pace, sliced
from thalweg.runtime.sharing.window_stores import Stores
from thalweg.runtime.state.engine_state import RUNNING, VIEWS, EngineState, QueryState, StreamState
from thalweg.runtime.upkeep.retention import low_water


class Advancing:
    """The part of `Coordinator` that lets time pass."""

    catalog: Catalog
    state: EngineState
    plans: dict[str, QueryPlan]
    pace: Pace
    awake_since: int
    idle: set[str]
    stores: Stores
    _past_rows: float

    def _advance(self, clock: int, *, close: bool, live: bool, busy: bool) -> dict[str, int]:
        marks: dict[str, tuple[int, bool]] = {}
        for name, state in self.state.streams.items():
            definition = self.catalog.streams.get(name)
            if definition is None:
                continue
            if live:
                marks[name] = watermarks.passing(definition, state, clock, self.awake_since)
            else:
                marks[name] = watermarks.watermark(definition, state), False
        self.idle = {name for name, (_, idle) in marks.items() if idle}
        frontiers = {}
        for name, plan in self.plans.items():
            query = self.state.queries[name]
            if query.status != RUNNING:
                continue
            streams = plan.streams
            if close and any(self._is_filling(s) for s in streams):
                frontiers[name] = query.frontier  # what it reads is still being made
            elif close:
                states = [self._closing_state(s) for s in streams]
                frontiers[name] = watermarks.closing_frontier(plan, states, query.frontier)
            elif live and not _is_open(plan, query) and not any(map(self._keeps_rows, streams)):
                frontiers[name] = query.frontier  # nothing is kept that time could change
            else:
                frontiers[name] = watermarks.frontier([marks[s] for s in streams], query.frontier)
        budget = math.inf if close else self.pace.budget(busy)
        reached, self._past_rows = sliced(frontiers, self.plans, self.state, budget)
        for name, until in reached.items():
            query = self.state.queries[name]
            query.behind = query.behind and until < frontiers[name]
        self._raise_watermarks(marks, reached, close)
        return reached

    def _keeps_rows(self, stream: str) -> bool:
        """Whether rows of a stream are kept, other than for stores, which only order matters to."""
        packs = self.state.streams[stream].packs
        if self.stores.low(stream) is None:
            return bool(packs)
        low = low_water(stream, self.catalog, self.plans, self.state)
        return any(p.max_ts >= low for p in packs)

    def _is_filling(self, stream: str) -> bool:
        """Whether, at a close, a view has still to bring rows of this stream."""
        name = f"{VIEWS}{stream}"
        query = self.state.queries.get(name)
        if query is None or name not in self.plans or query.status != RUNNING:
            return False
        plan = self.plans[name]
        streams = plan.streams
        states = [self._closing_state(s) for s in streams]
        closing = watermarks.closing_frontier(plan, states, query.frontier)
        return closing > query.frontier or any(self._is_filling(s) for s in streams)

    def _closing_state(self, stream: str) -> StreamState:
        """A view has been silent up to where its query has come: that time has been seen, too."""
        state = self.state.streams[stream]
        if f"{VIEWS}{stream}" not in self.state.queries:
            return state
        return replace(state, max_ts=max(state.max_ts, state.heartbeat - 1))

    def _raise_watermarks(
        self, marks: Mapping[str, tuple[int, bool]], frontiers: Mapping[str, int], close: bool
    ) -> None:
        """A row below W, or below what a query has passed, is late from the next epoch on."""
        for name, (mark, idle) in marks.items():
            state = self.state.streams[name]
            if not idle:  # the clock alone makes no row late, only a query that went past it
                state.watermark = max(state.watermark, mark)
            if close and state.rows:
                state.watermark = max(state.watermark, state.max_ts + 1)
        for name, frontier in frontiers.items():
            if frontier == self.state.queries[name].frontier:
                continue  # it may have come further by other streams, which it has read before
            for stream in self.plans[name].streams:
                state = self.state.streams[stream]
                state.watermark = max(state.watermark, frontier)


def _is_open(plan: QueryPlan, query: QueryState) -> bool:
    """Whether it holds sessions, which time closes."""
    held = [*query.slots, *query.stubs]
    return bool(plan.gaps) and any(slots.kind_of(slot) == slots.LEAF for slot in held)
