"""Registering streams and tables of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.instants import instant_of
from thalweg.lang.column_definitions import columns_of
from thalweg.plan.catalog import SourceSpec, StreamDef, TableDef
from thalweg.plan.logical import Schema
from thalweg.runtime.results.stream_history import history
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.sources.files import inferred_table, list_files, read_file
from thalweg.runtime.sources.found_files import refuse_files
from thalweg.runtime.sources.given_rows import arrow_table, is_frame
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.push import PushInput, from_items, from_table
from thalweg.runtime.sources.python_arguments import (
    Duration,
    arrow_fields,
    make_stream,
    normalized,
)
from thalweg.runtime.state.clock import wall_clock
from thalweg.spark.arrow import arrow_schema
from thalweg.spark.batch.frames import TableFrames
from thalweg.spark.file_names import file_names
from thalweg.spark.ingest import StreamInput
from thalweg.spark.ingest_groups import IngestGroups
from thalweg.spark.readers import spark_fields, spark_stream

Given = TypeVar("Given", StreamInput, PushInput)


class StreamInputs:
    """Registers streams and tables of an engine; as `Sources` also those of statements."""

    def __init__(
        self, spark: SparkSession, core: EngineCore, groups: IngestGroups, log: LogWriter
    ) -> None:
        self._spark = spark
        self._core = core
        self._groups = groups
        self._log = log
        self.frames = TableFrames()

    def stream(
        self,
        name: str,
        df: DataFrame,
        timestamp: str | None = None,
        *,
        lateness: Duration = 0,
        key: str | Sequence[str] = (),
        retain: Duration | None = None,
        **options: Any,
    ) -> StreamDef:
        """See `Engine.stream`."""
        if not isinstance(df, DataFrame):
            raise ConfigError(
                f"stream {name}: expected a Spark DataFrame, got {type(df).__name__}",
                remedy="hand over a streaming DataFrame of Spark, such as spark.readStream gives",
            )
        if not df.isStreaming:
            raise ConfigError(
                f"stream {name}: the DataFrame is not streaming",
                remedy="use spark.readStream, or engine.table() for static data",
            )
        fields = spark_fields(df)
        options = self._with_idle(options)
        definition = make_stream(
            name, fields, timestamp, lateness=lateness, key=key, retain=retain, **options
        )
        return self._add(definition, df, is_files=False)

    def create_stream(self, definition: StreamDef) -> StreamDef:
        """CREATE STREAM."""
        if definition.source.kind == "spark":
            return self._add(definition, spark_stream(self._spark, definition), is_files=False)
        if definition.source.kind != "files":
            raise ConfigError(
                f"stream {definition.name} has no source",
                remedy="add FROM FILES 'path' FORMAT parquet, or use engine.stream()",
            )
        if not self._has_rows(definition.name):
            refuse_files(definition)
        return self._add(definition, file_names(self._spark, definition.source), is_files=True)

    def _has_rows(self, stream: str) -> bool:
        """Whether it has been read before: what lies there now need not be what did."""
        known = self._core.state.streams.get(stream)
        return known is not None and known.rows > 0

    def _add(self, definition: StreamDef, frame: DataFrame, *, is_files: bool) -> StreamDef:
        return self._read(StreamInput(definition, frame, is_files), self._groups.inputs)

    def _read(self, given: Given, known: dict[str, Given]) -> StreamDef:
        """Register where a stream comes from. One that is being read already is read on."""
        changes = self._core.changes

        def add() -> StreamDef:
            found = self._core.streams.define(given.definition)
            if not changes.is_running or found.name not in known:
                known[found.name] = given
                if changes.is_running:
                    self._groups.take_up(given)
            return found

        return changes.between_epochs(add)

    def feed(
        self,
        name: str,
        items: Any,
        schema: pa.Schema | str | None = None,
        timestamp: str | None = None,
        **options: Any,
    ) -> StreamDef:
        """See `Engine.feed`."""
        if is_frame(items) and not isinstance(items, pa.RecordBatchReader):
            items = [arrow_table(items, f"stream {name}")]
            schema = schema or items[0].schema
        shape = items.schema if isinstance(items, pa.RecordBatchReader) else schema
        if shape is None:
            raise ConfigError(f"stream {name}: which columns?", remedy="give a schema")
        fields = columns_of(shape) if isinstance(shape, str) else arrow_fields(shape)
        definition = make_stream(name, fields, timestamp, **self._with_idle(options))
        return self._read(PushInput(definition, from_items(items)), self._groups.pushes)

    def replay(
        self,
        name: str,
        rows: Any,
        timestamp: str,
        *,
        speed: float | None = None,
        **options: Any,
    ) -> StreamDef:
        """See `Engine.replay`."""
        if speed is not None and speed <= 0:
            raise ConfigError(f"stream {name}: speed must be positive", remedy="1 is real time")
        if isinstance(rows, DataFrame):
            if rows.isStreaming:
                raise ConfigError(f"stream {name}: it streams already", remedy="use stream()")
            rows = rows.toArrow()
        rows = arrow_table(rows, f"stream {name}")
        own = rows.select([n for n in rows.column_names if not n.startswith("__")])
        fields = arrow_fields(own.schema)
        definition = make_stream(name, fields, timestamp, **self._with_idle(options))
        table = normalized(own, fields)
        given = PushInput(definition, from_table(definition, table, speed))
        return self._read(given, self._groups.pushes)

    def history(
        self,
        stream: str,
        since: datetime | int | None = None,
        until: datetime | int | None = None,
    ) -> pa.Table:
        """See `Engine.history`."""
        bounds = [None if t is None else instant_of(t) for t in (since, until)]
        return history(self._core.storage, self._core.state, stream, *bounds)

    def heartbeat(self, stream: str, at: datetime | int) -> None:
        """See `Engine.heartbeat`."""
        known = self._core.catalog.streams
        if stream not in known:
            raise UnknownName(f"unknown stream {stream}", remedy=did_you_mean(stream, known))
        source = f"heartbeat:{stream}"
        number = self._log.last_batch(source) + 1
        beats = {stream: instant_of(at)}
        self._log.append(0, (source, number), {}, {}, wall_clock(), heartbeats=beats)

    def _with_idle(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"idle": self._core.settings.default_idle, **options}

    def table(self, name: str, df: Any, at: datetime | int | None = None) -> TableDef:
        """See `Engine.table`."""
        if isinstance(df, DataFrame):
            if df.isStreaming:
                raise ConfigError(
                    f"table {name}: the DataFrame is streaming", remedy="use engine.stream()"
                )
            if at is None:
                return self._unread_table(name, df)
            df = df.toArrow()
        rows, instant = arrow_table(df, f"table {name}"), None if at is None else instant_of(at)
        tables = self._core.tables
        tables.check(name, rows)  # refused here, not in the middle of an epoch
        found = self._core.changes.between_epochs(lambda: tables.define(name, rows, at=instant))
        self.frames.forget(found.name)
        return found

    def _unread_table(self, name: str, df: DataFrame) -> TableDef:
        """A table whose rows are collected when something other than `batch` first reads it."""
        tables, schema = self._core.tables, pa.ipc.read_schema(pa.py_buffer(arrow_schema(df)))
        tables.check(name, schema.empty_table())
        found = self._core.changes.between_epochs(
            lambda: tables.define_unread(name, schema, df.toArrow)
        )
        self.frames.put(found.name, df)
        return found

    def create_table(self, name: str, fields: Schema | None, source: SourceSpec) -> TableDef:
        """CREATE TABLE."""
        paths = list_files(source)
        if fields is None:
            return self._core.tables.define(name, inferred_table(source, paths), source)
        rows = pa.concat_tables([read_file(name, fields, source, p) for p in paths])
        return self._core.tables.define(name, rows, source)

    def drop_stream(self, name: str) -> None:
        """DROP STREAM."""
        self._groups.drop(name)

    def refresh_table(self, name: str) -> None:
        """Read a table's files again: what differs is its next version."""
        catalog, tables = self._core.catalog, self._core.tables
        known = catalog.tables.get(name)
        if known is None or known.source.kind != "files":
            raise UnknownName(
                f"there is no table {name} from files", remedy=did_you_mean(name, catalog.tables)
            )
        source = known.source
        files = [read_file(name, known.fields, source, p) for p in list_files(source)]
        rows = pa.concat_tables(files)
        tables.check(name, rows, source)
        self._core.changes.between_epochs(lambda: tables.define(name, rows, source))
