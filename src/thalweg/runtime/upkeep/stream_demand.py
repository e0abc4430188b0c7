"""The rows of each stream that running queries still need, in one pass over their plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.window_reach import needed_by_stream
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import QueryState


@dataclass(frozen=True, slots=True)
class Demand:
    """Rows of a stream before `lowest` are in no window; `without_backfill` is the same without
    queries that process the past. Below `released` every query has processed the rows."""

    lowest: int
    without_backfill: int
    released: int


class StreamDemand:
    """The demand for each stream by the present plans and frontiers."""

    def __init__(self, plans: Mapping[str, QueryPlan], state: EngineState) -> None:
        self._state = state
        self._lowest: dict[str, int] = {}
        self._without_backfill: dict[str, int] = {}
        self._released: dict[str, int] = {}
        for name, plan in plans.items():
            self._add(plan, state.queries[name])

    def of(self, stream: str) -> Demand:
        watermark = self._state.streams[stream].watermark
        return Demand(
            min(self._lowest.get(stream, watermark), watermark),
            min(self._without_backfill.get(stream, watermark), watermark),
            self._released.get(stream, watermark),
        )

    def _add(self, plan: QueryPlan, query: QueryState) -> None:
        frontier, behind = query.progress.frontier, query.progress.behind
        if query.runs and not behind:
            for stream in plan.streams:
                _lower(self._released, stream, frontier)
        for stream, since in needed_by_stream(plan, query).items():
            if stream in query.limits.evicted:  # the next step evicts these rows
                since = min(since, query.limits.evicted[stream][0])
            _lower(self._lowest, stream, since)
            if not behind:
                _lower(self._without_backfill, stream, since)


def _lower(found: dict[str, int], stream: str, at: int) -> None:
    known = found.get(stream)
    if known is None or at < known:
        found[stream] = at
