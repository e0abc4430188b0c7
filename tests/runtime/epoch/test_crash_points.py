"""A driver that dies at any operation on its files leaves a path that gives the same output.

A small engine without a JVM (log writer, epoch loop, coordinator, all over a real directory) is
killed before, inside and after every single write, commit and deletion; a new one then opens the
path and goes on. Both commits, of the log and of the manifest, are among the operations.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dying_storage import DyingStorage, Killed, orphans, storage

from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Session
from thalweg.runtime.settings import Settings
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.pack_rows import IngestPlan, ingest_table
from thalweg.runtime.sources.python_arguments import arrow_fields, make_stream
from thalweg.runtime.state.clock import wall_clock
from thalweg.runtime.state.open_path import claim, load_state, release, sweep
from thalweg.runtime.upkeep import compaction
from thalweg.store import manifest
from thalweg.store.pack_cache import PackCache
from thalweg.testing.compare import canonical, difference, from_table
from thalweg.testing.local_executor import LocalExecutor
from thalweg.testing.runner import Runner

SECOND = 1_000_000
QUERIES = {
    "filter": "SELECT k, x FROM a WHERE x > 1",
    "joined": "SELECT a.k, x, y FROM a [RANGE 2 SECONDS], b [RANGE 20 SECONDS] WHERE a.k = b.k",
    "grouped": "SELECT k, count(*) AS n, max(x) AS m FROM a [RANGE 2 SECONDS] GROUP BY k",
    "last": "SELECT ISTREAM k, x FROM a [PARTITION BY k ROWS 2]",
    "before": "SELECT k, sum(x) AS s FROM a [PARTITION BY k ROWS 3] GROUP BY k",
}
BATCHES = 3


def rows(name: str, seconds: range) -> pa.Table:
    """Two rows a second; the first of each second but the first belongs to the one before."""
    rng = random.Random(f"{name} {seconds}")
    ts = [s * SECOND + d for s in seconds for d in (-1 if s > seconds[0] else 0, 5)]
    keys, values = ([rng.randrange(n) for _ in ts] for n in (2, 4))
    times = pa.array(ts, pa.timestamp("us", "UTC"))
    return pa.table({"ts": times, "k": keys, "x" if name == "a" else "y": values})


INPUT = [{n: rows(n, range(3 * i, 3 * i + 3)) for n in "ab"} for i in range(BATCHES)]


def opened(files: DyingStorage) -> tuple[Session, LogWriter]:
    """What the Engine does when it opens a path, with streams and queries registered again."""
    state = load_state(files)
    sweep(files, state)
    executor = LocalExecutor(PackCache(files))
    core = EngineCore(files, executor, state, Settings(tasks=2), clock=wall_clock)
    session = Session(core)
    for name, table in INPUT[0].items():
        core.streams.define(make_stream(name, arrow_fields(table.schema), "ts"))
    for name, text in QUERIES.items():
        session.query(text, name)
    return session, LogWriter(files, state.next_seq, state.sources)


def live(files: DyingStorage, batch_done: Callable[[], None] = lambda: None) -> Session:
    """One life of the driver: whatever the log lacks is ingested, then everything is drained."""
    lock = claim(files.real)
    try:
        session, log = opened(files)
        loop = session.core.driver(log, lambda script, name: session.sql(script))
        loop.save_definitions()
        for number, batch in enumerate(INPUT):
            if not log.has("source", number):
                ingest(session, log, files, number, batch)
            batch_done()
            loop.drain(lambda: True)
        loop.close()
        return session
    finally:
        release(lock)


def ingest(
    session: Session, log: LogWriter, files: DyingStorage, number: int, batch: dict[str, pa.Table]
) -> None:
    packs: dict[str, list[Any]] = {}
    for name, table in batch.items():
        keys = session.core.plans.keys_of(name)
        plan = IngestPlan(session.catalog.streams[name], keys, 0, f"log/{name}{number}-", 0)
        packs[name] = ingest_table(plan, table, files).packs
    log.append(1, ("source", number), packs, {}, clock=0)


def outputs(session: Session) -> dict[str, Counter[Any]]:
    return {n: canonical(from_table(session.core.results.results(n))) for n in QUERIES}


@pytest.fixture(scope="module")
def expected() -> dict[str, Counter[Any]]:
    runner = Runner(epochs=3)
    for name in INPUT[0]:
        runner.stream(name, pa.concat_tables([b[name] for b in INPUT]))
    for name, text in QUERIES.items():
        runner.query(text, name)
    runner.run()
    found = outputs(runner.session)
    assert all(found.values())
    return found


def check(path: Path, session: Session, expected: dict[str, Counter[Any]], title: str) -> None:
    for name, bag in outputs(session).items():
        found = difference(expected[name], bag)
        assert found is None, f"{title}, {name}\n{found}"
    for stream in session.core.state.streams.values():
        assert (stream.rows, stream.late) == (BATCHES * 6, 0), title
    assert not orphans(path), title


@pytest.fixture(autouse=True)
def busy_upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole manifests, merges and folds within a few epochs."""
    monkeypatch.setattr(manifest, "CHECKPOINT_EVERY", 3)
    monkeypatch.setattr(compaction, "FAN_IN", 2)


def all_points(tmp: Path) -> list[str]:
    files = storage(tmp / "undisturbed")
    live(files)
    return files.seen


def test_death_at_every_operation(tmp_path: Path, expected: dict[str, Counter[Any]]) -> None:
    points = all_points(tmp_path)
    kinds = {p.split("/")[0] for p in points if p.startswith("commit")}
    assert {"commit log", "commit manifests"} <= kinds
    for seldom in ("whole.json", "merged-", "delete manifests", "delete log"):
        assert any(seldom in p for p in points), seldom
    for number, point in enumerate(points):
        path = tmp_path / "crashed"
        with pytest.raises(Killed):
            live(storage(path, number))
        check(path, live(storage(path)), expected, f"killed at {number}: {point}")
        shutil.rmtree(path)


@pytest.mark.parametrize("seed", range(12))
def test_deaths_in_a_row(tmp_path: Path, seed: int, expected: dict[str, Counter[Any]]) -> None:
    """Every life but the last ends early, recoveries among them."""
    rng = random.Random(seed)
    deaths, session = 0, None
    while session is None:
        try:
            session = live(storage(tmp_path, rng.randrange(80) if deaths < 12 else -1))
        except Killed:
            deaths += 1
    check(tmp_path, session, expected, f"seed {seed}, {deaths} deaths")


def test_sigkill_at_random_instants(tmp_path: Path, expected: dict[str, Counter[Any]]) -> None:
    """Twenty lives of a real process ended by a real SIGKILL, as many as it takes per output."""
    rng = random.Random(20)
    live(storage(tmp_path / "warm"))
    begun = time.perf_counter()
    live(storage(tmp_path / "timed"))
    usual = time.perf_counter() - begun
    path, kills = tmp_path / "killed", 0
    while kills < 20:
        if killed_after(rng.uniform(0, usual), path):
            kills += 1
        else:
            check(path, live(storage(path)), expected, f"after {kills} kills")
            shutil.rmtree(path)
    check(path, live(storage(path)), expected, "after twenty kills")


def killed_after(seconds: float, path: Path) -> bool:
    """Fork a driver and kill it after a while; whether it was still at work."""
    pid = os.fork()
    if pid == 0:
        try:
            live(storage(path))
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)
