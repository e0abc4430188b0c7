"""An engine's loop without a source, and rows that are brought to it."""

from __future__ import annotations

import time

import pyarrow as pa

from thalweg.runtime.epoch.driver import EpochDriver
from thalweg.runtime.epoch.listeners import Listeners
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Session
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.pack_rows import IngestPlan, ingest_table
from thalweg.runtime.sources.python_arguments import arrow_fields, make_stream
from thalweg.runtime.state.engine_state import EngineState
from thalweg.store.pack_cache import PackCache
from thalweg.store.storage import MemoryStorage
from thalweg.testing.local_executor import LocalExecutor

SECOND = 1_000_000


def rows(*seconds: int, x: int = 1) -> pa.Table:
    ts = pa.array([s * SECOND for s in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "x": [x] * len(seconds)})


def looping(listeners: Listeners, **settings: float) -> tuple[EpochDriver, LogWriter]:
    storage = MemoryStorage()
    executor = LocalExecutor(PackCache(storage))
    core = EngineCore(storage, executor, EngineState())
    session = Session(core)
    core.streams.define(make_stream("a", arrow_fields(rows(1).schema), "ts"))
    session.query("SELECT x FROM a", "q")
    log = LogWriter(storage, 0, {})
    run = lambda script, name: session.sql(script)  # noqa: E731
    return core.driver(log, run, listeners=listeners, **settings), log


def bring(loop: EpochDriver, log: LogWriter, batch: int, began_ago: float | None = None) -> None:
    stream = make_stream("a", arrow_fields(rows(1).schema), "ts")
    plan = IngestPlan(stream, (), 0, f"log/{batch}-", 0)
    found = ingest_table(plan, rows(batch + 1), log.storage)
    begun = None if began_ago is None else time.perf_counter() - began_ago
    log.append(1, ("s", batch), {"a": found.packs}, {}, 0, begun)
