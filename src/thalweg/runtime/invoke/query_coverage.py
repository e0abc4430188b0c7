"""Coverage: how much of the span of its windows a query has processed, by its name."""

from __future__ import annotations

from thalweg.runtime.lifecycle.coverage import Coverage, coverage
from thalweg.runtime.results.lookup import QueryLookup
from thalweg.runtime.state.engine_state import EngineState


class QueryCoverage:
    def __init__(self, state: EngineState, queries: QueryLookup) -> None:
        self._state = state
        self._queries = queries

    def of(self, name: str, at: int | None = None) -> Coverage:
        """The coverage of its answer at an instant, by default the last one that is over. A member
        of a cohort evaluates each row by itself."""
        if self._queries.cohort(name) is not None:
            return Coverage()
        query, plan = self._queries.state(name), self._queries.windows(name)
        kept = {}
        for stream in plan.streams:
            known = self._state.streams[stream]
            kept[stream] = known.whole_since
            if query.works_on_demand:  # its answers are made from what is still kept
                kept[stream] = max(known.whole_since, known.kept_since)
        return coverage(plan, query, at, self._state.window_stores, kept)
