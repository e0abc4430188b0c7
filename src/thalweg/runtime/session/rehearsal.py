"""Statements that are checked and planned while nothing runs: before a script or a request does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pyarrow as pa

from thalweg.errors import ConfigError, ThalwegError, UnknownFunction
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.jobs import Job, Result
from thalweg.plan.catalog import SourceSpec, StreamDef, TableDef
from thalweg.plan.logical import Schema
from thalweg.plan.types import to_arrow
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Session
from thalweg.runtime.sinks.factory import PlannedSinks
from thalweg.runtime.sources.files import inferred_table, list_files
from thalweg.runtime.sources.found_files import refuse_files
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.open_path import committed_state
from thalweg.runtime.state.stream_definitions import STREAM, read_stream
from thalweg.statements import Language
from thalweg.store.control import Request
from thalweg.store.storage import MemoryStorage, Storage


class PlannedSources:
    """Streams and tables by their columns alone: no rows are read. With `looks` their files must be
    there."""

    def __init__(self, core: EngineCore, *, looks: bool = False) -> None:
        self._core = core
        self._looks = looks

    def create_stream(self, definition: StreamDef) -> StreamDef:
        if self._looks and definition.source.kind == "files":
            refuse_files(definition)
        return self._core.streams.define(definition)

    def create_table(self, name: str, fields: Schema | None, source: SourceSpec) -> TableDef:
        paths = list_files(source) if self._looks or fields is None else []
        if fields is None:
            return self._core.tables.define(name, inferred_table(source, paths), source)
        empty = pa.schema([(f.name, to_arrow(f.type)) for f in fields]).empty_table()
        return self._core.tables.define(name, empty, source)

    def refresh_table(self, name: str) -> None:
        """There is nothing to read again."""

    def drop_stream(self, name: str) -> None:
        """Nothing reads it."""


class NoExecutor:
    """For engines that run nothing."""

    def run(
        self, batches: Sequence[Sequence[Job]], functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]:
        raise ConfigError("this session only explains", remedy="use thalweg run or thalweg sql")

    def aside(self, job: Job) -> Future[Result]:
        raise ConfigError("this session only explains", remedy="use thalweg run or thalweg sql")


class OverlaidStorage:
    """A path as it is, and what is written or deleted in memory alone."""

    def __init__(self, below: Storage) -> None:
        self._below = below
        self._above = MemoryStorage()
        self._deleted: set[str] = set()

    def _of(self, name: str) -> Storage:
        return self._above if self._above.exists(name) or name in self._deleted else self._below

    def write_table(self, name: str, table: pa.Table) -> int:
        return self._above.write_table(name, table)

    def read_table(self, name: str) -> pa.Table:
        return self._of(name).read_table(name)

    def create(self, name: str, data: bytes) -> bool:
        return not self.exists(name) and self._above.create(name, data)

    def read(self, name: str) -> bytes:
        return self._of(name).read(name)

    def exists(self, name: str) -> bool:
        return self._of(name).exists(name)

    def size(self, name: str) -> int:
        return self._of(name).size(name)

    def listing(self, folder: str) -> list[str]:
        below = set(self._below.listing(folder)) - self._deleted
        return sorted(below | set(self._above.listing(folder)))

    def delete(self, name: str) -> None:
        self._above.delete(name)
        self._deleted.add(name)


def plan_session(path: Storage | None = None) -> Session:
    """A session in which statements are checked and planned, and nothing runs. Of a path it knows
    the streams, tables and views."""
    state, storage = EngineState(), MemoryStorage() if path is None else OverlaidStorage(path)
    if path is not None:
        known = committed_state(path)
        state.definitions, state.tables = known.definitions, known.tables
        state.versions = known.versions
    core = EngineCore(storage, NoExecutor(), state, sinks=PlannedSinks)
    _know_streams(core)
    return Session(core, PlannedSources(core))


def _know_streams(core: EngineCore) -> None:
    """Those that Python will hand over again, too."""
    for text in core.definitions.of(STREAM).values():
        stream = read_stream(text)
        if stream is not None:
            core.streams.restore(stream)


def check_request(
    storage: Storage, language: Language, waiting: Sequence[Request], script: str, name: str | None
) -> None:
    """Refuse a request that the next engine on a path would refuse, after those that wait.

    What Python hands over is known to that engine alone: of queries that call such functions, or
    that cannot be resumed here, nothing is said.
    """
    over = OverlaidStorage(storage)
    core = EngineCore(
        over, NoExecutor(), committed_state(storage), sinks=PlannedSinks, language=language
    )
    _know_streams(core)
    session = Session(core, PlannedSources(core, looks=True))
    try:
        session.resume()
    except ThalwegError:
        return
    for request in waiting:
        with suppress(ThalwegError):
            _carry_out(session, request.script, request.query)
    with suppress(UnknownFunction):
        _carry_out(session, script, name)


def _carry_out(session: Session, script: str, name: str | None) -> Any:
    return session.sql(script) if name is None else session.query(script, name)
