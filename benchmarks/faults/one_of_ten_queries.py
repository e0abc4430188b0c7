"""One faulty query among ten: the nine others give what they would without it.

It fails in turn by its callback, by its function, by its step, and by the upkeep of its state.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from faults import small_driver, spark_driver
from faults import workload as work
from faults.fault_process import attempt
from faults.ledger import Ledger
from thalweg.exec import jobs

FAULT = "one faulty query of ten"
FAULTY = "faulty"
MORE = {
    "now": "SELECT ISTREAM k, v FROM a [NOW] WHERE v > 1",
    "last": "SELECT k, v FROM b [PARTITION BY k ROWS 2]",
    "slide": "SELECT k, avg(x) AS m FROM a [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY k",
    "left_join": "SELECT a.k, a.v, b.x FROM a [RANGE 1 SECOND] LEFT JOIN b [NOW] ON a.k = b.k",
}
BAD = "SELECT k, max(x) AS m, count(*) AS n FROM b [RANGE 2 SECONDS] GROUP BY k"


def nine(root: Path) -> dict[str, str]:
    return {**work.queries(root), **MORE}


class Broken(Exception):
    """A bug in the code of one query."""


@contextlib.contextmanager
def failing(name: str, after: int = 0) -> Iterator[None]:
    """A job of the faulty query raises, from its `after`-th on, as a bug of ours would."""
    real: Callable[..., Any] = getattr(jobs, name)
    seen = [0]

    def broken(job: Any, *args: Any) -> Any:
        if getattr(job, "query", None) == FAULTY:
            seen[0] += 1
            if seen[0] > after:
                raise Broken(f"a bug in {name}")
        return real(job, *args)

    setattr(jobs, name, broken)
    try:
        yield
    finally:
        setattr(jobs, name, real)


class Lines(logging.Handler):
    """What the log of the engine says."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


# -- without a JVM -----------------------------------------------------------------------------


def small(root: Path, ledger: Ledger) -> None:
    """The step of one query fails from its third on."""
    work.write_input(root)
    wanted = work.expected(nine(root))
    driver = small_driver.SmallDriver(root, {**nine(root), FAULTY: BAD})
    try:
        with failing("step", after=4):
            driver.run()
        status = driver.session.queries[FAULTY].status
        driver.save_results()
    finally:
        driver.close()
    ledger.check("no JVM: the faulty query is FAILED", status == "failed", status)
    ledger.none("no JVM: the nine others are unharmed", work.problems(root, wanted))


# -- with Spark --------------------------------------------------------------------------------


def run(root: Path, spark: Any, ledger: Ledger, quick: bool) -> None:
    work.busy_upkeep()
    small(root / "small", ledger)
    _by_callback(root / "callback", spark, ledger)
    _by_function(root / "function", spark, ledger)
    for job in ("step", "fold"):
        _by_job(root / job, spark, ledger, job)


@contextlib.contextmanager
def _ten(root: Path, spark: Any, text: str, **faulty: Any) -> Iterator[tuple[Any, Any, Any]]:
    """An engine with nine sound queries and a faulty one, before its run."""
    import thalweg as tw

    work.write_input(root)
    with tw.Engine(spark, root / "path", parallelism=2) as engine:
        queries = spark_driver.add_work(engine, root)
        queries |= {name: engine.query(sql, name) for name, sql in MORE.items()}
        if "function" in faulty:
            engine.function("buggy", faulty["function"], "BOOLEAN", arguments=["BIGINT"])
        yield engine, queries, engine.query(text, FAULTY, faulty.get("callback"))


def _judge_nine(root: Path, ledger: Ledger, how: str, engine: Any, queries: Any) -> None:
    error = attempt(lambda: spark_driver.save_results(engine, root, queries), 30)
    wrong = work.problems(root, work.expected(nine(root))) if error is None else [repr(error)]
    ledger.none(f"{how}: the nine others are unharmed", wrong)


def _by_callback(root: Path, spark: Any, ledger: Ledger) -> None:
    def callback(table: Any) -> None:
        raise Broken("a callback with a bug")

    seen = Lines()
    logging.getLogger("thalweg").addHandler(seen)
    with _ten(root, spark, BAD, callback=callback) as (engine, queries, _):
        error = attempt(engine.run, 120)
        ledger.tell(str(error), FAULTY)
        ledger.check("callback raises: it is reported while the engine runs",
                     any(FAULTY in line for line in seen.lines), seen.lines)  # fmt: skip
        _judge_nine(root, ledger, "callback raises", engine, queries)


def _by_function(root: Path, spark: Any, ledger: Ledger) -> None:
    def buggy(value: int) -> bool:
        raise RuntimeError("a function with a bug")

    text = "SELECT v FROM b WHERE buggy(v)"
    with _ten(root, spark, text, function=buggy) as (engine, queries, faulty):
        error = attempt(engine.run, 120)
        ledger.check("function raises: the run gets to the end", error is None, error)
        every = work.FILES * work.ROWS
        found = (faulty.results().num_rows, faulty.stats()["rejected"])
        ledger.check(f"function raises: all {every} rows are rejects", found == (0, every), found)
        _judge_nine(root, ledger, "function raises", engine, queries)


def _by_job(root: Path, spark: Any, ledger: Ledger, job: str) -> None:
    how = f"its {job} raises"
    with _ten(root, spark, BAD) as (engine, queries, faulty), failing(job, 2):
        error = attempt(engine.run, 120)
        if not ledger.check(f"{how}: the run gets to the end", error is None, f"{error!r}"):
            ledger.tell(str(error), FAULTY)
        elif job == "step":
            ledger.check(f"{how}: the query is FAILED", faulty.status == "failed", faulty.status)
            ledger.tell(str(attempt(faulty.results, 30)), FAULTY)
        else:  # packs that stay apart are no reason to end a query
            ledger.check(f"{how}: the query lives", faulty.status == "running", faulty.status)
        _judge_nine(root, ledger, how, engine, queries)
