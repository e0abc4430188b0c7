"""The engine: streams and queries over one Spark session and one path."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from thalweg.config import Config
from thalweg.errors import ConfigError
from thalweg.fluent.streams import Stream, named
from thalweg.plan.catalog import StreamDef, TableDef
from thalweg.runtime.epoch.listeners import Listener, Listeners
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.query_commands import QueryCommands
from thalweg.runtime.session.session import Callback, Query, Session
from thalweg.runtime.session.surface import Surface
from thalweg.runtime.session.sweeps.sweep import over_kept_rows
from thalweg.runtime.settings import Settings
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.python_arguments import Duration
from thalweg.runtime.state.clock import wall_clock
from thalweg.runtime.state.open_path import load_state, sweep
from thalweg.spark import columns as _columns  # noqa: F401  built queries take Spark's columns
from thalweg.spark import datasource
from thalweg.spark.batch.batch import Batch
from thalweg.spark.engine_runs import EngineRuns
from thalweg.spark.executor import executor_for
from thalweg.spark.follow import followed_stream
from thalweg.spark.ingest_groups import IngestGroups
from thalweg.spark.settings import active_session, create_session, spark_log
from thalweg.spark.sinks import SparkSinks
from thalweg.spark.stream_inputs import StreamInputs
from thalweg.spark.working_path import WorkingPath


class Engine(Surface):
    """Runs continuous queries in one shared pipeline of micro-batches.

    Parameters
    ----------
    spark
        A classic Spark session, or None: a local one is created (and stopped with the engine).
        A string is taken as a master URL.
    path
        Where log, state and results live; None uses a temporary directory that is removed.
    parallelism
        Tasks per epoch; by default the session's default parallelism.
    durable
        Force local files to disk before they count, so that they survive a power failure and not
        only the death of processes; by default so for a given path, not for a temporary one.
    config
        All settings, these among them; by default from `thalweg.toml` and the environment (see
        `Config.load`). Arguments given here win.

    Examples
    --------
    >>> with Engine() as engine:                                     # doctest: +SKIP
    ...     engine.stream("trades", df, timestamp="ts", lateness="1 second")
    ...     q = engine.query("SELECT sym, price FROM trades WHERE price > 100")
    ...     engine.run()
    ...     q.results()
    """

    def __init__(
        self,
        spark: SparkSession | str | None = None,
        path: str | os.PathLike[str] | None = None,
        parallelism: int | None = None,
        *,
        durable: bool | None = None,
        config: Config | None = None,
    ) -> None:
        given = active_session(spark) if spark is None or isinstance(spark, str) else spark
        self._own_spark = given is None
        self.config = config = (Config.load() if config is None else config).given(
            path=path,
            master=spark if isinstance(spark, str) else None,
            parallelism=parallelism,
            durable=durable,
        )
        self._home = WorkingPath(config.path, config.durable)
        self.path, storage = self._home.path, self._home.storage
        try:
            self._home.claim()
            state = load_state(storage)
            self.spark = create_session(config.master) if given is None else _classic(given)
        except BaseException:
            self._home.release()
            self._home.remove_temporary()
            raise
        self.parallelism = config.parallelism or self.spark.sparkContext.defaultParallelism
        sweep(storage, state)
        self._executor = executor_for(self.spark, storage, self.parallelism)
        self.core = EngineCore(
            storage,
            self._executor,
            state,
            _settings(config, self.parallelism),
            clock=wall_clock,
            sinks=partial(SparkSinks, self.spark),
        )
        log = LogWriter(storage, state.next_seq, state.sources)
        ingest = IngestGroups(
            self.spark, storage, state, log, self.path, self.core.plans.keys_of,
            self.parallelism, lambda: self.core.coordinator.save(wall_clock()),
        )  # fmt: skip
        self._inputs = StreamInputs(self.spark, self.core, ingest, log)
        follow = partial(followed_stream, self.spark, self.core, self.path)
        super().__init__(Session(self.core, self._inputs, QueryCommands(follow)))
        self.queries: Mapping[str, Query] = self.session.queries
        self.batch = Batch(self.spark, self.core, self._inputs.frames)
        self._listeners = Listeners()
        self._runs = EngineRuns(
            self.core, self.session, ingest, log, self._listeners, config, self.path,
            is_temporary=self._home.is_temporary,
        )  # fmt: skip
        datasource.register(self.spark)

    # -- streams, tables, functions ----------------------------------------------------------

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
        order rows may come. Further options: unit, idle, ahead, order_by, unique, and
        behind: how far rows come behind those of other streams at most, by their names.
        """
        return self._inputs.stream(
            name, df, timestamp, lateness=lateness, key=key, retain=retain, **options
        )

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
        `pyarrow.RecordBatchReader`; each item is a row as a dictionary, a list of such, an Arrow,
        pandas or polars frame, or a `Heartbeat`; one frame may also be given by itself. What does
        not fit the columns is a reject that names the column. `schema` is an Arrow schema or SQL
        columns such as `"sym STRING, price DOUBLE, ts TIMESTAMP"`. After a restart a function is
        called again and the items taken in before are skipped.
        """
        return self._inputs.feed(name, items, schema, timestamp, **options)

    def replay(
        self,
        name: str,
        rows: Any,
        timestamp: str,
        *,
        speed: float | None = None,
        **options: Any,
    ) -> StreamDef:
        """Register rows at rest (a batch DataFrame, an Arrow table, a pandas or polars frame) as a
        stream: in the order of `timestamp`, as fast as possible or,
        with a `speed`, so many times as fast as they happened. `history()` gives what an engine
        has kept of a stream."""
        return self._inputs.replay(name, rows, timestamp, speed=speed, **options)

    def history(
        self,
        stream: str,
        since: datetime | int | None = None,
        until: datetime | int | None = None,
    ) -> pa.Table:
        """What is kept of a stream (RETAIN says how long), in the order of time."""
        return self._inputs.history(stream, since, until)

    def heartbeat(self, stream: str, at: datetime | int) -> None:
        """Announce that no row of a stream before this time will come: queries need not wait."""
        self._inputs.heartbeat(stream, at)

    def table(self, name: str, df: Any, at: datetime | int | None = None) -> TableDef:
        """Register static rows (a batch DataFrame, an Arrow table, a pandas or polars frame) for
        joining.

        A DataFrame stays one for `batch`; its rows are collected when a continuous query, or
        anything else that does not run in Spark, first reads the table.

        A table that is known gets its next version: from the event time `at` on, by default from
        the first instant that no query has answered. While the engine runs the version is taken
        over by the next epoch, whose commit this waits for.
        """
        return self._inputs.table(name, df, at)

    # -- queries -----------------------------------------------------------------------------

    def query(self, sql: str, name: str | None = None, callback: Callback | None = None) -> Query:
        """Register a continuous query.

        `callback` is called with each epoch's output after it is committed, at least once. While
        the engine runs this returns when the epoch that begins with the new query is committed.
        """
        return self.session.query(sql, name, callback)

    def __getitem__(self, name: str) -> Stream:
        """The stream, table, view or query of this name, to build on in Python."""
        return named(self, name)

    def sweep(self, sql: str, parameters: Sequence[Mapping[str, Any]] | pa.Table) -> pa.Table:
        """One query with many parameters over the rows that are kept of its streams (RETAIN):
        `:name` in its text stands for a constant, a duration or a bound. Returns what each emits,
        with its parameters as columns. What they have in common is computed once."""
        return over_kept_rows(self.core, sql, parameters)

    def share_windows(self, on: bool) -> None:
        """Whether queries keep the rows of [ROWS n] and sessions once for all of them, or each for
        itself, from the next epoch on. No row depends on it."""
        self.session.share_windows(on)

    # -- running -----------------------------------------------------------------------------

    def add_listener(self, listener: Listener) -> None:
        """Call this with each epoch's report, in every run from now on, until it is removed.

        Listeners run in the engine's thread after the commit. One that raises is logged once and
        left out; an error in `progress`, in contrast, stops the run.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def run(self, progress: Any = None, *, final: bool | None = None) -> None:
        """Read all that the sources have, answer it, return. `progress` is called with each epoch's
        report.

        Every instant up to the largest event time is answered, and the SLIDE boundary or the end of
        the session after it. With `final` time goes on until every window that time empties is
        empty, so that a sliding window shows its last rows until they have left. By default that is
        so for a temporary path; on a path that was given the end is left open for the next run,
        because rows older than what was answered are late.
        """
        self._runs.run(progress, final)

    def start(self, progress: Any = None) -> None:
        """Run in the background until `stop()`."""
        self._runs.start(progress)

    def stop(self) -> None:
        """Stop ingest, finish the epoch under way, keep everything for the next start."""
        self._runs.stop()

    @property
    def is_running(self) -> bool:
        return self.core.changes.is_running and self.failure is None

    @property
    def failure(self) -> BaseException | None:
        """What stopped a background run, if something did."""
        return self._runs.failure

    # -- life --------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop and release everything; a temporary path is removed."""
        if self._runs.is_closed:
            return
        self._runs.is_closed = True
        try:
            self.stop()
        finally:
            self.batch.close()
            self._executor.close()
            self._home.release()
            if self._own_spark:
                self.spark.stop()
                spark_log().unlink(missing_ok=True)
            self._home.remove_temporary()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _settings(config: Config, tasks: int) -> Settings:
    return Settings(
        tasks=tasks,
        results_retain=config.results_retain,
        state_limit=config.state_limit,
        share_windows=config.share_windows,
        default_idle=config.idle,
        function_deadline=config.user_function_deadline,
    )


def _classic(spark: Any) -> SparkSession:
    if not isinstance(spark, SparkSession) or not hasattr(spark, "_jvm"):
        raise ConfigError(
            "an engine needs a classic Spark session",
            remedy="Spark Connect can only read results; create the session without remote()",
        )
    return spark
