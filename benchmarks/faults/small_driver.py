"""A driver without a JVM: log writer, epoch loop, sinks and coordinator over a real directory.

It is the engine minus Spark, so a life of it takes tenths of a second and can be ended often. Lives
are forked from a warm process and killed with SIGKILL, at a point or at an instant.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from faults import kill_points
from faults import workload as work
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Session
from thalweg.runtime.settings import Settings
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.pack_rows import IngestPlan, ingest_table
from thalweg.runtime.sources.python_arguments import arrow_fields, make_stream
from thalweg.runtime.state.clock import wall_clock
from thalweg.runtime.state.open_path import claim, load_state, release, sweep
from thalweg.store.pack_cache import PackCache
from thalweg.store.storage import LocalStorage, Storage
from thalweg.testing.local_executor import LocalExecutor

SOURCE = "files"


class SmallDriver:
    """One opening of a path; `close` gives it free again."""

    def __init__(
        self,
        root: Path,
        texts: dict[str, str] | None = None,
        storage: Storage | None = None,
        **stream: Any,
    ) -> None:
        self.root = root
        self.lock = claim(LocalStorage(str(root / "path"), durable=False))
        self.storage = storage or LocalStorage(str(root / "path"), durable=False)
        try:
            self._open(texts or work.queries(root), stream)
        except BaseException:
            release(self.lock)
            raise

    def _open(self, texts: dict[str, str], stream: dict[str, Any]) -> None:
        state = load_state(self.storage)
        sweep(self.storage, state)
        executor = LocalExecutor(PackCache(self.storage))
        self.core = EngineCore(self.storage, executor, state, Settings(tasks=2), clock=wall_clock)
        self.session = Session(self.core)
        fields = arrow_fields(work.rows_of("a").schema)
        for name in work.STREAMS:
            options = {"idle": None, **stream}
            self.core.streams.define(make_stream(name, fields, "ts", **options))
        for name, text in texts.items():
            self.session.query(text, name)
        self.log = LogWriter(self.storage, state.next_seq, state.sources)
        self.loop = self.core.driver(
            self.log, self._carry_out, poll_seconds=0.02, tick_seconds=0.05
        )

    def _carry_out(self, script: str, query: str | None) -> None:
        self.session.sql(script)

    def offer(self, number: int, clock: int = 0) -> None:
        """A batch as Spark would give it: again until its own commit is there, never afterwards."""
        commit = self.root / "commits" / str(number)
        if commit.exists():
            return
        if not self.log.has(SOURCE, number):
            self._take_in(number, clock)
        commit.parent.mkdir(exist_ok=True)
        commit.touch()

    def _take_in(self, number: int, clock: int) -> None:
        packs = {}
        for name in work.STREAMS:
            stream = self.session.catalog.streams[name]
            keys = self.core.plans.keys_of(name)
            plan = IngestPlan(stream, keys, clock, f"log/{name}{number}-", 0)
            rows = pq.read_table(work.input_file(self.root, name, number))
            packs[name] = ingest_table(plan, rows, self.storage).packs
        self.log.append(1, (SOURCE, number), packs, {}, clock)

    def run(self, files: Iterable[int] = range(work.FILES)) -> None:
        """As `Engine.run`: what the log lacks is ingested, everything is drained and closed."""
        self.loop.save_definitions()
        for number in files:
            self.offer(number)
            self.loop.drain(lambda: True)
        self.loop.close()

    def save_results(self) -> None:
        late = sum(s.late for s in self.core.state.streams.values())
        names = [n for n, q in self.session.queries.items() if q.status == "running"]
        work.save_results(self.root, {n: self.core.results.results(n) for n in names}, late)

    def close(self) -> None:
        release(self.lock)


def live(root: Path, texts: dict[str, str] | None = None, storage: Storage | None = None) -> None:
    """A whole life: open, run to the end, write the results."""
    driver = SmallDriver(root, texts, storage)
    try:
        driver.run()
        driver.save_results()
    finally:
        driver.close()


def forked(act: Callable[[], None], errors: Path) -> int:
    """Run something in a process of its own, leader of its group; returns the process id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        act()
        code = 0
    except BaseException:
        errors.write_text(traceback.format_exc())
    finally:
        os._exit(code)


def small_life(root: Path, point: str, after: float | None) -> int:
    """One life that dies at a point, or `after` seconds, or not at all; its exit status."""

    def act() -> None:
        work.busy_upkeep()
        kill_points.arm(point)
        live(root)

    pid = forked(act, root / "errors")
    if after is not None:
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def usual_seconds(root: Path) -> float:
    """How long an undisturbed life takes; the first, here, leaves the kernels compiled."""
    work.write_input(root / "warm")
    live(root / "warm")
    work.write_input(root / "timed")
    begun = time.perf_counter()
    if small_life(root / "timed", "", None) != 0:
        raise RuntimeError((root / "timed" / "errors").read_text())
    return time.perf_counter() - begun
