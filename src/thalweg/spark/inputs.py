"""How streams and tables come into an engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from thalweg.config import Config
from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.lang.definitions import columns_of
from thalweg.plan.catalog import StreamDef, TableDef
from thalweg.plan.logical import instant_of
from thalweg.runtime.epoch.driver import EpochLoop, LoopEnded
from thalweg.runtime.results.stream_history import history
from thalweg.runtime.session.session import Session
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.push import PushInput, from_items, from_table
from thalweg.runtime.sources.python_arguments import Duration, arrow_fields, make_stream, normalized
from thalweg.runtime.state.clock import wall_clock
from thalweg.spark.files import file_names
from thalweg.spark.ingest import StreamInput
from thalweg.spark.readers import spark_fields, spark_stream
from thalweg.store.storage import Storage

T = TypeVar("T")
Given = TypeVar("Given", StreamInput, PushInput)


class Inputs:
    """The part of `Engine` that registers streams and tables."""

    spark: SparkSession
    session: Session
    config: Config
    _storage: Storage
    _log: LogWriter
    _loop: EpochLoop | None
    _starting: threading.RLock
    _inputs: dict[str, StreamInput]
    _pushes: dict[str, PushInput]
    _take_up: Callable[[StreamInput | PushInput], None]

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
        """Register a streaming DataFrame as a stream.

        `timestamp` names its event-time column (None: arrival time). `lateness` is how far out of
        order rows may come. Further options: unit, idle, ahead, order_by, unique.
        """
        if not isinstance(df, DataFrame):
            raise ConfigError(f"stream {name}: expected a Spark DataFrame, got {type(df).__name__}")
        if not df.isStreaming:
            raise ConfigError(
                f"stream {name}: the DataFrame is not streaming",
                remedy="use spark.readStream, or engine.table() for static data",
            )
        fields = spark_fields(df)
        options.setdefault("idle", self.config.idle)
        definition = make_stream(
            name, fields, timestamp, lateness=lateness, key=key, retain=retain, **options
        )
        return self._add(definition, df, is_files=False)

    def declared_stream(self, definition: StreamDef) -> StreamDef:
        if definition.source.kind == "spark":
            return self._add(definition, spark_stream(self.spark, definition), is_files=False)
        if definition.source.kind != "files":
            raise ConfigError(
                f"stream {definition.name} has no source",
                remedy="add FROM FILES 'path' FORMAT parquet, or use engine.stream()",
            )
        return self._add(definition, file_names(self.spark, definition.source), is_files=True)

    def _add(self, definition: StreamDef, frame: DataFrame, *, is_files: bool) -> StreamDef:
        return self._joins(StreamInput(definition, frame, is_files), self._inputs)

    def _joins(self, given: Given, known: dict[str, Given]) -> StreamDef:
        """Register where a stream comes from. One that is being read already is read on."""

        def add() -> StreamDef:
            found = self.session.define_stream(given.definition)
            if self._loop is None or found.name not in known:
                known[found.name] = given
                self._take_up(given)
            return found

        return self.at_epoch(add)

    def feed(
        self,
        name: str,
        items: Any,
        schema: pa.Schema | str | None = None,
        timestamp: str | None = None,
        **options: Any,
    ) -> StreamDef:
        """Register a stream that Python feeds.

        `items` is an iterable (a generator), a function that returns one, or a
        `pyarrow.RecordBatchReader`; each item is a row as a dictionary, a list of such, an Arrow
        table or batch, or a `Heartbeat`. `schema` is an Arrow schema or SQL columns such as
        `"sym STRING, price DOUBLE, ts TIMESTAMP"`. After a restart a function is called again and
        the items taken in before are skipped.
        """
        shape = items.schema if isinstance(items, pa.RecordBatchReader) else schema
        if shape is None:
            raise ConfigError(f"stream {name}: which columns?", remedy="give a schema")
        fields = columns_of(shape) if isinstance(shape, str) else arrow_fields(shape)
        definition = make_stream(name, fields, timestamp, **self._with_idle(options))
        return self._push(PushInput(definition, from_items(items)))

    def replay(
        self,
        name: str,
        rows: DataFrame | pa.Table,
        timestamp: str,
        *,
        speed: float | None = None,
        **options: Any,
    ) -> StreamDef:
        """Register rows at rest as a stream: in the order of `timestamp`, as fast as possible or,
        with a `speed`, so many times as fast as they happened. `history()` gives what an engine
        has kept of a stream."""
        if speed is not None and speed <= 0:
            raise ConfigError(f"stream {name}: speed must be positive", remedy="1 is real time")
        if isinstance(rows, DataFrame):
            if rows.isStreaming:
                raise ConfigError(f"stream {name}: it streams already", remedy="use stream()")
            rows = rows.toArrow()
        own = rows.select([n for n in rows.column_names if not n.startswith("__")])
        fields = arrow_fields(own.schema)
        definition = make_stream(name, fields, timestamp, **self._with_idle(options))
        table = normalized(own, fields)
        return self._push(PushInput(definition, from_table(definition, table, speed)))

    def history(
        self,
        stream: str,
        since: datetime | int | None = None,
        until: datetime | int | None = None,
    ) -> pa.Table:
        """What is kept of a stream (RETAIN says how long), in the order of time."""
        bounds = [None if t is None else instant_of(t) for t in (since, until)]
        return history(self._storage, self.session.coordinator.state, stream, *bounds)

    def heartbeat(self, stream: str, at: datetime | int) -> None:
        """Announce that no row of a stream before this time will come: queries need not wait."""
        if stream not in self.session.catalog.streams:
            known = self.session.catalog.streams
            raise UnknownName(f"unknown stream {stream}", remedy=did_you_mean(stream, known))
        source = f"heartbeat:{stream}"
        number = self._log.last_batch(source) + 1
        beats = {stream: instant_of(at)}
        self._log.append(0, (source, number), {}, {}, wall_clock(), heartbeats=beats)

    def _push(self, given: PushInput) -> StreamDef:
        return self._joins(given, self._pushes)

    def _with_idle(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"idle": self.session.default_idle, **options}

    def table(
        self, name: str, df: DataFrame | pa.Table, at: datetime | int | None = None
    ) -> TableDef:
        """Register static rows (a batch DataFrame or an Arrow table) for joining.

        A table that is known gets its next version: from the event time `at` on, by default from
        the first instant that no query has answered. While the engine runs the version is taken
        over by the next epoch, whose commit this waits for.
        """
        if isinstance(df, DataFrame):
            if df.isStreaming:
                raise ConfigError(
                    f"table {name}: the DataFrame is streaming", remedy="use engine.stream()"
                )
            df = df.toArrow()
        rows, instant = df, None if at is None else instant_of(at)
        self.session.check_table(name, rows)  # refused here, not in the middle of an epoch
        return self.at_epoch(lambda: self.session.define_table(name, rows, at=instant))

    def at_epoch(self, action: Callable[[], T]) -> T:
        """Do it now, or, while the engine runs, at the beginning of the next epoch: then this
        returns when it is committed."""
        with self._starting:
            loop = self._loop
            if loop is None:
                return action()
        try:
            return loop.between_epochs(action)
        except LoopEnded:
            with self._starting:  # one after the other
                return action()

    def _refuse_while_running(self, what: str) -> None:
        if self._loop is not None:
            raise ConfigError(
                f"cannot {what} while the engine runs",
                remedy="call stop() first",
            )
