"""The engine: streams and queries over one Spark session and one path."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import threading
from types import TracebackType
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from thalweg.config import Config
from thalweg.errors import (
    ConfigError,
    GroupMismatch,
    PathError,
    SourceError,
    ThalwegError,
)
from thalweg.fluent.streams import Stream, named
from thalweg.plan.catalog import Catalog
from thalweg.runtime.epoch.coordinator import Coordinator
from thalweg.runtime.epoch.driver import EpochLoop
from thalweg.runtime.epoch.listeners import Listener, Listeners
from thalweg.runtime.session.session import Callback, Query
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.push import Pusher, PushInput
from thalweg.runtime.state.clock import wall_clock
from thalweg.runtime.state.open_path import claim, load_state, release, sweep
from thalweg.spark import columns as _columns  # noqa: F401  built queries take Spark's columns
from thalweg.spark import datasource
from thalweg.spark.executor import executor_for
from thalweg.spark.ingest import (
    IngestGroup,
    StreamInput,
    check_batches,
    check_group,
    checkpoint_batch,
    checkpoint_id,
)
from thalweg.spark.inputs import Inputs
from thalweg.spark.settings import create_session, spark_log
from thalweg.spark.statements import EngineSession
from thalweg.store.storage import open_storage

T = TypeVar("T")
_LEAD = re.compile(r"^(Caused by)?: ")
_ERROR = re.compile(r"[\w.]*(Error|Exception): \S")


class Engine(Inputs):
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
        self._own_spark = spark is None or isinstance(spark, str)
        self.config = config = (Config.load() if config is None else config).given(
            path=path,
            master=spark if isinstance(spark, str) else None,
            parallelism=parallelism,
            durable=durable,
        )
        self._temporary = tempfile.mkdtemp(prefix="thalweg-") if config.path is None else None
        self.path = str(self._temporary or config.path)
        self._lock: Any = None
        lasting = config.path is not None if config.durable is None else config.durable
        storage = open_storage(self.path, lasting)
        self._lock = claim(storage)
        try:
            state = load_state(storage)
            self.spark = (
                create_session(config.master)
                if spark is None or isinstance(spark, str)
                else _classic(spark)
            )
        except BaseException:
            release(self._lock)
            self._remove_temporary()
            raise
        self.parallelism = config.parallelism or self.spark.sparkContext.defaultParallelism
        sweep(storage, state)
        self._storage = storage
        self._executor = executor_for(self.spark, storage, self.parallelism)
        coordinator = Coordinator(storage, Catalog(), self._executor, state, self.parallelism)
        coordinator.results_retain = config.results_retain
        coordinator.state_limit = config.state_limit
        coordinator.stores.enabled = config.share_windows
        self.session = EngineSession(
            coordinator,
            storage,
            default_idle=config.idle,
            function_deadline=config.user_function_deadline,
        )
        self.session.engine = self
        self.session.restore_views()
        self._log = LogWriter(storage, state.next_seq, state.sources)
        self._inputs = {}
        self._groups: dict[int, IngestGroup] = {}
        self._pushes = {}
        self._pushers: list[Pusher] = []
        self._to_start: list[IngestGroup | Pusher] = []
        self._available_now = False
        self._loop = None
        self._starting = threading.RLock()
        self._listeners = Listeners()
        self._closed = False
        datasource.register(self.spark)

    # -- streams, tables, functions ----------------------------------------------------------

    def function(self, name: str, function: Any, returns: Any = "BOOLEAN", **options: Any) -> None:
        """Register a Python function for SQL; see `Session.function`."""
        self.session.function(name, function, returns, **options)

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

    def sql(self, script: str) -> Any:
        """Run statements; returns what the last one gives."""
        return self.session.sql(script)

    def explain(self, query: str | Query) -> str:
        return self.session.explain(query)

    def share_windows(self, on: bool) -> None:
        """Whether queries keep the rows of [ROWS n] and sessions once for all of them, or each for
        itself, from the next epoch on. No row depends on it."""
        self.session.share_windows(on)

    @property
    def queries(self) -> dict[str, Query]:
        return self.session.queries

    def rejects(self, stream: str) -> pa.Table:
        """Rows of a stream that were refused, with the reason."""
        return self.session.rejects(stream)

    # -- running -----------------------------------------------------------------------------

    def add_listener(self, listener: Listener) -> None:
        """Call this with each epoch's report, in every run from now on, until it is removed.

        Listeners run in the engine's thread after the commit. One that raises is logged once and
        left out; an error in `progress`, in contrast, stops the run.
        """
        self._listeners.add(listener)

    def remove_listener(self, listener: Listener) -> None:
        self._listeners.remove(listener)

    def run(self, progress: Any = None) -> None:
        """Drain the sources, close, return. `progress` is called with each epoch's report."""
        loop = self._started(available_now=True, progress=progress)
        try:
            loop.drain(self._ingest_finished)
            self._raise_ingest_failure()
            loop.close()
        except BaseException as error:
            self._log.fail()  # ingest may be waiting for room
            raise explained(error, self.path) from error.__cause__
        finally:
            self._loop = None
            loop.end()
            self._stop_ingest()

    def start(self, progress: Any = None) -> None:
        """Run in the background until `stop()`."""
        loop = self._started(available_now=False, progress=progress)
        loop.run_in_background(self._sources_ready)

    def stop(self) -> None:
        """Stop ingest, finish the epoch under way, keep everything for the next start."""
        loop = self._loop
        self._log.stop()
        self._stop_ingest()
        if loop is not None:
            loop.stop()
            self._loop = None  # only now may changes be made without it
            self._stop_ingest()  # what the last epoch may have started
        self._log.resume()
        if loop is not None and loop.failure is not None:
            raise explained(loop.failure, self.path)
        if loop is not None:
            self._raise_ingest_failure()

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    @property
    def failure(self) -> BaseException | None:
        """What stopped a background run, if something did."""
        if self._loop is not None and self._loop.failure is not None:
            return explained(self._loop.failure, self.path)
        return self._ingest_error()

    def _started(self, *, available_now: bool, progress: Any) -> EpochLoop:
        with self._starting:  # a stream that comes meanwhile waits, and is then taken up
            loop = self._loop = self._prepared(available_now, progress)
        return loop

    def _prepared(self, available_now: bool, progress: Any) -> EpochLoop:
        self._refuse_while_running("start again")
        if self._closed:
            raise ConfigError("the engine is closed", remedy="create a new one on the same path")
        self._check_resumed_queries()
        self._groups = self._form_groups()
        self._log.resume()
        loop = EpochLoop(
            self.session,
            self._log,
            progress,
            listeners=self._listeners,
            poll_seconds=self.config.poll_seconds,
            tick_seconds=self.config.tick_seconds,
        )
        loop.after_epoch = self._start_new_inputs
        self._available_now, self._to_start = available_now, []
        loop.save_definitions()
        try:
            for group in self._groups.values():
                group.start(available_now)
            self._start_pushers()
        except BaseException as error:
            self._stop_ingest()
            raise explained(error, self.path) from error.__cause__
        return loop

    def _check_resumed_queries(self) -> None:
        """Queries of an earlier run go on by themselves once their streams are there."""
        self.session.resume_members()
        for name, query in list(self.session.coordinator.state.queries.items()):
            if name not in self.session.queries and not name.startswith("__"):
                try:
                    self.session.query(query.text, name)
                except ThalwegError as error:
                    raise ConfigError(
                        f"query {name} of an earlier run cannot go on: {error.message}",
                        remedy="register its streams, tables and functions again before starting",
                    ) from error

    def _form_groups(self) -> dict[int, IngestGroup]:
        """Known groups as recorded; streams that are new form one group more."""
        state = self.session.coordinator.state
        seen = self._log.groups_seen()
        groups: dict[int, IngestGroup] = {}
        left = dict(self._inputs)
        for number in sorted(int(n) for n in state.groups):
            recorded = state.groups[str(number)]
            names = [s["stream"] for s in recorded["streams"]]
            missing = [n for n in names if n not in left]
            if missing:
                raise GroupMismatch(
                    f"stream {missing[0]} of ingest group {number} is not registered",
                    remedy="register the same streams as before, or use another path",
                )
            group = self._group(number, [left.pop(n) for n in names])
            query_id = recorded.get("query_id") or seen.get(number)
            found = checkpoint_id(self.spark, group.checkpoint)
            check_group(number, recorded, group.description(), query_id, found)
            if query_id is not None:
                logged = self._log.last_batch(query_id)
                check_batches(number, logged, checkpoint_batch(self.spark, group.checkpoint))
            groups[number] = group
        if left:
            number = max(groups, default=0) + 1
            groups[number] = self._group(number, list(left.values()))
            state.groups[str(number)] = {"streams": groups[number].description()}
        return groups

    def _group(self, number: int, inputs: list[StreamInput]) -> IngestGroup:
        return IngestGroup(
            number,
            inputs,
            f"{self.path}/checkpoints/group-{number}",
            self._storage,
            self._log,
            self.session.coordinator.keys_of,
            self.parallelism,
        )

    # -- ingest ------------------------------------------------------------------------------

    def _start_pushers(self) -> None:
        self._pushers = [self._pusher(given) for given in self._pushes.values()]
        for pusher in self._pushers:
            pusher.start()

    def _pusher(self, given: PushInput) -> Pusher:
        return Pusher(given, self._log, self._storage, self.session.coordinator.keys_of)

    def _take_up(self, given: StreamInput | PushInput) -> None:
        """Begin to read a stream that comes while the engine runs, once it is committed."""
        if self._loop is None:
            return
        if isinstance(given, PushInput):
            self._to_start.append(self._pusher(given))
            return
        number = max(self._groups, default=0) + 1
        group = self._groups[number] = self._group(number, [given])
        self.session.coordinator.state.groups[str(number)] = {"streams": group.description()}
        self._to_start.append(group)

    def _start_new_inputs(self) -> None:
        if not self._to_start or self._loop is None:
            return
        self.session.coordinator.save(wall_clock())
        coming, self._to_start = self._to_start, []
        for one in coming:
            if isinstance(one, Pusher):
                self._pushers.append(one)
                one.start()
            elif not one.start_beside_others(self._available_now):
                # a later run need not bring what has never been read
                del self.session.coordinator.state.groups[str(one.number)]
                self.session.coordinator.save(wall_clock())

    def _ingest_finished(self) -> bool:
        if any(pusher.is_active for pusher in self._pushers):
            return False
        return all(g.query is None or not g.query.isActive for g in self._groups.values())

    def _sources_ready(self) -> bool:
        return all(g.is_ready for g in self._groups.values())

    def _stop_ingest(self) -> None:
        for pusher in self._pushers:
            pusher.stop()
        for group in self._groups.values():
            if group.query is not None and group.query.isActive:
                group.query.stop()

    def _ingest_error(self) -> BaseException | None:
        for pusher in self._pushers:
            if pusher.failure is not None:
                return pusher.failure
        for group in self._groups.values():
            error = group.failure
            if error is not None:
                return SourceError(
                    f"ingest stopped: {_cause(str(error))}",
                    remedy="mend the source; the log holds everything read so far and a new "
                    "start goes on from there",
                )
        return None

    def _raise_ingest_failure(self) -> None:
        error = self._ingest_error()
        if error is not None:
            raise error

    # -- life --------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop and release everything; a temporary path is removed."""
        if self._closed:
            return
        self._closed = True
        try:
            self.stop()
        finally:
            self._executor.close()
            release(self._lock)
            if self._own_spark:
                self.spark.stop()
                spark_log().unlink(missing_ok=True)
            self._remove_temporary()

    def _remove_temporary(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _classic(spark: Any) -> SparkSession:
    if not isinstance(spark, SparkSession) or not hasattr(spark, "_jvm"):
        raise ConfigError(
            "an engine needs a classic Spark session",
            remedy="Spark Connect can only read results; create the session without remote()",
        )
    return spark


def explained(error: BaseException, path: str) -> BaseException:
    """The same error, or one that says what to do where Python's or Java's does not."""
    text = str(error)
    if getattr(error, "errno", None) == errno.ENOSPC or _NO_SPACE in text:
        return PathError(
            f"the disk that holds {path} is full",
            remedy="make space and start again: what is committed is there, and the rest is read "
            "again",
        )
    if not type(error).__module__.startswith(("py4j", "pyspark")):
        return error
    return SourceError(
        f"Spark's workers failed: {_cause(text)}",
        remedy="see Spark's log; a new start goes on from what is committed",
    )


_NO_SPACE = "No space left on device"


def _cause(text: str) -> str:
    """The line of a Spark error that says what happened: our own refusal, or the last error."""
    lines = [_LEAD.sub("", line.strip()) for line in text.splitlines()]
    ours = [line.split(": ", 1)[1] for line in lines if line.startswith("thalweg.errors.")]
    vague = (
        "PythonException", "Py4JJavaError", "Py4JError", "StreamingQueryException",
        "SocketException", "EOFException",
    )  # fmt: skip
    errors = [line for line in lines if _ERROR.match(line) and not any(v in line for v in vague)]
    return next(iter([*ours[-1:], *errors[-1:], *lines[:1], "unknown"]))
