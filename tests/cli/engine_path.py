"""A path with three days of results, as an engine that is gone leaves it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Session
from thalweg.runtime.settings import Settings
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.pack_rows import IngestPlan, ingest_table
from thalweg.runtime.sources.python_arguments import arrow_fields, make_stream
from thalweg.runtime.state.open_path import claim, load_state, release, sweep
from thalweg.store.pack_cache import PackCache
from thalweg.store.storage import LocalStorage
from thalweg.testing.local_executor import LocalExecutor

SECOND = 1_000_000
DAY = 86_400 * SECOND
QUERIES = {
    "each": "SELECT k FROM a",
    "grouped": "SELECT k, max(x) AS m FROM a [RANGE 2 SECONDS] GROUP BY k",
}


def rows(first: int) -> pa.Table:
    ts = pa.array([s * SECOND for s in range(first, first + 3)], pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "k": [0, 1, 0], "x": [first, 2, 3]})


class Driver:
    """What the engine does on a path, without Spark, at a clock of our own."""

    def __init__(self, path: Path) -> None:
        self.storage = LocalStorage(str(path), durable=False)
        self.lock = claim(self.storage)
        state = load_state(self.storage)
        sweep(self.storage, state)
        executor = LocalExecutor(PackCache(self.storage))
        settings = Settings(results_retain=100 * DAY)
        self.core = EngineCore(self.storage, executor, state, settings)
        self.session = Session(self.core)
        self.core.streams.define(make_stream("a", arrow_fields(rows(0).schema), "ts"))
        for name, text in QUERIES.items():
            self.session.query(text, name)
        self.log = LogWriter(self.storage, state.next_seq, state.sources)
        self.loop = self.core.driver(self.log, lambda script, name: self.session.sql(script))

    def batch(self, first: int, clock: int, *, delivered: bool = True) -> None:
        """Rows in, an epoch at the given clock, its callbacks done (or not)."""
        self.ingest(first)
        report = self.core.coordinator.epoch(self.log.take(0), clock=clock)
        if delivered:
            self.loop._epoch(report)
            self.core.coordinator.save(clock)

    def ingest(self, first: int) -> None:
        keys = self.core.plans.keys_of("a")
        plan = IngestPlan(self.session.catalog.streams["a"], keys, 0, f"log/a{first}-", 0)
        found = ingest_table(plan, rows(first), self.storage)
        self.log.append(1, ("source", first), {"a": found.packs}, {}, clock=0)

    def results(self) -> dict[str, list[dict[str, Any]]]:
        return {n: self.core.results.results(n).to_pylist() for n in QUERIES}

    def end(self) -> None:
        release(self.lock)


def snapshot(path: Path) -> dict[str, tuple[bytes, int] | None]:
    """Every file with its content and when it was last written, every folder."""
    return {
        p.relative_to(path).as_posix(): (p.read_bytes(), p.stat().st_mtime_ns)
        if p.is_file()
        else None
        for p in path.rglob("*")
    }


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out
