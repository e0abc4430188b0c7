"""Killed drivers, killed workers, lost checkpoints, and everything a path refuses."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import crash_driver
import processes
import pyarrow as pa
import pyarrow.feather
import pytest
from cases import file_frame, rows_in, wait_until, write_files

import thalweg as tw
from thalweg.errors import (
    CheckpointLost,
    ConfigError,
    FormatTooNew,
    GroupMismatch,
    PathInUse,
)
from thalweg.runtime.state.open_path import load_state, sweep
from thalweg.store.storage import LocalStorage
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

pytestmark = pytest.mark.spark

SECOND = 1_000_000
FILES = 6


def rows(name: str) -> pa.Table:
    """Three rows per file and second, in order."""
    rng = random.Random(name)
    ts = [i * SECOND // 3 for i in range(3 * FILES)]
    keys, values = ([rng.randrange(n) for _ in ts] for n in (2, 5))
    return pa.table({"ts": pa.array(ts, pa.timestamp("us", "UTC")), "k": keys, "v": values})


TABLES = {name: rows(name) for name in "ab"}
EACH_FILE = tuple(range(3, 3 * FILES, 3))


def write_input(folder: Path) -> None:
    for name, table in TABLES.items():
        write_files(folder / name, table, EACH_FILE)


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    runner = Runner()
    for name, table in TABLES.items():
        runner.stream(name, table)
    queries = {n: runner.query(text, n) for n, text in crash_driver.QUERIES.items()}
    runner.run()
    return {n: from_table(q.results()) for n, q in queries.items()}


def add_streams(
    engine: Any, folder: Path, names: str = "abc", swapped: bool = False
) -> dict[str, Any]:
    """Streams a and b; c is of no query and reads what b reads."""
    folders = dict(zip("abc", "bab" if swapped else "abb", strict=True))
    for name in names:
        frame = file_frame(engine.spark, folder / folders[name], schema=crash_driver.SCHEMA)
        engine.stream(name, frame, "ts", idle=None)
    return {n: engine.query(text, n) for n, text in crash_driver.QUERIES.items()}


def assert_no_orphans(path: Path) -> None:
    """After a sweep the directory holds what the state names, and the manifests."""
    storage = LocalStorage(str(path))
    state = load_state(storage)
    sweep(storage, state)
    found = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    known = {n for n in found if n.split("/")[0] in ("manifests", "checkpoints")}
    assert found - known - {"format.json", "owner.lock"} == state.files()


# -- killed drivers ----------------------------------------------------------------------------

INSIDE_COMMITS = ["log 1 inside", "manifests 2 inside", "log 2 after", "manifests 2 after"]
POINTS = [
    *("log 1 before", "log 1 after", "log 2 inside", "manifests 1 before"),
    *("manifests 1 inside", "manifests 1 after", "manifests 2 before", "manifests 3 inside"),
]


def random_instants(count: int) -> list[str]:
    """Seconds after the session is there; a run over all files takes longer."""
    rng = random.Random(count)
    return [f"after {rng.uniform(0, 3):.2f}" for _ in range(count)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the drivers to be killed keep what Spark would leave behind in /tmp."""
    return tmp_path_factory.mktemp("drivers")


def driver(folder: Path, home: Path, point: str = "") -> int:
    """One life of a driver in a session of its own; returns its exit status."""
    options = f"-Djava.io.tmpdir={home} -XX:TieredStopAtLevel=1 -Xshare:auto"
    env = {**os.environ, "TMPDIR": str(home), "JAVA_TOOL_OPTIONS": options}
    command = [sys.executable, crash_driver.__file__, str(folder), *point.split()]
    with (folder / "errors").open("wb") as errors:
        child = subprocess.Popen(command, env=env, stderr=errors, start_new_session=True)
        try:
            return child.wait(timeout=120)
        finally:
            processes.end_session(child.pid)
            child.wait()


@pytest.mark.parametrize(
    "points",
    [
        pytest.param(INSIDE_COMMITS, id="inside both commits"),
        pytest.param(POINTS + random_instants(8), id="anywhere", marks=pytest.mark.slow),
    ],
)
def test_sigkill(tmp_path: Path, home: Path, points: list[str], expected: dict[str, Any]) -> None:
    """Twenty lives in all end by SIGKILL; the last one of a path gives the whole output."""
    write_input(tmp_path)
    for point in points:
        status = driver(tmp_path, home, point)
        if status == 0:  # all was done before its time: once more from the beginning
            check_output(tmp_path, expected)
            shutil.rmtree(tmp_path / "path")
            status = driver(tmp_path, home, point)
        assert status == -signal.SIGKILL, f"{point}: {errors_of(tmp_path)}"
    assert driver(tmp_path, home) == 0, errors_of(tmp_path)
    check_output(tmp_path, expected)


def errors_of(folder: Path) -> str:
    return (folder / "errors").read_text()[-3000:]


