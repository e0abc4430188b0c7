"""SysStream: what the engine knows of itself, as a stream for ordinary queries.

Each epoch that takes rows in publishes one row per property of every entity: what happened in that
epoch (`rows`, `emitted`, `evaluations`, `selectivity`, ...), and sizes as they stand
(`state_bytes`, `kept_rows`, ...). It is published while a query reads it, stamped with the
epoch's clock, and processed in the next epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from thalweg.adapt.adaptation import Adaptation
from thalweg.exec.aggregate.group_by import OPENS
from thalweg.exec.predicates.memo import selectivity
from thalweg.models.segments import bounds_of
from thalweg.plan.catalog import SYSSTREAM, Catalog, system_stream
from thalweg.plan.types import to_arrow
from thalweg.runtime.epoch.intake import Intake
from thalweg.runtime.epoch.report import EpochReport
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.failures import QUERY, STREAM
from thalweg.runtime.state.query_state import QueryState
from thalweg.runtime.state.stream_state import StreamState

Property = tuple[str, str, str, float]
"""Entity, its kind, the property's name and value."""
Drift = tuple[str, int, int]
"""A table or stream, how many rows it had when it was analyzed, and how many it has now."""
_TALLIES = ("rows", "late", "rejected")
COUNTERS = ("tuples modeled", "tuples absorbed", "violations", "conflicts", "equations solved")
"""Counters of queries over models that are properties of these."""


class PropertyGrowth:
    """Turns counters that only grow into what each epoch added to them."""

    def __init__(
        self,
        state: EngineState,
        adaptation: Adaptation,
        bounds: Callable[[str], Mapping[str, float]],
        drift: Callable[[], Iterable[Drift]],
    ) -> None:
        self._bounds = bounds
        self._drift = drift
        self._state = state
        self._adaptation = adaptation
        self._before: dict[tuple[str, str], int] = {}
        self._clock = state.clock
        for stream in state.streams:
            self._streams_growth(stream, state.streams[stream])
        for query in state.queries:
            self._grown(query, state.queries[query].operators.counts)
            self._more(query, "switches", adaptation.log(query).count)

    def table(self, report: EpochReport, clock: int) -> pa.Table:
        found = list(self._properties(report, clock))
        epoch = report.epoch
        entities, kinds, names, values = zip(*found, strict=True)
        columns = [entities, kinds, names, values, [epoch] * len(found)]
        fields = system_stream().fields
        return pa.table(
            {f.name: pa.array(c, to_arrow(f.type)) for f, c in zip(fields, columns, strict=True)}
        )

    def _properties(self, report: EpochReport, clock: int) -> Iterator[Property]:
        seconds = (clock - self._clock) / 1e6 if self._clock else 0.0  # 0: no epoch before
        self._clock = clock
        yield "engine", "engine", "rows", report.rows_in
        yield "engine", "engine", "seconds", report.seconds
        yield "engine", "engine", "step_seconds", report.step_seconds
        yield "engine", "engine", "state_bytes", report.state_bytes
        for name, stream in self._state.streams.items():
            if name != SYSSTREAM:
                yield from self._of_stream(name, stream, seconds)
        for name, query in self._state.queries.items():
            yield from self._of_query(name, query)
        for name, analyzed, now in self._drift():
            yield name, "statistics", "rows analyzed", analyzed
            yield name, "statistics", "rows now", now
            yield name, "statistics", "stale", float(now > analyzed)

    def _of_stream(self, name: str, stream: StreamState, seconds: float) -> Iterator[Property]:
        grown = self._streams_growth(name, stream)
        for tally, value in grown.items():
            yield name, "stream", tally, value
        if seconds > 0:
            yield name, "stream", "rate", grown["rows"] / seconds
        yield name, "stream", "kept_rows", sum(p.rows for p in stream.packs)
        yield name, "stream", "kept_bytes", sum(p.bytes for p in stream.packs)
        yield name, "stream", "failing", self._fails(STREAM, name)

    def _of_query(self, name: str, query: QueryState) -> Iterator[Property]:
        grown = self._grown(name, query.operators.counts)
        yield name, "query", "emitted", grown.get("emitted", 0)
        yield name, "query", "rejected", grown.get("rejected", 0)
        packs = [p for slot in query.operators.slots.values() for p in slot]
        yield name, "query", "state_bytes", sum(p.meta.bytes for p in packs)
        yield name, "query", "failing", self._fails(QUERY, name)
        for counter in COUNTERS:
            if counter in query.operators.counts:
                yield name, "query", counter, grown.get(counter, 0)
        for column, within in self._bounds(name).items():
            yield name, "query", f"bound of {column}", within
        log = self._adaptation.log(name)
        yield name, "query", "switches", self._more(name, "switches", log.count)
        costs = self._adaptation.costs_of(name)
        for text in [k.removeprefix("passed:") for k in grown if k.startswith("passed:")]:
            passing = selectivity(grown, text)
            if passing is None:
                continue
            entity = f"{name}: {text}"
            yield entity, "predicate", "selectivity", passing
            for kind in ("evaluations", "shared", "profiled"):
                yield entity, "predicate", kind, grown.get(f"{kind}:{text}", 0)
            if text in costs:
                yield entity, "predicate", "cost", costs[text]

    def _fails(self, kind: str, name: str) -> float:
        return float(self._state.failure(kind, name) is not None)

    def _streams_growth(self, name: str, stream: StreamState) -> dict[str, int]:
        return self._grown(f"stream {name}", {t: getattr(stream, t) for t in _TALLIES})

    def _grown(self, entity: str, counts: Mapping[str, int]) -> dict[str, int]:
        return {
            name: self._more(entity, name, count)
            for name, count in counts.items()
            if not name.startswith(OPENS)  # comes and goes with its group
        }

    def _more(self, entity: str, name: str, count: int) -> int:
        before = self._before.get((entity, name), 0)
        self._before[entity, name] = count
        return count - before


class SystemStream:
    """Publishes the engine's own properties, once a query reads them."""

    def __init__(
        self,
        catalog: Catalog,
        state: EngineState,
        plans: PlanTable,
        adaptation: Adaptation,
        intake: Intake,
        drift: Callable[[], Iterable[Drift]],
    ) -> None:
        self._drift = drift
        self._plans = plans
        self._catalog = catalog
        self._state = state
        self._adaptation = adaptation
        self._intake = intake
        self.growth: PropertyGrowth | None = None

    def begin(self) -> None:
        """Count from here on, if the stream is known by now."""
        if self.growth is None and SYSSTREAM in self._catalog.streams:
            self.growth = PropertyGrowth(self._state, self._adaptation, self._bounds, self._drift)

    def _bounds(self, query: str) -> Mapping[str, float]:
        plan = self._plans.get(query)
        return {} if plan is None else bounds_of(plan)

    def publish(self, report: EpochReport, clock: int) -> None:
        """Add what an epoch did to the stream."""
        if self.growth is None:
            return
        stream = self._state.streams[SYSSTREAM]
        at = max(clock, stream.max_ts + 1, stream.watermark)
        table = self.growth.table(report, clock)
        self._intake.publish(SYSSTREAM, table, at, self._state.next_seq - 1, clock)
