"""Engines in the background: time passes without data, callbacks follow commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cases import file_frame, rows_in, wait_until, write_files

import thalweg as tw
from thalweg.runtime.epoch import driver as loop
from thalweg.testing.compare import difference, from_table

pytestmark = pytest.mark.spark

SECOND = 1_000_000
SCHEMA = "ts TIMESTAMP, id BIGINT"


def rows(*seconds: int) -> pa.Table:
    ts = pa.array([s * SECOND for s in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "id": pa.array(seconds, pa.int64())})


def test_results_appear_while_time_passes(spark: Any, tmp_path: Path) -> None:
    """A row leaves its window, and a window of boundaries closes, though nothing more arrives."""
    folder = write_files(tmp_path / "files", rows(10), ())
    seen: list[tuple[pa.Table, int]] = []
    with tw.Engine(spark, tmp_path / "path", parallelism=1) as engine:

        def called(table: pa.Table) -> None:
            outputs = engine.core.committer.committed["outputs"]
            seen.append((table, sum(k.startswith("gone/") for k in outputs)))

        engine.stream("s", file_frame(spark, folder, schema=SCHEMA), "ts", idle="1 second")
        gone = engine.query("SELECT DSTREAM id FROM s [RANGE 1 SECOND]", "gone", called)
        slide = "SELECT ISTREAM count(*) AS n FROM s [RANGE 2 SECONDS SLIDE 2 SECONDS]"
        slides = engine.query(slide, "slides")
        engine.start()
        wait_until(lambda: gone.results().num_rows and 1 in slides.results()["n"].to_pylist(), 30)
        write_files(folder, rows(100, 101), (1,), first=1)
        wait_until(lambda: gone.results().num_rows == 3, 30)
        engine.stop()
        assert from_table(gone.results()) == [
            ((s + 1) * SECOND + 1, 1, (s,)) for s in (10, 100, 101)
        ]
        together = pa.concat_tables([table for table, _ in seen])
        assert difference(from_table(gone.results()), from_table(together)) is None
        # each was handed over after its own epoch was committed, and before the next one
        assert [committed for _, committed in seen] == list(range(1, len(seen) + 1))


def test_listeners_follow_an_engine(spark: Any, tmp_path: Path) -> None:
    """Settings reach the engine; every epoch is told to all, and one that raises harms nobody."""
    folder = write_files(tmp_path / "files", rows(1, 2, 3, 4), (2,))
    heard: list[dict[str, Any]] = []
    failed: list[int] = []

    def broken(report: Any) -> None:
        failed.append(report.epoch)
        raise RuntimeError("not my day")

    config = tw.Config(
        path="unused", parallelism=2, results_retain=7200 * SECOND, idle=None,
        tick_seconds=0.25, poll_seconds=0.05,
    )  # fmt: skip
    with tw.Engine(spark, tmp_path / "path", parallelism=1, config=config) as engine:
        assert (engine.path, engine.parallelism) == (str(tmp_path / "path"), 1)
        assert engine.core.settings.results_retain == 7200 * SECOND
        stream = engine.stream("s", file_frame(spark, folder, schema=SCHEMA), "ts")
        assert stream.idle is None
        query = engine.query("SELECT id FROM s", "all")
        engine.add_listener(broken)
        engine.add_listener(lambda report: heard.append(report.to_dict()))
        engine.run()
        engine.remove_listener(broken)
        assert query.results().num_rows == 4
        engine.start()
        driver = engine.core.changes.driver
        assert driver is not None
        assert (driver.tick_seconds, driver.poll_seconds) == (0.25, 0.05)
        engine.stop()
    assert len(failed) == 1
    assert sum(r["rows_in"] for r in heard) == sum(r["rows_out"].get("all", 0) for r in heard) == 4
    assert sum(r["ingest_seconds"] for r in heard) > 0
    assert all(r["commit_seconds"] > 0 for r in heard)


def test_time_away_is_not_silence(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an hour off, what piled up meanwhile is in time, however short IDLE is; and with
    nothing new at all, time goes on from where it was."""
    folder = write_files(tmp_path / "files", rows(10), ())
    real, away = loop.wall_clock, [0]
    monkeypatch.setattr(loop, "wall_clock", lambda: real() + away[0])

    def life(until: Any) -> list[int]:
        with tw.Engine(spark, tmp_path / "path", parallelism=1) as engine:
            engine.stream("s", file_frame(spark, folder, schema=SCHEMA), "ts", idle="1 second")
            gone = engine.query("SELECT DSTREAM id FROM s [RANGE 1 SECOND]", "gone")
            engine.start()
            wait_until(lambda: until(engine, gone.results()["id"].to_pylist()), 30)
            engine.stop()
            assert engine.rejects("s").num_rows == 0
            away[0] += 3600 * SECOND
            return gone.results()["id"].to_pylist()

    life(lambda engine, found: rows_in(engine, "s") == 1)
    write_files(folder, rows(20, 21), (1,), first=1)
    life(lambda engine, found: rows_in(engine, "s") == 3)
    assert life(lambda engine, found: len(found) == 3) == [10, 20, 21]
