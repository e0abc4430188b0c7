"""Six Python predicates of 1 to 50 µs a row against the same conjunction as Spark Arrow UDFs.

Each predicate passes a share of the rows, one half on average; the shares are permuted twice. The
oracle is the engine itself with a fixed order, the best one for each phase. All systems run the
same function bodies over the same files with the same triggers; the first pass warms up, and of
every run the first two batches, which start it, are left out (the oracle starts once per phase).
Processes alone differ by a quarter, so the engine and its oracle take turns in one. A second input
lets every predicate pass half of the rows: there a permutation changes nothing.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from child import command
from common.harness import Report
from common.peer_process import PeerResult, emit, run_child

COSTS_US = (1, 2, 5, 10, 20, 50)
PASSING = (0.8, 0.65, 0.5, 0.5, 0.35, 0.2)
PHASES = 3
TIMES_SPARK, OF_ORACLE = "Python predicates: times Spark", "Python predicates: of the oracle"
TURNS = 6
WARM_UP = 2
SHOWN = {"thalweg": "thalweg auto", "oracle": "oracle (order known)"}
SCHEMA = ", ".join(f"c{i} BIGINT" for i in range(len(COSTS_US))) + ", ts TIMESTAMP"


def declare(report: Report) -> None:
    report.declare(TIMES_SPARK, at_least=3)
    report.declare(OF_ORACLE, at_least=0.9)


def compare(report: Report, root: Path, quick: bool) -> None:
    rows, batches = (30_000, 12) if quick else (40_000, 15)
    loops = _loops_per_us()
    folder = _ensure(root, rows, batches, "mixed")
    rates = _rates(report, "Python predicates", folder, rows, loops, quick)
    report.measure(TIMES_SPARK, statistics.median(rates["thalweg"]) / rates["spark"][0])
    report.measure(OF_ORACLE, _in_turns(report, "Python predicates", rates))
    if not quick:
        case, folder = "Python predicates, all pass half", _ensure(root, rows, batches, "half")
        _in_turns(report, case, _rates(report, case, folder, rows, loops, quick))


def _in_turns(report: Report, case: str, rates: dict[str, list[float]]) -> float:
    """The engine's share of the oracle's rate: median over the turns, with the extremes."""
    ratios = [ours / best for ours, best in zip(rates["thalweg"], rates["oracle"], strict=True)]
    for which, value in (("lowest", min(ratios)), ("highest", max(ratios))):
        report.row(case, "thalweg auto", f"of the oracle, {which} turn", "x", value)
    return statistics.median(ratios)


def _rates(
    report: Report, case: str, folder: Path, rows: int, loops: int, quick: bool
) -> dict[str, list[float]]:
    """Rows a second of each system, turn by turn."""
    rates: dict[str, list[float]] = {}
    for systems, turns in ((["spark"], 1), (["oracle", "thalweg"], 3 if quick else TURNS)):
        job = {"folder": str(folder), "systems": systems, "turns": turns, "loops": loops}
        result = run_child(
            PeerResult(" and ".join(systems)), command(__name__), job,
            budget_s=900, batch_budget_s=600, progress=report.progress,
            env={"PYTHONWARNINGS": "ignore", "PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip
        for system, passes in result.detail["passes"].items():
            rates[system] = [rows * len(p["seconds"]) / sum(p["seconds"]) for p in passes]
            shown = SHOWN.get(system, system)
            median = statistics.median(rates[system])
            report.row(case, shown, f"rows a second, median of {turns}", "rows/s", median)
            report.row(case, shown, "results", "rows", passes[0]["rows"])
            batches = [s for p in passes for s in p["seconds"]]
            report.row(case, shown, "median batch", "ms", 1e3 * statistics.median(batches))
    return rates


def shares(phase: int) -> tuple[float, ...]:
    """What the predicates pass in a phase: cheap ones first, then dear ones, then mixed."""
    return (PASSING, tuple(reversed(PASSING)), (0.35, 0.8, 0.2, 0.65, 0.5, 0.5))[phase]


def _best(phase: int) -> list[int]:
    ratios = [(1 - p) / c for p, c in zip(shares(phase), COSTS_US, strict=True)]
    return sorted(range(len(ratios)), key=lambda i: -ratios[i])


def _ensure(root: Path, rows: int, batches: int, kind: str) -> Path:
    folder = root / f"filters-udf-{kind}-{rows}-{batches}"
    if (folder / "done").exists():
        return folder
    rng = np.random.default_rng(11)
    for batch in range(batches):
        phase = batch * PHASES // batches
        passed = np.array(shares(phase)) if kind == "mixed" else 0.5
        passing = rng.random((rows, len(COSTS_US))) < passed
        columns: dict[str, Any] = {
            f"c{i}": np.where(passing[:, i], 1, -1) for i in range(len(COSTS_US))
        }
        columns["ts"] = pa.array(np.arange(rows) + batch * rows, pa.timestamp("us", "UTC"))
        (folder / f"p{phase}").mkdir(parents=True, exist_ok=True)
        (folder / "all").mkdir(exist_ok=True)
        for place in (f"p{phase}", "all"):
            pq.write_table(pa.table(columns), folder / place / f"{batch:04}.parquet")
            time.sleep(0.01)  # Spark reads files in the order of their times
    (folder / "done").touch()
    return folder


def _loops_per_us() -> int:
    """How often an empty loop runs in a microsecond here; the same for all systems."""
    begun = time.perf_counter()
    _burn(2_000_000)
    return max(round(2_000_000 / (time.perf_counter() - begun) / 1e6), 1)


def _burn(loops: int) -> None:
    for _ in range(loops):
        pass


def predicate(cost_us: int, loops: int) -> Any:
    """Passes positive values, after so many µs of Python for each."""
    work = cost_us * loops

    def passes(values: pa.Array) -> pa.Array:
        found = []
        for value in values.to_pylist():
            for _ in range(work):
                pass
            found.append(value > 0)
        return pa.array(found)

    return passes


# -- the child -----------------------------------------------------------------------------------


def _thalweg(
    spark: Any, folder: Path, loops: int, order: list[int] | None
) -> tuple[list[float], int]:
    import thalweg as tw

    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as path:
        engine = tw.Engine(spark, path=path, parallelism=2, durable=False)
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        engine.stream("s", reader.parquet(str(folder)), timestamp="ts")
        for i, cost in enumerate(COSTS_US):
            engine.function(
                f"f{i}", predicate(cost, loops), "BOOLEAN", arguments=["BIGINT"], vectorized=True
            )
        numbers = range(len(COSTS_US)) if order is None else order
        where = " AND ".join(f"f{i}(c{i})" for i in numbers)
        option = "auto" if order is None else "fixed"
        query = engine.query(f"SELECT c0 FROM s WHERE {where} WITH (filters = '{option}')", "q")
        seconds: list[float] = []
        last = time.perf_counter()

        def progress(epoch: Any) -> None:
            nonlocal last
            now = time.perf_counter()
            if epoch.rows_in:
                seconds.append(now - last)
            last = now

        engine.run(progress=progress)
        rows = query.results().num_rows
        engine.close()
    return seconds[WARM_UP:], rows


def _spark(spark: Any, folder: Path, loops: int) -> tuple[list[float], int]:
    from functools import reduce

    from pyspark.sql.functions import arrow_udf, col

    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    asked = [
        arrow_udf(_typed(predicate(cost, loops)), "boolean")(col(f"c{i}"))
        for i, cost in enumerate(COSTS_US)
    ]
    frame = frame.where(reduce(lambda a, b: a & b, asked)).select("c0")
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as checkpoint:
        writer = frame.writeStream.option("checkpointLocation", checkpoint).format("noop")
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        progress = [p for p in query.recentProgress if p.numInputRows]
    rows = sum(max(p.sink.numOutputRows, 0) for p in progress)
    return [p.durationMs["triggerExecution"] / 1e3 for p in progress[WARM_UP:]], rows


def _typed(function: Any) -> Any:
    """Spark reads the kind of an Arrow UDF from its annotations."""
    function.__annotations__ = {"values": pa.Array, "return": pa.Array}
    return function


def _pass(spark: Any, system: str, folder: Path, loops: int) -> tuple[list[float], int]:
    if system == "spark":
        return _spark(spark, folder / "all", loops)
    if system == "thalweg":
        return _thalweg(spark, folder / "all", loops, None)
    found = [_thalweg(spark, folder / f"p{i}", loops, _best(i)) for i in range(PHASES)]
    return [s for seconds, _ in found for s in seconds], sum(rows for _, rows in found)


def _child(job: dict[str, Any]) -> None:
    if job["systems"] == ["spark"]:
        from peers.spark_join import BASE, TUNED, _session

        spark = _session({"master": "local[2]", "conf": BASE | TUNED})
    else:
        from thalweg.spark.settings import create_session

        spark = create_session("local[2,4]", {"spark.driver.memory": "4g"})
    begun = time.perf_counter()
    folder, loops = Path(job["folder"]), job["loops"]
    for system in job["systems"]:
        emit(note=f"{system}: warming up")
        _pass(spark, system, folder, 1)
    passes: dict[str, list[dict[str, Any]]] = {system: [] for system in job["systems"]}
    for turn in range(job["turns"]):
        # who goes first alternates: each pass finds the JVM a little warmer than the one before
        for system in job["systems"][:: 1 if turn % 2 == 0 else -1]:
            emit(note=f"{system}: measuring, turn {turn + 1} of {job['turns']}")
            seconds, rows = _pass(spark, system, folder, loops)
            passes[system].append({"seconds": seconds, "rows": rows})
    found = {rows["rows"] for of_system in passes.values() for rows in of_system}
    assert len(found) == 1, f"the passes differ in their results: {found}"
    emit(done={"total_s": time.perf_counter() - begun, "rows_out": found.pop(), "passes": passes})
    spark.stop()


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
