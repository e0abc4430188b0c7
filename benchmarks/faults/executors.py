"""Executors and Python workers killed under a run on a cluster of two small executors.

The cluster is `local-cluster[2,1,1024]`: executors are JVMs of their own that start Python workers.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

from faults import processes, spark_driver
from faults import workload as work
from faults.fault_process import attempt
from faults.ledger import Ledger

FAULT = "executors killed"
MASTER = "local-cluster[2,1,1024]"
PATIENCE = 240  # a new executor takes half a minute to its first Python task on a busy machine


class Killer(threading.Thread):
    """Kills Python workers, and executors until so many are gone, at random instants.

    A gentle one keeps pace with the epochs: Spark gives a task up that has failed four times. A
    relentless one sees to that.
    """

    def __init__(self, workers: int, executors: int, relentless: bool = False) -> None:
        super().__init__(daemon=True)
        self.workers = workers
        self.executors = executors
        self.relentless = relentless
        self.dead_workers = self.dead_executors = self.epochs = 0
        self._done = threading.Event()
        self._rng = random.Random(5)

    def progress(self, report: Any) -> None:
        self.epochs += 1

    def run(self) -> None:
        while not self._done.wait(self._rng.uniform(0.05, 0.3)):
            if self.relentless or self.dead_workers + self.dead_executors < self.epochs:
                self._strike()

    def _strike(self) -> None:
        if self.dead_executors < self.executors and self.dead_workers > self.dead_executors:
            self.dead_executors += self._kill(processes.executors())
        elif self.dead_workers < self.workers:
            self.dead_workers += self._kill(processes.workers())

    def _kill(self, found: list[int]) -> int:
        with contextlib.suppress(ProcessLookupError):
            if found:
                os.kill(self._rng.choice(found), signal.SIGKILL)
                return 1
        return 0

    def end(self) -> None:
        self._done.set()
        self.join()


def run(root: Path, spark: Any, ledger: Ledger, quick: bool) -> None:
    work.write_input(root)
    wanted = work.expected(work.queries(root))
    work.write_input(root / "again")
    killer = Killer(3, 1) if quick else Killer(12, 3)
    error = _one_run(root, spark, ledger, killer)
    ledger.check("the run gets to the end", error is None, error)
    ledger.check("Python workers were killed", killer.dead_workers > 0, killer.dead_workers)
    ledger.check("executors were killed", killer.dead_executors > 0, killer.dead_executors)
    ledger.figures["workers"] = killer.dead_workers
    ledger.figures["executors"] = killer.dead_executors
    if error is None:
        ledger.none("output is that of an undisturbed run", work.problems(root, wanted))
    _until_spark_gives_up(root / "again", spark, ledger)


def _until_spark_gives_up(root: Path, spark: Any, ledger: Ledger) -> None:
    """Every worker is killed as soon as it is there: the run ends in words, the next is whole."""
    wanted = work.expected(work.queries(root))
    error = _one_run(root, spark, ledger, Killer(50, 0, relentless=True))
    how = "workers killed without end"
    ledger.check(f"{how}: the run ends with an error",
                 error is not None and not isinstance(error, TimeoutError), error)  # fmt: skip
    ledger.tell(str(error), "(?i)worker|executor|task")
    error = _one_run(root, spark, ledger, None)
    if ledger.check(f"{how}: the next run gets to the end", error is None, error):
        ledger.none(f"{how}: the next run's output is complete", work.problems(root, wanted))


def _one_run(root: Path, spark: Any, ledger: Ledger, killer: Killer | None) -> BaseException | None:
    import thalweg as tw

    def odd(value: int) -> bool:
        return value % 2 == 1

    def act() -> None:
        with tw.Engine(spark, root / "path", parallelism=2) as engine:
            queries = spark_driver.add_work(engine, root)
            engine.function("odd", odd, "BOOLEAN", arguments=["BIGINT"])
            called = engine.query("SELECT v FROM a WHERE odd(v)", "called")
            if killer is not None:
                killer.start()
            try:
                engine.run(killer and killer.progress)
            finally:
                if killer is not None:
                    killer.end()
            spark_driver.save_results(engine, root, queries)
            odds = sum(v % 2 for v in work.rows_of("a").column("v").to_pylist())
            given = called.results().num_rows
            ledger.check("the query with a function is complete", given == odds, given)

    return attempt(act, PATIENCE)
