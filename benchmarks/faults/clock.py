"""A clock that jumps back by hours under a live engine: no row is lost, repeated or late by it.

Event times are data, so the clock decides only about silence (`IDLE`, the newest instant) and about
streams that are stamped on arrival.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from faults import small_driver, spark_driver
from faults import workload as work
from faults.fault_process import attempt, wait_until
from faults.ledger import Ledger
from thalweg.runtime.state import clock as clock_module

FAULT = "clock jumps back"
HOURS = 3_600_000_000
JUMP = 5 * HOURS
SILENCE = 4.0


class Clock:
    """The machine's clock as the engine reads it, with a hand to turn it."""

    def __init__(self) -> None:
        self.offset = 0

    def __call__(self) -> int:
        return clock_module.wall_clock()

    def time_ns(self) -> int:
        return time.time_ns() + self.offset * 1000

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def install(self) -> Callable[[], None]:
        """Put it in the place of the real one; returns what puts that back."""
        clock_module.time = self  # type: ignore[assignment]

        def restore() -> None:
            clock_module.time = time

        return restore


def small(root: Path, ledger: Ledger) -> None:
    """A live loop without a JVM; half of the input comes before the jump, half after."""
    work.write_input(root)
    wanted = work.expected(work.queries(root))
    clock = Clock()
    restore = clock.install()
    driver = small_driver.SmallDriver(root, idle="10 seconds", lateness="1 second")
    try:
        driver.loop.save_definitions()
        driver.loop.run_in_background(lambda: True)
        for number in range(work.FILES):
            if number == work.FILES // 2:
                clock.offset = -JUMP
            driver.offer(number, clock())
            _settled(driver)
        driver.loop.stop()
        ledger.check("no JVM: the loop lives", driver.loop.failure is None, driver.loop.failure)
        driver.loop.close()
        driver.save_results()
    finally:
        restore()
        driver.close()
    ledger.none("no JVM: output is that of a steady clock", work.problems(root, wanted))


def _settled(driver: small_driver.SmallDriver) -> None:
    state = driver.core.state
    wait_until(lambda: state.next_seq == driver.log.next_seq or driver.loop.failure, 20)


# -- with Spark --------------------------------------------------------------------------------


def run(root: Path, spark: Any, ledger: Ledger, quick: bool) -> None:
    small(root / "small", ledger)
    _live(root / "live", spark, ledger)
    _arrivals(root / "arrivals", spark, ledger)
    _silence(root / "silence", spark, ledger)


def _live(root: Path, spark: Any, ledger: Ledger) -> None:
    """Files before and after the jump through a live engine, then a run to the end."""
    import thalweg as tw

    half = work.FILES // 2
    work.write_input(root, range(half))
    wanted = work.expected(work.queries(root))
    clock = Clock()
    restore = clock.install()
    try:
        with tw.Engine(spark, root / "path", parallelism=2) as engine:
            queries = spark_driver.add_work(engine, root, "LATENESS 1 SECOND IDLE 10 SECONDS")
            engine.start()
            arrived = wait_until(lambda: _rows(engine, "a") == half * work.ROWS, 60)
            clock.offset = -JUMP
            work.write_input(root, range(half, work.FILES))
            arrived &= wait_until(lambda: _rows(engine, "b") == work.FILES * work.ROWS, 60)
            ledger.check("rows go on arriving after the jump", arrived, engine.failure)
            error = attempt(engine.stop, 60) or attempt(engine.run, 60)
            ledger.check("the engine lives", error is None, error)
            spark_driver.save_results(engine, root, queries)
    finally:
        restore()
    ledger.none("output is that of a steady clock", work.problems(root, wanted))


def _rows(engine: Any, stream: str) -> int:
    found = engine.core.committer.committed.get("streams", {}).get(stream, {})
    return int(found.get("rows", 0)) + int(found.get("late", 0))


def _one_stream(
    root: Path, spark: Any, statement: str, feed: Callable[[Any, Any, Clock], None]
) -> None:
    """A live engine with one stream and one query, and a clock to turn."""
    import thalweg as tw

    (root / "in").mkdir(parents=True)
    clock = Clock()
    restore = clock.install()
    try:
        with tw.Engine(spark, root / "path", parallelism=2) as engine:
            engine.sql(f"{statement} FROM FILES '{root / 'in'}' FORMAT parquet")
            query = engine.query("SELECT id FROM s", "all_of_them")
            engine.start()
            feed(engine, query, clock)
            error = attempt(engine.stop, 60)
            if error is not None:
                raise error
    finally:
        restore()


def _drop(root: Path, number: int, times: pa.Array | None = None) -> None:
    ids = pa.array(range(number * 10, number * 10 + 10), pa.int64())
    columns = {"id": ids} | ({} if times is None else {"ts": times})
    draft = root / "in" / f".{number}"
    pq.write_table(pa.table(columns), draft)
    draft.rename(root / "in" / f"{number}.parquet")


def _arrivals(root: Path, spark: Any, ledger: Ledger) -> None:
    """A stream stamped on arrival: rows that arrive after the jump are not late."""

    def feed(engine: Any, query: Any, clock: Clock) -> None:
        _drop(root, 0)
        wait_until(lambda: _rows(engine, "s") == 10, 60)
        clock.offset = -JUMP
        _drop(root, 1)
        wait_until(lambda: _rows(engine, "s") == 20, 60)
        late = engine.core.state.streams["s"].late
        ledger.check("TIMESTAMP BY ARRIVAL: no flood of late rows", late == 0,
                     f"{late} of 10 rows that came after the jump were late")  # fmt: skip

    _one_stream(root, spark, "CREATE STREAM s (id BIGINT) TIMESTAMP BY ARRIVAL", feed)


def _silence(root: Path, spark: Any, ledger: Ledger) -> None:
    """The newest instant of a stream in order is closed by a second of silence, jump or not."""

    def feed(engine: Any, query: Any, clock: Clock) -> None:
        times = pa.array(range(10), pa.timestamp("us", "UTC"))
        _drop(root, 0, times)
        wait_until(lambda: _rows(engine, "s") == 10, 60)
        clock.offset = -JUMP
        later = pa.array(range(10, 20), pa.timestamp("us", "UTC"))
        _drop(root, 1, later)
        wait_until(lambda: _rows(engine, "s") == 20, 60)
        given = wait_until(lambda: query.results().num_rows == 20, SILENCE)
        ledger.check("time goes on: the newest instant comes out after a second of silence", given,
                     f"{query.results().num_rows} of 20 rows after {SILENCE:g} s")  # fmt: skip

    _one_stream(root, spark, "CREATE STREAM s (id BIGINT, ts TIMESTAMP) TIMESTAMP BY ts", feed)
