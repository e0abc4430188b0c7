"""Working with an engine from another process, through its path alone.

What only reads (SHOW, EXPLAIN, INVOKE, results) is answered from what is committed, whether an
engine runs or not. What changes something is written to the control log; the engine that runs on
the path makes the change between two epochs, one that is started later does it then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from thalweg import errors
from thalweg.errors import ConfigError, ThalwegError, UnknownName, did_you_mean
from thalweg.exec.expressions import UserFunction
from thalweg.exec.jobs import Job, Result
from thalweg.lang import ast
from thalweg.lang.parser import parse
from thalweg.plan.catalog import Catalog, TableDef, ViewDef
from thalweg.plan.logical import instant_of
from thalweg.plan.query import SinkSpec
from thalweg.runtime.epoch.coordinator import Coordinator
from thalweg.runtime.session.session import Query, Session
from thalweg.runtime.sinks.sinks import FunctionSink, Sink
from thalweg.runtime.sources.python_arguments import arrow_fields
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.open_path import owner, refuse_foreign
from thalweg.runtime.state.stream_definitions import STREAM, read_stream
from thalweg.store import control, manifest
from thalweg.store.storage import Storage, open_storage

T = TypeVar("T")
ATTEMPTS = 5
LOOKS = "a client only looks at what is committed"
READS = (ast.Show, ast.Explain, ast.Invoke)


def connect(path: str | Path) -> Client:
    """A client of the engine that lives, or lived, on a path."""
    storage = open_storage(str(path))
    refuse_foreign(storage)
    return Client(storage)


@dataclass(slots=True)
class Receipt:
    """A request that is written down. It will be carried out even if nobody waits for it."""

    storage: Storage
    request: control.Request

    def result(self, timeout: float = 30.0) -> None:
        """Wait until it is carried out and committed; raises what it was refused with."""
        until = time.monotonic() + timeout
        while (found := control.answered(self.storage, self.request.name)) is None:
            if time.monotonic() > until:
                raise ConfigError(
                    f"no engine has answered for {timeout:g} seconds",
                    remedy="the request stays in the control log and is carried out by the next "
                    "engine on this path",
                )
            time.sleep(0.02)
        if "error" in found:
            kind = getattr(errors, found.pop("error"), ThalwegError)
            raise kind(found.pop("message"), **found)


class Client:
    """`sql` for everything; `query`, `invoke` and `results` for what is most common."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    @property
    def is_running(self) -> bool:
        """Whether an engine has the path open (on this host, as far as can be told)."""
        return owner(self.storage) is not None

    def sql(self, script: str, timeout: float = 30.0) -> Any:
        """Run statements. Those that change something are waited for if an engine runs; without
        one they stay in the control log, and a `Receipt` is returned."""
        statements = parse(script)
        if statements and all(isinstance(s, READS) for s in statements):
            return self._reading(lambda session: session.sql(script))
        if any(isinstance(s, READS) for s in statements):
            raise ConfigError(
                "a script either reads or changes something",
                remedy="send SHOW, EXPLAIN and INVOKE by themselves",
            )
        return self._changing(self.submit(script), timeout)

    def query(self, sql: str, name: str, timeout: float = 30.0) -> Any:
        """Register a continuous query; see `sql`."""
        return self._changing(self.submit(sql, name), timeout)

    def submit(self, script: str, name: str | None = None) -> Receipt:
        """Write a request down without waiting for it."""
        return Receipt(self.storage, control.submit(self.storage, script, name))

    def _changing(self, receipt: Receipt, timeout: float) -> Receipt | None:
        if not self.is_running:
            return receipt
        receipt.result(timeout)
        return None

    def invoke(self, name: str, at: datetime | int | None = None) -> pa.Table:
        """The answer of a query as far as it is committed, now or at an instant."""
        moment = None if at is None else instant_of(at)
        return self._reading(lambda session: session.known_query(name).invoke(moment))

    def results(self, name: str) -> pa.Table:
        """What a query has emitted and is still kept."""
        return self._reading(lambda session: session.known_query(name).results())

    def queries(self) -> pa.Table:
        """All queries with their status."""
        found: pa.Table = self.sql("SHOW QUERIES")
        return found

    def _reading(self, look: Callable[[Session], T]) -> T:
        """Look at a committed state. Files may go while we look: then there is a newer one."""
        for attempt in range(ATTEMPTS):
            session = Looking.at(self.storage)
            try:
                return look(session)
            except FileNotFoundError:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError


@dataclass(frozen=True, slots=True)
class NoExecutor:
    """For sessions that run nothing; `why` says so to whoever tries."""

    why: str

    def run(
        self, batches: Sequence[Sequence[Job]], functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]:
        raise ConfigError(self.why)

    def aside(self, job: Job) -> Future[Result]:
        raise ConfigError(self.why)


class Looking(Session):
    """A session over a committed state that is never changed. Queries are bound when asked for."""

    @staticmethod
    def at(storage: Storage) -> Looking:
        epoch, saved = manifest.load(storage)
        state = EngineState.from_json(saved)
        state.epoch = epoch
        catalog = Catalog()
        for key, text in state.definitions.items():
            stream = read_stream(text) if key.startswith(STREAM) else None
            if stream is not None:
                catalog.streams[stream.name] = stream
        for name, packs in state.tables.items():
            schema = storage.read_table(packs[0].name).schema
            own = pa.schema([f for f in schema if not f.name.startswith("__")])
            changes = len(state.versions.get(name, ())) > 1
            catalog.tables[name] = TableDef(name, arrow_fields(own), changes=changes)
        coordinator = Coordinator(storage, catalog, NoExecutor(LOOKS), state, 1)
        coordinator.committed = saved
        session = Looking(coordinator, storage)
        session.restore_views()
        return session

    def known_query(self, name: str) -> Query:
        texts = self.coordinator.state.texts()
        texts |= {n: m.text for n, m in self.members.by_name.items()}
        if name not in texts:
            alike = (n for n in texts if n.lower() == name.lower())
            name = next(alike, name)
        if name not in texts:
            raise UnknownName(f"unknown query {name}", remedy=did_you_mean(name, texts))
        if name not in self.queries:
            for other, text in texts.items():  # it may read any of them
                self.catalog.views.setdefault(other, ViewDef(other, text))
            self.catalog.views.pop(name, None)
            self.query(texts[name], name)
        return self.queries[name]

    def make_sink(self, query: Query, spec: SinkSpec) -> Sink:
        return FunctionSink(lambda _: None)

    def catch_up(self, name: str) -> None:
        """What is committed is all there is."""

    def _covered(self, name: str) -> str | None:
        return str(self.known_query(name).coverage)
