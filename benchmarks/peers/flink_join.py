"""Flink's SQL joins on the benchmark's rows: chained interval joins, or its MultiJoin.

Flink lives in `.venv-flink` at the project's root, installed on demand, because its dependencies
are older than ours. Where that is impossible the result says why (`skipped`) and nothing fails.

The package brings no Parquet format, so Flink reads the same rows as CSV, and reading is timed on
its own: the same tables into a black hole. Compare run minus read (`net_s`). The join runs
in streaming mode on the heap state backend without checkpoints, which is Flink's fastest, with
object reuse on. Each stream is one file, because Flink reads several files in no promised order
and rows behind the watermark would be lost. There are no batches, hence no `batch_ms`.

The timed runs write to a black hole, which does not count. A further, untimed run of the same
join counts the results. It also takes checkpoints, and the largest is the size of the state: what
is kept as it is serialised, without the heap's objects around it, so rather too little. At the end
of the input Flink's watermark passes everything, hence not the last one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from child import command
from common.peer_process import PeerResult, Progress, check_count, emit, run_child, silent
from joins.interval_data import Dataset
from peers import flink_sql as sql

if TYPE_CHECKING:
    from pyflink.table import TableEnvironment

REQUIREMENT = "apache-flink>=2,<3"
PYTHONS = ((3, 9), (3, 12))  # oldest and newest that Flink 2 supports
ROOT = Path(__file__).absolute().parents[2]
INSTALL_BUDGET_S = 600.0
DISORDER_MARGIN_MS = 500
HEAP = "8g"  # as the other systems have
CHECKPOINTS = 8  # in a counting run that takes as long as the timed one
LEAST_PAUSE_S = 1.0
POLL_S = 0.2


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
    variant: str = sql.INTERVAL,
    parallelism: int = 2,
    repeats: int = 2,
    budget_s: float = 300.0,
    progress: Progress = silent,
) -> PeerResult:
    """Flink's join of two streams or of a star: `total_s` and `read_s`, the best of `repeats`.

    What it keeps is in `detail["state_bytes"]`.
    """
    result = PeerResult("flink" if data.spec.ways == 2 else f"flink-{variant}")
    if data.spec.ways != 2 and not data.spec.is_star:
        raise ValueError("the three-way join with two keys does not run on Flink")
    try:
        python = ensure_flink(progress)
    except FlinkUnavailableError as reason:
        result.skipped = str(reason)
        progress(f"flink: skipped: {reason}")
        return result
    job = {
        "csv": str(data.csv().absolute()),
        "values": {stream: data.columns(stream)[-1] for stream in data.spec.streams},
        "variant": variant,
        "window_s": data.spec.window_s,
        "disorder_ms": data.spec.jitter_ms + DISORDER_MARGIN_MS,
        "parallelism": parallelism,
        "repeats": repeats,
    }
    run_child(
        result,
        command(__name__, python=str(python)),
        job,
        budget_s=budget_s,
        batch_budget_s=budget_s,
        progress=progress,
        env={"PYTHONWARNINGS": "ignore", "JVM_ARGS": f"-Xmx{HEAP}"},
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
        "table.optimizer.multi-join.enabled": str(job["variant"] == sql.MULTIJOIN).lower(),
    }
    _configure(env, settings)
    return env


def _configure(env: TableEnvironment, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        env.get_config().set(name, value)


def _declare(env: TableEnvironment, job: dict[str, Any]) -> None:
    variant = job["variant"]
    when, kind = sql.moment(variant)
    for stream, value in job["values"].items():
        env.execute_sql(sql.table(stream, value, job["csv"], job["disorder_ms"], variant))
        env.execute_sql(sql.black_hole(f"read_{stream}", f"k BIGINT, {when} {kind}, v DOUBLE"))
    env.execute_sql(sql.results(job["values"]))


def _join_sql(job: dict[str, Any]) -> str:
    return sql.join(job["values"], job["window_s"], job["variant"])


def _time_read(env: TableEnvironment, job: dict[str, Any]) -> float:
    every = env.create_statement_set()
    when, _ = sql.moment(job["variant"])
    for stream, value in job["values"].items():
        every.add_insert_sql(f"INSERT INTO read_{stream} SELECT k, {when}, {value} FROM {stream}")
    start = time.perf_counter()
    every.execute().wait()
    return time.perf_counter() - start


def _time_join(env: TableEnvironment, job: dict[str, Any]) -> float:
    start = time.perf_counter()
    env.execute_sql(f"INSERT INTO results {_join_sql(job)}").wait()
    return time.perf_counter() - start


def _count(env: TableEnvironment, job: dict[str, Any]) -> int:
    """A streaming count keeps correcting itself: the last row is the answer."""
    sums = ", ".join(f"SUM({value})" for value in job["values"].values())
    table = env.execute_sql(f"SELECT COUNT(*), {sums} FROM ({_join_sql(job)})")
    count = 0
    with table.collect() as rows:
        for row in rows:
            count = int(row[0])
    return count


@contextmanager
def _checkpoints(env: TableEnvironment, expected_s: float) -> Iterator[list[int]]:
    """What runs inside takes checkpoints; their sizes in bytes."""
    sizes: dict[str, int] = {}
    found: list[int] = []
    ended = threading.Event()

    def watch(folder: Path) -> None:
        while not ended.wait(POLL_S):
            for complete in folder.glob("*/chk-*/_metadata"):
                with suppress(FileNotFoundError):  # replaced by a newer one meanwhile
                    size = sum(file.stat().st_size for file in complete.parent.iterdir())
                    name = complete.parent.name
                    sizes[name] = max(size, sizes.get(name, 0))  # less: it is being deleted

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pause = max(expected_s / CHECKPOINTS, LEAST_PAUSE_S)
        settings = {
            "execution.checkpointing.interval": f"{pause * 1e3:.0f} ms",
            "execution.checkpointing.dir": f"file://{folder}",
        }
        _configure(env, settings)
        watcher = threading.Thread(target=watch, args=(Path(folder),), daemon=True)
        watcher.start()
        try:
            yield found
        finally:
            ended.set()
            watcher.join()
            found.extend(sizes.values())


def _child(job: dict[str, Any]) -> None:
    from pyflink.version import __version__

    env = _environment(job)
    _declare(env, job)
    emit(note=f"version {__version__}")
    sql.check_plan(env.explain_sql(_join_sql(job)), len(job["values"]), job["variant"])
    reads: list[float] = []
    joins: list[float] = []
    for _ in range(job["repeats"]):
        reads.append(_time_read(env, job))
        emit(note=f"read {reads[-1]:.1f} s")
    for _ in range(job["repeats"]):
        joins.append(_time_join(env, job))
        emit(note=f"join {joins[-1]:.1f} s")
    with _checkpoints(env, min(joins)) as sizes:
        count = _count(env, job)
    emit(
        done={
            "total_s": min(joins),
            "read_s": min(reads),
            "rows_out": count,
            "version": __version__,
            "reads_s": reads,
            "joins_s": joins,
            "checkpoint_bytes": sizes,
            "state_bytes": max(sizes, default=None),
        }
    )


if __name__ == "__main__":
    _child(json.loads(sys.argv[1]))
