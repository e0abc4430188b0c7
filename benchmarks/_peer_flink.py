"""Flink's SQL interval join on the benchmark's rows.

Flink lives in `.venv-flink` at the project's root, installed on demand, because its dependencies
are older than ours. Where that is impossible the result says why (`skipped`) and nothing fails.

The package brings no Parquet format, so Flink reads the same rows as CSV, and reading is timed on
its own: the same tables into a black hole. Compare run minus read (`net_s`). The join runs
in streaming mode on the heap state backend without checkpoints, which is Flink's fastest, with
object reuse on. Each stream is one file, because Flink reads several files in no promised order
and rows behind the watermark would be lost. There are no batches, hence no `batch_ms`.

The timed runs write to a black hole, which does not count. A further, untimed run of the same
join counts the results.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _interval_data import Dataset
from _peer import PeerResult, Progress, check_count, emit, run_child, silent

if TYPE_CHECKING:
    from pyflink.table import TableEnvironment

REQUIREMENT = "apache-flink>=2,<3"
PYTHONS = ((3, 9), (3, 12))  # oldest and newest that Flink 2 supports
ROOT = Path(__file__).absolute().parent.parent
INSTALL_BUDGET_S = 600.0
DISORDER_MARGIN_MS = 500


class FlinkUnavailableError(RuntimeError):
    """Flink cannot run here; the message is the reason to print."""


def ensure_flink(progress: Progress = silent, root: Path = ROOT) -> Path:
    """The interpreter of Flink's virtual environment, made on demand."""
    python = root / ".venv-flink" / "bin" / "python"
    if python.exists() and _answers(python):
        return python
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        raise FlinkUnavailableError(
            f"Flink 2 has no package for Python {sys.version_info[0]}.{sys.version_info[1]}"
        )
    progress("flink: installing into .venv-flink (once, about 850 MB)")
    _call([sys.executable, "-m", "venv", "--clear", str(root / ".venv-flink")])
    _call([str(python), "-m", "pip", "install", "--quiet", REQUIREMENT])
    if not _answers(python):
        raise FlinkUnavailableError("Flink was installed but cannot be imported")
    return python


def _answers(python: Path) -> bool:
    code = "import pyflink.table, pyflink.version"
    return subprocess.run([str(python), "-c", code], capture_output=True).returncode == 0


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_BUDGET_S)
    except subprocess.TimeoutExpired as late:
        raise FlinkUnavailableError("installing Flink took too long") from late
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = lines[-1] if lines else done.stderr[-300:]
        raise FlinkUnavailableError(f"Flink could not be installed: {reason}")


def run_flink_join(
    data: Dataset,
    *,
    parallelism: int = 2,
    repeats: int = 2,
    budget_s: float = 300.0,
    progress: Progress = silent,
) -> PeerResult:
    """Flink's interval join of `a` and `b`: `total_s` and `read_s`, each the best of `repeats`."""
    result = PeerResult("flink")
    if data.spec.ways != 2:
        raise ValueError("only the two-way join runs on Flink")
    try:
        python = ensure_flink(progress)
    except FlinkUnavailableError as reason:
        result.skipped = str(reason)
        progress(f"flink: skipped: {reason}")
        return result
    job = {
        "csv": str(data.csv().absolute()),
        "window_s": data.spec.window_s,
        "disorder_ms": data.spec.jitter_ms + DISORDER_MARGIN_MS,
        "parallelism": parallelism,
        "repeats": repeats,
    }
    command = [str(python), str(Path(__file__).absolute())]
    run_child(
        result,
        command,
        job,
        budget_s=budget_s,
        batch_budget_s=budget_s,
        progress=progress,
        env={"PYTHONWARNINGS": "ignore"},
    )
    if result.partial:
        result.skipped = f"it did not finish within {budget_s:.0f} s"
        return result
    check_count(result, data.expected())
    return result


# In the child process, on Flink's own interpreter, from here on.


def _environment(job: dict[str, Any]) -> TableEnvironment:
    from pyflink.table import EnvironmentSettings, TableEnvironment

    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = {
        "parallelism.default": str(job["parallelism"]),
        "pipeline.object-reuse": "true",
        "table.local-time-zone": "UTC",
        # Only the counting run has an aggregate for these to help.
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "1 s",
        "table.exec.mini-batch.size": "10000",
    }
    for name, value in settings.items():
        env.get_config().set(name, value)
    return env


def _declare(env: TableEnvironment, job: dict[str, Any]) -> None:
    delay = f"{job['disorder_ms'] / 1_000:.3f}"
    for stream, value in (("a", "x"), ("b", "y")):
        env.execute_sql(
            f"CREATE TABLE {stream} (k BIGINT, ms BIGINT, {value} DOUBLE,"
            f" ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND)"
            f" WITH ('connector' = 'filesystem', 'path' = 'file://{job['csv']}/{stream}.csv',"
            " 'format' = 'csv')"
        )
        env.execute_sql(
            f"CREATE TABLE read_{stream} (k BIGINT, ts TIMESTAMP_LTZ(3), v DOUBLE)"
            " WITH ('connector' = 'blackhole')"
        )
    env.execute_sql(
        "CREATE TABLE results (k BIGINT, x DOUBLE, y DOUBLE) WITH ('connector' = 'blackhole')"
    )


def _join_sql(job: dict[str, Any]) -> str:
    span = f"INTERVAL '{job['window_s']}' SECOND({len(str(job['window_s']))})"
    return (
        "SELECT a.k, a.x, b.y FROM a JOIN b ON a.k = b.k"
        f" AND b.ts BETWEEN a.ts - {span} AND a.ts + {span}"
    )


def _time_read(env: TableEnvironment) -> float:
    both = env.create_statement_set()
    both.add_insert_sql("INSERT INTO read_a SELECT k, ts, x FROM a")
    both.add_insert_sql("INSERT INTO read_b SELECT k, ts, y FROM b")
    start = time.perf_counter()
    both.execute().wait()
    return time.perf_counter() - start


def _time_join(env: TableEnvironment, job: dict[str, Any]) -> float:
    start = time.perf_counter()
    env.execute_sql(f"INSERT INTO results {_join_sql(job)}").wait()
    return time.perf_counter() - start


def _count(env: TableEnvironment, job: dict[str, Any]) -> int:
    """A streaming count keeps correcting itself: the last row is the answer."""
    table = env.execute_sql(f"SELECT COUNT(*), SUM(x), SUM(y) FROM ({_join_sql(job)})")
    count = 0
    with table.collect() as rows:
        for row in rows:
            count = int(row[0])
    return count


def _child(job: dict[str, Any]) -> None:
    from pyflink.version import __version__

    env = _environment(job)
    _declare(env, job)
    emit(note=f"version {__version__}")
    reads: list[float] = []
    joins: list[float] = []
    for _ in range(job["repeats"]):
        reads.append(_time_read(env))
        emit(note=f"read {reads[-1]:.1f} s")
    for _ in range(job["repeats"]):
        joins.append(_time_join(env, job))
        emit(note=f"join {joins[-1]:.1f} s")
    emit(
        done={
            "total_s": min(joins),
            "read_s": min(reads),
            "rows_out": _count(env, job),
            "version": __version__,
            "reads_s": reads,
            "joins_s": joins,
        }
    )


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
