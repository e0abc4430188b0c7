"""The engine without Spark: the same statements, epochs and store, in this process.

`Runner` exists to force what Spark would leave to chance: where the input is cut into epochs, how
many buckets there are, when plans switch, when the process restarts. Output must not depend on any
of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.adapt.adaptation import Adaptation
from thalweg.features import LANGUAGE
from thalweg.fluent.streams import Stream, named
from thalweg.instants import instant_of
from thalweg.plan.catalog import Catalog, StreamDef, TableDef
from thalweg.runtime.epoch.coordinator import EpochReport
from thalweg.runtime.epoch.frontiers import Close
from thalweg.runtime.lifecycle.backfill import Pace
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Callback, Query, Session
from thalweg.runtime.session.surface import Surface
from thalweg.runtime.session.sweeps.parameters import Row
from thalweg.runtime.session.sweeps.sweep import over_kept_rows
from thalweg.runtime.settings import Settings
from thalweg.runtime.sources.given_rows import arrow_table, as_records
from thalweg.runtime.sources.malformed_records import Records
from thalweg.runtime.sources.pack_rows import IngestPlan, ingest_table
from thalweg.runtime.sources.python_arguments import Duration, arrow_fields, make_stream, normalized
from thalweg.runtime.state.open_path import committed_state
from thalweg.statements import Language
from thalweg.store import manifest
from thalweg.store.log import LogEntry, commit_entry
from thalweg.store.pack_cache import PackCache
from thalweg.store.storage import MemoryStorage, Storage
from thalweg.testing.forced_switches import switch_plans
from thalweg.testing.local_executor import LocalExecutor
from thalweg.testing.restless import restless_kinds


class Runner(Surface):
    """Continuous queries over Arrow tables, in process.

    Parameters
    ----------
    epochs
        How many epochs the input is cut into (evenly), or, per stream name, the row numbers at
        which it is cut.
    buckets
        Into how many tasks each routed query is split.
    switches
        A seed: before every epoch all filter and pipeline orders, and the subresults that joins
        keep, are drawn anew.
    restarts
        Epochs (counted from 1) after which the driver is torn down and opened again.
    slice_rows
        About how many rows of the past a query that lies behind goes through in an epoch.
    share_from
        How many queries that only filter a stream run each by itself before others share.
    gather_from
        After how many epochs with output of a query that is gathered.
    epoch_rows
        About how many rows an epoch takes through a query at most.
    costs
        Cost per evaluation of a predicate, by its text; `Query.stats()` then reports the total.
    """

    strict = True
    """Whether an error in adapting is raised; an engine would go on without it."""

    def __init__(
        self,
        epochs: int | Mapping[str, Sequence[int]] = 1,
        buckets: int = 1,
        switches: int | None = None,
        *,
        restarts: Sequence[int] = (),
        costs: Mapping[str, float] | None = None,
        slice_rows: int = 500_000,
        share_from: int | None = None,
        gather_from: int | None = None,
        epoch_rows: int | None = None,
        storage: Storage | None = None,
        language: Language = LANGUAGE,
    ) -> None:
        self.epochs = epochs
        self.buckets = buckets
        self.restarts = set(restarts)
        self.costs = dict(costs or {})
        self.slice_rows = slice_rows
        self.share_from = share_from
        self.gather_from = gather_from
        self.epoch_rows = epoch_rows
        self.storage = storage or MemoryStorage()
        self.reports: list[EpochReport] = []
        self.language = language
        self._random = None if switches is None else random.Random(switches)
        self._tables: dict[str, pa.Table] = {}
        self.clock = 0
        """The clock reading (µs) of the last epoch."""
        manifest.check_format(self.storage)
        self.core = self._opened(Catalog())
        super().__init__(Session(self.core))

    def _opened(self, catalog: Catalog) -> EngineCore:
        state = committed_state(self.storage)
        state.incarnation += 1
        settings = Settings(tasks=self.buckets, strict=self.strict)
        if self.share_from is not None:
            settings.share_from = self.share_from
        if self.gather_from is not None:
            settings.compact_from = self.gather_from
        if self.epoch_rows is not None:
            settings.epoch_rows = self.epoch_rows
        adaptation = Adaptation(self.costs)
        if self._random is not None:
            kinds = restless_kinds(self._random.randrange(1 << 30))
            adaptation = Adaptation(self.costs, kinds=kinds)
        return EngineCore(
            self.storage,
            LocalExecutor(PackCache(self.storage)),
            state,
            settings,
            catalog=catalog,
            adaptation=adaptation,
            pace=Pace(self.slice_rows, fixed=True),
            language=self.language,
        )

    # -- the surface of Engine ---------------------------------------------------------------

    def stream(
        self,
        name: str,
        table: Any,
        timestamp: str | None = "ts",
        *,
        lateness: Duration = 0,
        **options: Any,
    ) -> StreamDef:
        """A stream whose rows arrive in the order of the table (of Arrow, pandas or polars)."""
        table = arrow_table(table, f"stream {name}")
        fields = arrow_fields(table.schema)
        definition = make_stream(name, fields, timestamp, lateness=lateness, **options)
        self._tables[name] = normalized(table, fields)
        return self.core.streams.define(definition)

    def table(self, name: str, table: Any, at: int | None = None) -> TableDef:
        """A table, or its next version from the instant `at` (µs) on."""
        return self.core.tables.define(name, arrow_table(table, f"table {name}"), at=at)

    def query(self, sql: str, name: str | None = None, callback: Callback | None = None) -> Query:
        return self.session.query(sql, name, callback)

    def __getitem__(self, name: str) -> Stream:
        """The stream, table, view or query of this name, to build on in Python."""
        return named(self, name)

    def sweep(self, sql: str, parameters: Sequence[Row] | pa.Table) -> pa.Table:
        """One query with many parameters (`:name` in its text), over all rows that are kept and
        those that have not been fed yet: what each emits, with its parameters."""
        arrived = {}
        for name, table in self._tables.items():
            definition = self.core.catalog.streams[name]
            plan = IngestPlan(definition, (), self.clock, f"sweep/{name}-", 0)
            arrived[name] = ingest_table(plan, table, self.storage).packs
        return over_kept_rows(self.core, sql, parameters, arrived)

    @property
    def queries(self) -> Mapping[str, Query]:
        return self.session.queries

    def run(
        self, before_epoch: Callable[[int], object] | None = None, *, final: bool = False
    ) -> None:
        """Feed everything epoch by epoch, then close. `before_epoch` is called with each number of
        a feeding, and with the one after the last before the close. With `final` time goes on until
        every window that time empties is empty."""
        pieces = {n: self.pieces(n) for n in self._tables}
        count = self.feedings
        for i in range(count + 1):
            if before_epoch is not None:
                before_epoch(i)
            if i == count:
                break
            batch = {n: p[i] for n, p in pieces.items() if i < len(p) and p[i].num_rows}
            self.feed(batch)
        self.close(final=final)
        self._tables.clear()

    @property
    def feedings(self) -> int:
        """Into how many epochs `run` cuts the input."""
        return max((len(self.pieces(n)) for n in self._tables), default=0)

    # -- finer control -----------------------------------------------------------------------

    def feed(self, batch: Mapping[str, Any]) -> EpochReport | None:
        """One epoch over the given rows: per stream an Arrow table, or what `Engine.feed` takes."""
        return self.epoch([self.entry(batch)])

    def close(self, *, final: bool = False) -> EpochReport | None:
        return self.epoch([], close=Close.FINAL if final else Close.SETTLED)

    def heartbeat(self, stream: str, at: datetime | int) -> EpochReport | None:
        """Announce that no row of a stream before this time will arrive."""
        seq, source = self.core.state.next_seq, ("runner", self.core.state.next_seq)
        beats = {self.core.catalog.streams[stream].name: instant_of(at)}
        entry = LogEntry(seq, 0, source, {}, {}, self.clock, beats)
        commit_entry(self.storage, entry)
        return self.epoch([entry])

    def tick(self, clock: int) -> EpochReport | None:
        """Time passes without data: an epoch at the given clock reading (µs)."""
        self.clock = clock
        return self.epoch([], live=True)

    def resume(self) -> None:
        """Let the queries of an earlier run on the same storage go on, once their streams are
        there."""
        self.session.resume()

    def restart(self) -> None:
        """Tear the driver down and open it again from what is stored."""
        old = self.core
        for name in old.queries.queries:
            old.catalog.views.pop(name, None)
        self.core = self._opened(old.catalog)
        self.core.functions.code.update(old.functions.code)
        for name, table in old.catalog.tables.items():  # what was not committed is lost
            changes = self.core.tables.versions.changes(name)
            old.catalog.tables[name] = replace(table, changes=changes)
        self.session = Session(self.core, commands=self.session.commands)
        held = old.queries.queries
        self.session.resume({n: q.callback for n, q in held.items() if q.callback is not None})
        for name, query in held.items():
            if name not in self.core.queries.queries:
                self.session.query(query.text, name, query.callback)
            self.core.queries.keep(query)

    def epoch(self, entries: list[LogEntry], **how: Any) -> EpochReport | None:
        """One epoch over committed entries (`close` and `live` as in the coordinator)."""
        if self._random is not None:
            switch_plans(self.core, self._random)
        last: EpochReport | None = None
        while True:
            report = self.core.coordinator.epoch(entries, clock=self.clock, **how)
            if report is not None:
                last = report
                self.reports.append(report)
                self.core.delivery.deliver(insist=True)
                if report.epoch in self.restarts:
                    self.restart()
            if not self.core.scheduler.is_short:
                return last
            entries, how = [], {}  # rows that the epoch had no room for

    def pieces(self, name: str) -> list[pa.Table]:
        """The rows of a stream, cut into those that `run` feeds in each epoch."""
        table = self._tables[name]
        if isinstance(self.epochs, int):
            n = max(self.epochs, 1)
            points = [table.num_rows * i // n for i in range(n + 1)]
        else:
            points = [0, *self.epochs.get(name, ()), table.num_rows]
        return [table.slice(a, b - a) for a, b in pairwise(points)]

    def entry(self, batch: Mapping[str, Any]) -> LogEntry:
        """Ingest the rows: packs written, the log entry committed, no epoch yet."""
        state, seq = self.core.state, self.core.state.next_seq
        packs, rejects = {}, {}
        for name, given in batch.items():
            definition = self.core.catalog.streams[name]
            exact = isinstance(given, pa.Table)
            records = Records(given) if exact else as_records(given, definition.fields)
            clock = max(self.clock, state.clock)
            plan = IngestPlan(
                definition, self.core.plans.keys_of(name), clock, f"log/r{seq}-{name}-", seq
            )
            found = ingest_table(plan, records.table, self.storage, records.malformed)
            packs[name] = tuple(found.packs)
            rejects[name] = tuple(found.rejects)
        entry = LogEntry(seq, 0, ("runner", seq), packs, rejects, self.clock)
        commit_entry(self.storage, entry)
        return entry

    def cost(self, name: str) -> float:
        """Total injected cost of a query's predicate evaluations."""
        counts = self.core.state.queries[name].operators.counts
        return float(
            np.sum([c * counts.get(f"evaluations:{p}", 0) for p, c in self.costs.items()] or [0.0])
        )
