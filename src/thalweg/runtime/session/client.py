"""Working with an engine from another process, through its path alone.

What only reads (SHOW, EXPLAIN, INVOKE, results) is answered from what is committed, whether an
engine runs or not. What changes something is written to the control log; the engine that runs on
the path makes the change between two epochs, one that is started later does it then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from thalweg import errors
from thalweg.errors import ConfigError, ThalwegError
from thalweg.features import LANGUAGE
from thalweg.instants import instant_of
from thalweg.runtime.results.read_stable import read_stable
from thalweg.runtime.session.committed_reader import CommittedReader
from thalweg.runtime.session.rehearsal import check_request
from thalweg.runtime.state.open_path import owner, refuse_foreign
from thalweg.statements import Effect, Language, parse
from thalweg.statements.run import run_reads
from thalweg.store import control
from thalweg.store.storage import Storage, open_storage

T = TypeVar("T")
ATTEMPTS = 5


def connect(path: str | Path) -> Client:
    """A client of the engine that lives, or lived, on a path."""
    storage = open_storage(str(path))
    refuse_foreign(storage)
    return Client(storage)


@dataclass(slots=True)
class Receipt:
    """A request that is written down. It is carried out even if its result is not waited for."""

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

    def __init__(self, storage: Storage, language: Language = LANGUAGE) -> None:
        self.storage = storage
        self.language = language

    @property
    def is_running(self) -> bool:
        """Whether an engine has the path open (on this host, as far as can be told)."""
        return owner(self.storage) is not None

    def sql(self, script: str, timeout: float = 30.0) -> Any:
        """Run statements. Those that change something are waited for if an engine runs; without
        one they stay in the control log, and a `Receipt` is returned."""
        statements = parse(script, self.language)
        reads = [s.effect is Effect.READ for s in statements]
        if statements and all(reads):
            return self._reading(lambda reader: run_reads(statements, reader.reading, script))
        if any(reads):
            raise ConfigError(
                "a script either reads or changes something",
                remedy="send SHOW, EXPLAIN and INVOKE by themselves",
            )
        return self._changing(self.submit(script), timeout)

    def query(self, sql: str, name: str, timeout: float = 30.0) -> Any:
        """Register a continuous query; see `sql`."""
        return self._changing(self.submit(sql, name), timeout)

    def submit(self, script: str, name: str | None = None) -> Receipt:
        """Write a request down without waiting for it. If no engine runs that could refuse it, it
        is checked before."""
        if not self.is_running:
            waiting = list(control.waiting(self.storage))
            check_request(self.storage, self.language, waiting, script, name)
        return Receipt(self.storage, control.submit(self.storage, script, name))

    def _changing(self, receipt: Receipt, timeout: float) -> Receipt | None:
        if not self.is_running:
            return receipt
        receipt.result(timeout)
        return None

    def invoke(self, name: str, at: datetime | int | None = None) -> pa.Table:
        """The answer of a query as far as it is committed, now or at an instant."""
        moment = None if at is None else instant_of(at)
        return self._reading(lambda reader: reader.reading.invoke(name, moment))

    def results(self, name: str) -> pa.Table:
        """What a query has emitted and is still kept."""
        return self._reading(lambda reader: reader.results(name))

    def queries(self) -> pa.Table:
        """All queries with their status."""
        found: pa.Table = self.sql("SHOW QUERIES")
        return found

    def _reading(self, look: Callable[[CommittedReader], T]) -> T:
        """Look at a committed state. Files may go while we look: then there is a newer one."""
        return read_stable(
            lambda: look(CommittedReader(self.storage, self.language)),
            attempts=ATTEMPTS,
            again=lambda: None,
        )
