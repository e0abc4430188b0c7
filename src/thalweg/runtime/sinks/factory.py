"""From INTO to a sink."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import pyarrow as pa

from thalweg.errors import NotAvailableYet
from thalweg.plan.bound_query import SinkSpec
from thalweg.runtime.results.results_reader import answer_before
from thalweg.runtime.sinks.guarantees import guarantee_of
from thalweg.runtime.sinks.sinks import ConsoleSink, FilesSink, FunctionSink, Sink, TableSink
from thalweg.runtime.state.engine_state import EngineState
from thalweg.store.storage import Storage


class SinkFactory(Protocol):
    def make(self, query: str, spec: SinkSpec, schema: pa.Schema) -> Sink: ...


class ProcessSinks:
    """Sinks that need nothing but this process."""

    def __init__(self, storage: Storage, state: EngineState) -> None:
        self._storage = storage
        self._state = state

    def make(self, query: str, spec: SinkSpec, schema: pa.Schema) -> Sink:
        if spec.kind == "console":
            return ConsoleSink(query)
        if spec.kind == "table":
            before = partial(answer_before, self._storage, self._state, schema, query)
            return TableSink(query, spec, before)
        if spec.kind in ("files", "changelog"):
            return FilesSink(query, spec, self._state.identity)
        raise NotAvailableYet(
            "INTO SPARK needs an Engine",
            remedy="start one with thalweg.Engine(), or use INTO FILES",
        )


class PlannedSinks:
    """Sinks of queries that are only looked at: nothing is ever written."""

    def __init__(self, storage: Storage, state: EngineState) -> None:
        self._others = ProcessSinks(storage, state)

    def make(self, query: str, spec: SinkSpec, schema: pa.Schema) -> Sink:
        if spec.kind == "spark":
            return FunctionSink(lambda _: None, guarantee_of(spec))
        return self._others.make(query, spec, schema)
