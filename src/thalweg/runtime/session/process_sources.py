"""Sources of an engine without Spark: rows are handed over as tables."""

from __future__ import annotations

from thalweg.errors import NotAvailableYet
from thalweg.plan.catalog import SourceSpec, StreamDef, TableDef
from thalweg.plan.logical import Schema
from thalweg.runtime.lifecycle.stream_registry import StreamRegistry


class ProcessSources:
    def __init__(self, streams: StreamRegistry) -> None:
        self._streams = streams

    def create_stream(self, definition: StreamDef) -> StreamDef:
        return self._streams.define(definition)

    def create_table(self, name: str, fields: Schema | None, source: SourceSpec) -> TableDef:
        raise NotAvailableYet(
            "CREATE TABLE FROM needs an Engine",
            remedy="start one with thalweg.Engine(), or hand a table over with table(name, rows)",
        )

    def drop_stream(self, name: str) -> None:
        """Rows are handed over by the process itself."""

    def refresh_table(self, name: str) -> None:
        raise NotAvailableYet(
            "REFRESH TABLE needs an Engine",
            remedy="start one with thalweg.Engine(), or hand its rows over with table(name, rows)",
        )
