"""User functions that raise or exit: the row is rejected and counted, the query lives.

One that cannot even be loaded by the workers fails its own query and no other.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from faults import spark_driver
from faults import workload as work
from faults.fault_process import attempt
from faults.ledger import Ledger

FAULT = "user function raises"


def unknown_to_workers(value: int) -> bool:
    """Travels by name, as functions of modules do; workers do not know this module."""
    return True


def run(root: Path, spark: Any, ledger: Ledger, quick: bool) -> None:
    _raising(root / "raising", spark, ledger)
    _unloadable(root / "unloadable", spark, ledger)


def _raising(root: Path, spark: Any, ledger: Ledger) -> None:
    import thalweg as tw

    def no_threes(value: int) -> bool:
        if value == 3:
            raise ValueError("three is right out")
        return True

    def no_fours(value: int) -> int:
        if value == 4:
            raise SystemExit(1)
        return value * 10

    work.write_input(root)
    wanted = work.expected(work.queries(root))
    with tw.Engine(spark, root / "path", parallelism=2) as engine:
        queries = spark_driver.add_work(engine, root)
        engine.function("no_threes", no_threes, "BOOLEAN", arguments=["BIGINT"])
        engine.function("no_fours", no_fours, "BIGINT", arguments=["BIGINT"])
        raising = engine.query("SELECT v FROM a WHERE no_threes(v)", "raising")
        leaving = engine.query("SELECT no_fours(v) AS w FROM a", "leaving")
        error = attempt(engine.run, 120)
        ledger.check("the run gets to the end", error is None, error)
        spark_driver.save_results(engine, root, queries)
        values = Counter(work.rows_of("a").column("v").to_pylist())
        _judge(ledger, raising, "v", values, 3, {v: v for v in values}, "no_threes")
        _judge(ledger, leaving, "w", values, 4, {v: v * 10 for v in values}, "no_fours")
    ledger.none("the other queries give what they should", work.problems(root, wanted))


def _judge(
    ledger: Ledger, query: Any, column: str, values: Counter[int], bad: int,
    shown: dict[int, int], name: str,
) -> None:  # fmt: skip
    """Every row is either a result or a reject that names the function."""
    want = Counter({shown[v]: n for v, n in values.items() if v != bad})
    found = Counter(query.results().column(column).to_pylist())
    ledger.check(f"{name}: sound rows come out, each once", found == want, found)
    rejects = query.rejects()
    counted = query.stats()["rejected"]
    ledger.check(
        f"{name}: {values[bad]} bad rows are rejected and counted",
        rejects.num_rows == values[bad] == counted,
        (rejects.num_rows, counted),
    )
    if rejects.num_rows:
        row = rejects.to_pylist()[0]
        ledger.tell(f"{row['expression']}: {row['reason']}", f"(?i){name}", needs_remedy=False)


def _unloadable(root: Path, spark: Any, ledger: Ledger) -> None:
    import thalweg as tw

    how = "a function the workers cannot load"
    work.write_input(root)
    wanted = work.expected(work.queries(root))
    with tw.Engine(spark, root / "path", parallelism=2) as engine:
        queries = spark_driver.add_work(engine, root)
        engine.function("stranger", unknown_to_workers, "BOOLEAN", arguments=["BIGINT"])
        strange = engine.query("SELECT v FROM a WHERE stranger(v)", "strange")
        error = attempt(engine.run, 120)
        ledger.check(f"{how}: the run gets to the end", error is None, str(error)[:300])
        told = error or attempt(strange.results, 30)
        ledger.tell(str(told), "strange")
        spark_driver.save_results(engine, root, queries)
    ledger.none(f"{how}: the other queries are unharmed", work.problems(root, wanted))
