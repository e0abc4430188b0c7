"""Reports say what an epoch did; listeners hear of it and cannot do harm."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from thalweg.runtime.epoch.driver import EpochDriver
from thalweg.runtime.epoch.listeners import Listeners
from thalweg.runtime.epoch.report import EpochReport
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Session
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.pack_rows import IngestPlan, ingest_table
from thalweg.runtime.sources.python_arguments import arrow_fields, make_stream
from thalweg.runtime.state import committer
from thalweg.runtime.state.engine_state import EngineState
from thalweg.store.packs import PackCache
from thalweg.store.storage import MemoryStorage
from thalweg.testing.local_executor import LocalExecutor
from thalweg.testing.runner import Runner

SECOND = 1_000_000


def rows(*seconds: int, x: int = 1) -> pa.Table:
    ts = pa.array([s * SECOND for s in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "x": [x] * len(seconds)})


# -- reports -----------------------------------------------------------------------------------


def test_what_was_refused_is_counted_by_name() -> None:
    runner = Runner()
    for name in "ab":
        runner.stream(name, rows(1), ahead="1 hour")
    runner.query("SELECT 10 / x AS y FROM a", "risky")
    runner.query("SELECT x FROM b", "safe")
    first = runner.feed({"a": rows(5, 6, x=0), "b": rows(5, 6)})
    second = runner.feed({"a": rows(1, 7), "b": rows(1, 2, 7, 99_999)})
    assert first is not None
    assert second is not None
    assert (first.late_by_stream, first.rejected_by_stream) == ({}, {})
    assert first.rejected_by_query == {"risky": 1}
    assert second.late_by_stream == {"a": 1, "b": 2}
    assert second.rejected_by_stream == {"b": 1}
    assert second.rejected_by_query == {"risky": 1}
    assert (second.late, second.rejected) == (3, 1)


def test_state_bytes_are_those_of_the_stats() -> None:
    runner = Runner()
    runner.stream("a", rows(1))
    query = runner.query("SELECT x, count(*) AS n FROM a [RANGE 60 SECONDS] GROUP BY x", "q")
    seen = []
    for first in range(0, 30, 3):
        report = runner.feed({"a": rows(first, first + 1, first + 2, x=first)})
        assert report is not None
        stats = query.stats()
        kept = stats["streams"]["a"]["kept_bytes"] + stats["state_bytes"]
        assert report.state_bytes == kept
        seen.append(kept)
    assert stats["state_bytes"] > 0
    assert seen[-1] > seen[0] > 0


def test_time_in_the_commit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = committer.commit_manifest

    def slow(*args: Any) -> None:
        time.sleep(0.05)
        real(*args)

    runner = Runner()
    runner.stream("a", rows(1))
    runner.query("SELECT x FROM a", "q")
    monkeypatch.setattr(committer, "commit_manifest", slow)
    report = runner.feed({"a": rows(1, 2)})
    assert report is not None
    assert 0.05 <= report.commit_seconds <= report.seconds - report.step_seconds


def test_a_report_is_plain_json() -> None:
    runner = Runner()
    runner.stream("a", rows(1))
    runner.query("SELECT x FROM a", "q")
    report = runner.feed({"a": rows(1, 2, 2)})
    assert report is not None
    found = report.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert (found["epoch"], found["rows_in"], found["rows_out"]) == (1, 3, {"q": 1})
    assert set(EpochReport.__slots__) - set(found) == {"outputs"}


# -- through the loop --------------------------------------------------------------------------


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


def test_ingest_is_told_with_the_epoch_that_took_it_in() -> None:
    heard: list[EpochReport] = []
    listeners = Listeners()
    listeners.add(heard.append)
    loop, log = looping(listeners)
    bring(loop, log, 0, began_ago=1.0)
    bring(loop, log, 1, began_ago=2.0)
    loop.drain(lambda: True)
    bring(loop, log, 2)
    loop.drain(lambda: True)
    bring(loop, log, 3, began_ago=4.0)
    loop.drain(lambda: True)
    told = [r.ingest_seconds for r in heard]
    assert told == [pytest.approx(3.0, abs=0.5), 0.0, pytest.approx(4.0, abs=0.5)]


def test_one_that_raises_is_logged_once_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []
    calls: list[int] = []

    def broken(report: EpochReport) -> None:
        calls.append(report.epoch)
        raise ZeroDivisionError("of my own")

    listeners = Listeners()
    for one in (broken, lambda r: heard.append(r.epoch)):
        listeners.add(one)
    loop, log = looping(listeners)
    with caplog.at_level(logging.WARNING, "thalweg"):
        for batch in range(3):
            bring(loop, log, batch)
            loop.drain(lambda: True)
    assert heard == [1, 2, 3]
    assert calls == [1]
    (record,) = caplog.records
    assert "broken" in record.getMessage()
    assert record.exc_info is not None


def test_listeners_come_and_go() -> None:
    first: list[EpochReport] = []
    second: list[EpochReport] = []
    listeners = Listeners()
    hear_first, hear_second = first.append, second.append
    listeners.add(hear_first)
    listeners.add(hear_first)
    loop, log = looping(listeners)
    for batch, act in enumerate(
        (lambda: None, lambda: listeners.add(hear_second), lambda: listeners.remove(hear_first))
    ):
        act()
        bring(loop, log, batch)
        loop.drain(lambda: True)
    assert [r.epoch for r in first] == [1, 2]
    assert [r.epoch for r in second] == [2, 3]
    listeners.remove(hear_first)  # not there any more: nothing happens


def test_one_that_leaves_while_it_is_told() -> None:
    listeners = Listeners()
    heard: list[str] = []

    def once(report: EpochReport) -> None:
        heard.append("once")
        listeners.remove(once)

    listeners.add(once)
    listeners.add(lambda report: heard.append("always"))
    loop, log = looping(listeners)
    for batch in range(2):
        bring(loop, log, batch)
        loop.drain(lambda: True)
    assert heard == ["once", "always", "always"]


def test_an_error_in_progress_still_stops_the_run() -> None:
    loop, log = looping(Listeners())

    def broken(report: EpochReport) -> None:
        raise BrokenPipeError

    loop.progress = broken
    bring(loop, log, 0)
    with pytest.raises(BrokenPipeError):
        loop.drain(lambda: True)


def ticks(seconds: Sequence[float], tick: float) -> int:
    """How often time is asked to pass, at these readings of a monotonic clock."""
    loop, _ = looping(Listeners(), poll_seconds=0.0, tick_seconds=tick)
    asked = []
    loop._coordinator.epoch = lambda entries, **how: asked.append(1)  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        readings = iter(seconds)
        patch.setattr("thalweg.runtime.epoch.driver.time.monotonic", lambda: next(readings))
        for _ in seconds:
            loop._once()
    return len(asked)


def test_ticks_come_as_set() -> None:
    readings = [100 + i / 4 for i in range(9)]  # two seconds
    assert ticks(readings, tick=0.5) == 5
    assert ticks(readings, tick=2.0) == 2


def test_the_loop_waits_as_set(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, log = looping(Listeners(), poll_seconds=0.007)
    waited: list[float] = []
    monkeypatch.setattr(log, "take", lambda timeout: waited.append(timeout) or [])
    loop._last_tick = time.monotonic()
    loop._once()
    assert waited == [0.007]
