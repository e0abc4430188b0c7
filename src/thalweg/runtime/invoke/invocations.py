"""Invocation of a query: its answer, how much of its windows it covers, and readiness for it."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from thalweg.errors import ConfigError, QueryFailed
from thalweg.instants import format_instant
from thalweg.runtime.epoch.changes import Changes
from thalweg.runtime.invoke.instant_answers import InstantAnswers
from thalweg.runtime.invoke.materialize_modes import MaterializeModes
from thalweg.runtime.invoke.query_coverage import QueryCoverage
from thalweg.runtime.results.lookup import QueryLookup
from thalweg.runtime.results.read_stable import read_stable
from thalweg.runtime.results.results_reader import ResultsReader
from thalweg.runtime.state.query_state import FAILED, P

ATTEMPTS = 5


class Readiness(Protocol):
    """Brings a query to the state in which an answer can be given."""

    def asked(self, name: str) -> None:
        """Note that an answer is requested."""
        ...

    def catch_up(self, name: str) -> None:
        """Let a query process the past that it has not processed yet."""
        ...


class LiveReadiness:
    """Readiness in the process of the engine: epochs are run, or waited for."""

    def __init__(self, queries: QueryLookup, modes: MaterializeModes, changes: Changes) -> None:
        self._queries = queries
        self._modes = modes
        self._changes = changes

    def asked(self, name: str) -> None:
        self._modes.invoked(name)

    def catch_up(self, name: str) -> None:
        # a caller that waits for a driver does not go on without it: others may use the engine then
        advance = self._changes.wait if self._changes.is_running else self._changes.run_epoch
        if self._modes.is_uncommitted(name):
            self._changes.commit()
        while self.is_behind(name) and advance():
            pass

    def is_behind(self, name: str) -> bool:
        """Whether it still has to process the past, and is running."""
        query = self._queries.state(name)
        if not query.runs and query.definition.mode != P:  # a condition is never dormant
            return False
        is_member = self._queries.cohort(name) is not None
        return query.progress.behind or (not is_member and self._modes.is_behind(name))


class Invocations:
    """Answers of queries, with status and coverage in the schema's metadata."""

    def __init__(
        self,
        queries: QueryLookup,
        results: ResultsReader,
        answers: InstantAnswers,
        coverage: QueryCoverage,
        readiness: Readiness,
    ) -> None:
        self._queries = queries
        self._results = results
        self._answers = answers
        self._coverage = coverage
        self._readiness = readiness

    def invoke(self, name: str, at: int | None = None) -> pa.Table:
        """The current answer of a relation, or its answer at an instant."""
        name = self._queries.find(name)
        self.refuse_failed(name)
        self._readiness.catch_up(name)
        rows = self._answered(name, self._rows(name, at), at)
        covered = self._coverage.of(name, at)
        told = {"status": covered.status, "coverage": str(covered.share)}
        if covered.since is not None:
            told["since"] = format_instant(covered.since)
        return rows.replace_schema_metadata({f"thalweg.{k}": v for k, v in told.items()})

    def _answered(self, name: str, rows: pa.Table, at: int | None) -> pa.Table:
        """The rows as of the instant asked for, by default the last one that is over."""
        progress = self._queries.state(name).progress
        instant = (progress.ended or progress.frontier) - 1 if at is None else at
        answered: pa.Table = self._queries.bound(name).root.input.answered(rows, instant)
        return answered

    def _rows(self, name: str, at: int | None) -> pa.Table:
        is_member = self._queries.cohort(name) is not None
        if is_member or not self._queries.state(name).definition.mode:
            return self._results.answer(name, at).rows()
        self._readiness.asked(name)
        # how the query is answered may change meanwhile: then a newer state is committed
        return read_stable(
            lambda: self._answers.answer(name, at),
            attempts=ATTEMPTS,
            again=lambda: self._readiness.catch_up(name),
        )

    def refuse_without_output(self, name: str) -> None:
        """Refuse to read the results of a query that has failed, or that has no output."""
        self.refuse_failed(name)
        is_member = self._queries.cohort(name) is not None
        if not is_member and self._queries.state(name).definition.mode:
            raise ConfigError(
                f"query {name} answers when it is invoked",
                remedy="use invoke(); without materialize a query emits changes",
            )

    def refuse_failed(self, name: str) -> None:
        lifecycle = self._queries.state(name).lifecycle
        if lifecycle.status == FAILED:
            raise QueryFailed(
                f"query {name} failed: {(lifecycle.error or '').splitlines()[0]}",
                remedy="see Query.stats()['error'] for the full error",
            )
