"""Counters and sizes of a query, as of the last epoch."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from thalweg.adapt.adaptation import Adaptation
from thalweg.models.segments import bounds_of
from thalweg.plan.bounded_state import verdict
from thalweg.runtime.lifecycle.history_start import rows_since
from thalweg.runtime.results.lookup import QueryLookup
from thalweg.runtime.results.results_reader import ResultsReader
from thalweg.runtime.session.state_components import components
from thalweg.runtime.sharing.window_stores import shared_windows
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.failures import QUERY, STREAM
from thalweg.store.storage import Storage


def plain(value: Any) -> Any:
    """The same in types that JSON has; what is no finite number is None."""
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


class QueryStats:
    def __init__(
        self,
        storage: Storage,
        state: EngineState,
        queries: QueryLookup,
        results: ResultsReader,
        adaptation: Adaptation,
    ) -> None:
        self._storage = storage
        self._state = state
        self._queries = queries
        self._results = results
        self._adaptation = adaptation

    def of(self, name: str) -> dict[str, Any]:
        state, query = self._state, self._queries.state(name)
        found = {
            "status": query.lifecycle.status,
            "error": query.lifecycle.error,
            "sink_error": state.failure(QUERY, name),
            "epoch": state.epoch,
            "frontier": query.progress.frontier,
            "wakes_at": query.progress.wakes_at,
        }
        cohort = self._queries.cohort(name)
        if cohort is not None:
            return found | self._of_member(name, cohort)
        plan, packs = self._queries.plan(name), query.operators.packs
        bound = self._queries.bound(name)
        streams = {s: self._of_stream(s) for s in bound.streams if s in state.streams}
        marks = [s["watermark"] for s in streams.values() if s["rows"]]
        return found | {
            "emitted": query.operators.counts.get("emitted", 0),
            "rejected": query.operators.counts.get("rejected", 0),
            "state_bytes": sum(p.meta.bytes for p in packs),
            "state_rows": sum(p.meta.rows for p in packs),
            "shared_windows": shared_windows(state, query),
            **asdict(components(plan, query, state, self._storage)),
            "bound": list(verdict(bound.root).bounds),
            "approximate_since": query.limits.approximate_since,
            "counts": dict(query.operators.counts),
            "model_bounds": bounds_of(plan),
            "adapt": plain(self._adaptation.report(name)),
            "streams": streams,
            "skew": max(marks) - min(marks) if marks else 0,
        }

    def _of_stream(self, name: str) -> dict[str, Any]:
        stream = self._state.streams[name]
        return {
            "rows": stream.rows,
            "late": stream.late,
            "rejected": stream.rejected,
            "packs": len(stream.packs),
            "kept_rows": self.kept_rows(name),
            "kept_bytes": sum(p.bytes for p in stream.packs),
            "watermark": stream.watermark,
            "error": self._state.failure(STREAM, name),
        }

    def _of_member(self, name: str, cohort: str) -> dict[str, Any]:
        """It has no state of its own."""
        (stream,) = self._queries.bound(name).streams
        known = self._state.streams.get(stream)
        return {
            "emitted": self._results.results(name).num_rows,
            "rejected": 0,
            "state_bytes": 0,
            "state_rows": 0,
            "counts": dict(self._queries.state(name).operators.counts),
            "shared": cohort,
            "streams": {stream: {"rows": 0 if known is None else known.rows}},
        }

    def kept_rows(self, stream: str) -> int:
        """Rows that windows or RETAIN still reach; a pack may hold older ones for a while."""
        known = self._state.streams[stream]
        return rows_since(self._storage, known.packs, known.kept_since)
