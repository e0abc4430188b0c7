"""Engine and Runner emit the same: any batches, any number of tasks, restarts, other masters."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import cases
import pyarrow.feather
import pyspark
import pytest
from cases import ROWS, STREAMS, assert_same, file_frame, lateness, prepare, rows_in, wait_until

import thalweg as tw
from thalweg.testing.compare import difference, from_table
from thalweg.testing.generators import cuts
from thalweg.testing.runner import Runner

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return cases.expected_results()


def test_one_file_per_batch_one_task(spark: Any, tmp_path: Path, expected: dict[str, Any]) -> None:
    with tw.Engine(spark, tmp_path / "path", parallelism=1) as engine:
        for i, name in enumerate(("s1", "s2")):
            table = STREAMS[name].table
            folder = cases.write_files(tmp_path / name, table, (3 + i, 11, 12, 19))
            engine.stream(name, file_frame(spark, folder), "ts", lateness=lateness(name))
        queries = prepare(engine)
        reports: list[Any] = []
        engine.run(reports.append)
        assert len(reports) > 1  # ingest may be ahead: an epoch takes all that is there
        assert_same(expected, queries)


def test_files_of_any_size_at_once_two_tasks(
    spark: Any, tmp_path: Path, expected: dict[str, Any]
) -> None:
    """FROM FILES; with one batch for all, the order of the files is of no importance."""
    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:
        for i, name in enumerate(("s1", "s2")):
            folder = cases.write_files(tmp_path / name, STREAMS[name].table, cuts(i, ROWS))
            late = f"LATENESS {lateness(name)} MICROSECONDS"
            engine.sql(
                f"CREATE STREAM {name} ({cases.SCHEMA}) TIMESTAMP BY ts {late} "
                f"FROM FILES '{folder}' FORMAT parquet"
            )
        queries = prepare(engine)
        engine.run()
        assert_same(expected, queries)


def test_restart_and_a_new_stream_three_tasks(
    spark: Any, tmp_path: Path, expected: dict[str, Any]
) -> None:
    half, path = ROWS // 2, tmp_path / "path"
    halves = {n: (s.table.slice(0, half), s.table.slice(half)) for n, s in STREAMS.items()}
    join = (
        "SELECT a.k, a.n, c.n AS cn FROM s1 [RANGE 4 SECONDS] a, s3 [RANGE 5 SECONDS] c "
        "WHERE a.k = c.k"
    )

    with tw.Engine(spark, path, parallelism=3) as engine:
        register(engine, spark, tmp_path, {n: halves[n][0] for n in ("s1", "s2")}, 0)
        prepare(engine)
        engine.start()
        wait_until(lambda: rows_in(engine, "s1") == rows_in(engine, "s2") == half)
        engine.stop()
    with tw.Engine(spark, path, parallelism=2) as engine:
        second = {"s1": halves["s1"][1], "s2": halves["s2"][1], "s3": STREAMS["s3"].table}
        register(engine, spark, tmp_path, second, 2)
        queries = prepare(engine)
        added = engine.query(join, "added")
        engine.run()
        assert_same(expected, queries)
        assert set(engine.core.state.groups) == {"1", "2"}

        runner = Runner()
        for name in STREAMS:
            runner.stream(name, STREAMS[name].table, lateness=lateness(name))
        runner.query("SELECT k FROM s1", "keeps_s1")
        runner.feed({n: halves[n][0] for n in ("s1", "s2")})
        wanted = runner.query(join, "added")
        runner.feed(second)
        runner.close()
        assert wanted.results().num_rows
        assert difference(from_table(wanted.results()), from_table(added.results())) is None


def register(engine: Any, spark: Any, root: Path, tables: dict[str, Any], first: int) -> None:
    for name, table in tables.items():
        point = Random(f"{name} {first}").randrange(1, table.num_rows)
        folder = cases.write_files(root / name, table, (point,), first)
        frame = file_frame(spark, folder)
        engine.stream(name, frame, "ts", lateness=lateness(name), idle=None)


def test_local_cluster(tmp_path: Path, expected: dict[str, Any]) -> None:
    """Two executors in processes of their own, one core each."""
    for name in ("s1", "s2"):
        cases.write_files(tmp_path / name, STREAMS[name].table, (7,))
    with tempfile.TemporaryDirectory(prefix="tw-") as short:  # sockets have short names only
        _run_on_a_cluster(tmp_path, spark_home(Path(short, "spark")))
    for title in cases.ABROAD:
        table = pyarrow.feather.read_table(tmp_path / f"{cases.query_name(title)}.feather")
        what = difference(from_table(expected[title].results()), from_table(table))
        assert what is None, f"{title}\n{what}"


def _run_on_a_cluster(root: Path, home: Path) -> None:
    env = {**os.environ, "SPARK_HOME": str(home), "TMPDIR": str(home)}
    env["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={home} -XX:TieredStopAtLevel=1"
    command = [sys.executable, cases.__file__, "local-cluster[2,1,1024]", str(root)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]


def spark_home(folder: Path) -> Path:
    """The installed Spark, but the work folders of its executors end up here."""
    folder.mkdir()
    for entry in Path(pyspark.__path__[0]).iterdir():
        if entry.name != "work":
            (folder / entry.name).symlink_to(entry)
    return folder