def check_output(folder: Path, expected: dict[str, Any]) -> None:
    for name, wanted in expected.items():
        found = pyarrow.feather.read_table(folder / f"{name}.feather")
        what = difference(wanted, from_table(found))
        assert what is None, f"{name}\n{what}"
    assert (folder / "late").read_text() == "0"
    assert_no_orphans(folder / "path")


# -- killed workers ----------------------------------------------------------------------------


def test_a_worker_that_dies_is_replaced(
    spark: Any, tmp_path: Path, expected: dict[str, Any]
) -> None:
    """Once in the middle of a task of ours, and between batches by somebody else."""
    write_input(tmp_path)
    flag = str(tmp_path / "died")

    def dies_once(value: int) -> bool:
        if not Path(flag).exists():
            Path(flag).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    killed: list[int] = []

    def kill_one(report: Any) -> None:
        for pid in processes.spark_workers()[:1] if len(killed) < 2 else []:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:
        queries = add_streams(engine, tmp_path)
        engine.function("dies_once", dies_once, "BOOLEAN", arguments=["BIGINT"])
        through = engine.query("SELECT v FROM a WHERE dies_once(v)", "through")
        engine.run(kill_one)
        assert killed
        assert Path(flag).exists()
        assert through.results().num_rows == 3 * FILES
        for name, wanted in expected.items():
            assert difference(wanted, from_table(queries[name].results())) is None
    assert_no_orphans(tmp_path / "path")


# -- refusals ----------------------------------------------------------------------------------


@pytest.fixture
def used(spark: Any, tmp_path: Path) -> Path:
    """A path after a run over the first two files, not closed."""
    for name, table in TABLES.items():
        write_files(tmp_path / name, table.slice(0, 6), (3,))
    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:
        add_streams(engine, tmp_path)
        engine.start()
        wait_until(lambda: rows_in(engine, "a") == rows_in(engine, "b") == 6)
        engine.stop()
    return tmp_path


def contents(path: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_what_does_not_match_is_refused(spark: Any, used: Path, expected: dict[str, Any]) -> None:
    """In turn: streams missing or with sources swapped; the checkpoint lost, another's, emptied.
    After all that the right ones, in another order, give the output of an undisturbed run."""
    path = used / "path"
    with tw.Engine(spark, path) as engine:
        frame = file_frame(spark, used / "a", schema=crash_driver.SCHEMA)
        engine.stream("a", frame, "ts", idle=None)
        with pytest.raises(ConfigError, match="query joined of an earlier run cannot go on"):
            engine.run()
    with tw.Engine(spark, path) as engine:
        add_streams(engine, used, "ab")
        with pytest.raises(GroupMismatch, match="stream c of ingest group 1 is not registered"):
            engine.run()
    with tw.Engine(spark, path) as engine:
        add_streams(engine, used, "abc", swapped=True)
        with pytest.raises(GroupMismatch, match="same sources"):
            engine.run()

    checkpoint, aside = path / "checkpoints" / "group-1", used / "aside"
    checkpoint.rename(aside)
    refuse_checkpoint(spark, used, "is missing.*\n.*restore the checkpoint")
    shutil.copytree(aside, checkpoint)
    (checkpoint / ".metadata.crc").unlink()
    (checkpoint / "metadata").write_text('{"id":"00000000-0000-0000-0000-000000000000"}')
    refuse_checkpoint(spark, used, "belongs to another query")
    shutil.rmtree(checkpoint)
    shutil.copytree(aside, checkpoint)
    shutil.rmtree(checkpoint / "offsets")
    refuse_checkpoint(spark, used, "has lost batches")
    shutil.rmtree(checkpoint)
    aside.rename(checkpoint)

    for name, table in TABLES.items():
        write_files(used / name, table.slice(6), EACH_FILE[: FILES - 3], first=2)
    with tw.Engine(spark, path, parallelism=3) as engine:
        queries = add_streams(engine, used, "cba")
        engine.run()
        for name, wanted in expected.items():
            assert difference(wanted, from_table(queries[name].results())) is None
    assert_no_orphans(path)


def refuse_checkpoint(spark: Any, folder: Path, message: str) -> None:
    with tw.Engine(spark, folder / "path") as engine:
        add_streams(engine, folder)
        with pytest.raises(CheckpointLost, match=message):
            engine.run()


def test_a_path_has_one_owner(spark: Any, tmp_path: Path) -> None:
    with tw.Engine(spark, tmp_path / "path"):
        with pytest.raises(PathInUse, match=f"in use by process {os.getpid()}"):
            tw.Engine(spark, tmp_path / "path")
        with tw.Engine(spark, tmp_path / "other"):
            pass
    tw.Engine(spark, tmp_path / "path").close()


def test_a_newer_format_is_left_alone(spark: Any, used: Path) -> None:
    path = used / "path"
    (path / "format.json").write_text(json.dumps({"format": 99}))
    before = contents(path)
    with pytest.raises(FormatTooNew, match=r"format 99.*\n.*upgrade"):
        tw.Engine(spark, path)
    assert contents(path) == before
