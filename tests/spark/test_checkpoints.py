"""Spark's checkpoints of ingest beside our log: what one has and the other lacks, what a power
failure leaves, and how many files there are after many batches."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import aged

import thalweg as tw
from thalweg.errors import PathError
from thalweg.spark.checkpoints import LocalCheckpoint

pytestmark = pytest.mark.spark
ROWS = 4


def write_file(folder: Path, number: int) -> None:
    numbers = range(number * ROWS, (number + 1) * ROWS)
    stamps = pa.array([n * 1000 for n in numbers], pa.timestamp("us", "UTC"))
    folder.mkdir(exist_ok=True)
    draft = folder / f".{number}"
    pq.write_table(pa.table({"v": list(numbers), "ts": stamps}), draft)
    aged(draft, number)
    draft.rename(folder / f"{number}.parquet")


def opened(spark: Any, folder: Path) -> tw.Engine:
    engine = tw.Engine(spark, folder / "path", parallelism=1)
    engine.sql(f"""CREATE STREAM s (v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts
        FROM FILES '{folder / "in"}' FORMAT parquet OPTIONS (max_files_per_trigger = 1)""")
    return engine


def values(engine: tw.Engine) -> list[int]:
    query = engine.query("SELECT ISTREAM v FROM s", "q")
    engine.run()
    return sorted(query.results()["v"].to_pylist())


@pytest.fixture
def used(spark: Any, tmp_path: Path) -> Path:
    """A path after a run over three files."""
    for number in range(3):
        write_file(tmp_path / "in", number)
    with opened(spark, tmp_path) as engine:
        assert values(engine) == list(range(3 * ROWS))
    return tmp_path


def checkpoint(folder: Path) -> Path:
    return folder / "path/checkpoints/group-1"


def test_a_log_entry_that_is_lost_is_missed(spark: Any, used: Path) -> None:
    """Of the last batch only Spark knows: it has committed it, so it would not read it again."""
    before = shutil.copytree(used / "path", used / "before")
    write_file(used / "in", 3)
    with opened(spark, used) as engine:
        values(engine)
    assert (checkpoint(used) / "commits/3").exists()
    # the path as of before, but Spark's checkpoint as of afterwards: an entry has been lost
    shutil.rmtree(before / "checkpoints")
    shutil.copytree(used / "path/checkpoints", before / "checkpoints")
    shutil.rmtree(used / "path")
    before.rename(used / "path")
    with opened(spark, used) as engine:
        engine.query("SELECT ISTREAM v FROM s", "q")
        with pytest.raises(PathError, match="the log has lost batches of ingest group 1"):
            engine.run()


def test_files_that_were_being_written_as_the_power_failed_are_no_obstacle(
    spark: Any, used: Path
) -> None:
    """A commit that is empty, and the beginnings of a batch that the log does not know."""
    folder = checkpoint(used)
    newest = max((folder / "commits").glob("[0-9]*"), key=lambda f: int(f.name))
    newest.write_bytes(b"")
    for begun in (folder / "offsets/3", folder / "sources/0/3"):
        assert not begun.exists()
        begun.write_bytes(b"")
    write_file(used / "in", 3)
    with opened(spark, used) as engine:
        assert values(engine) == list(range(4 * ROWS))
    write_file(used / "in", 4)
    with opened(spark, used) as engine:
        assert values(engine) == list(range(5 * ROWS))


def test_what_spark_says_of_a_batch_is_on_disk_before_the_log_says_it_is_read(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[set[str]] = []
    real = LocalCheckpoint.force

    def force(self: LocalCheckpoint) -> None:
        real(self)
        forced.append({f.relative_to(self._path).as_posix() for f in self._forced})

    monkeypatch.setattr(LocalCheckpoint, "force", force)
    for number in range(3):
        write_file(tmp_path / "in", number)
    with opened(spark, tmp_path) as engine:
        values(engine)
    assert len(forced) == 3
    for batch, names in enumerate(forced):
        assert {"metadata", f"offsets/{batch}", f"sources/0/{batch}"} <= names
        assert batch == 0 or f"commits/{batch - 1}" in names


def test_checkpoints_stop_growing(spark: Any, tmp_path: Path) -> None:
    """Many batches leave no more files behind than some."""
    for number in range(45):
        write_file(tmp_path / "in", number)
    with opened(spark, tmp_path) as engine:
        engine.run()
    logs = {d: len(list((checkpoint(tmp_path) / d).glob("[0-9]*"))) for d in ("offsets", "commits")}
    assert max(logs.values()) <= 20
