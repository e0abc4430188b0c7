"""A source that fails is visible, stops no other, and makes none of its rows late."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import wait_until

import thalweg as tw

pytestmark = pytest.mark.spark

SCHEMA = "k BIGINT, ts TIMESTAMP"


def rows_of(count: int, error: str | None = None) -> Any:
    def feed() -> Iterator[dict[str, Any]]:
        for i in range(count):
            yield {"k": i, "ts": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=i)}
            time.sleep(0.01)
        if error is not None:
            raise RuntimeError(error)

    return feed


def test_a_feed_that_fails_is_shown_and_the_others_go_on(spark: Any, tmp_path: Path) -> None:
    with tw.Engine(spark, tmp_path / "path") as engine:
        engine.feed("bad", rows_of(1, "the source broke"), SCHEMA, "ts", idle="1 second")
        engine.feed("good", rows_of(200), SCHEMA, "ts", idle="1 second")
        good = engine.query("SELECT k FROM good", "good_rows")
        bad = engine.query("SELECT k FROM bad", "bad_rows")
        engine.start()
        wait_until(lambda: good.stats()["emitted"] == 200, 30)
        assert "the source broke" in str(engine.sql("SHOW STREAMS").to_pylist())
        assert "the source broke" in str(bad.stats()["streams"])
        with pytest.raises(tw.errors.SourceError, match="the source broke"):
            engine.stop()


def test_one_bad_source_does_not_stop_the_others(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    stamps = pa.array(range(20), pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"k": list(range(20)), "ts": stamps}), tmp_path / "a" / "1.parquet")
    with tw.Engine(spark, tmp_path / "path") as engine:
        engine.sql(
            f"CREATE STREAM a ({SCHEMA}) TIMESTAMP BY ts FROM FILES '{tmp_path}/a' FORMAT parquet;"
            "CREATE STREAM b (value STRING) TIMESTAMP BY ARRIVAL "
            "FROM SPARK 'socket' OPTIONS (host = '127.0.0.1', port = '1');"
            "CREATE QUERY of_a AS SELECT k FROM a; CREATE QUERY of_b AS SELECT value FROM b"
        )
        with pytest.raises(tw.errors.SourceError, match="Connection refused"):
            engine.run()
        assert engine.queries["of_a"].results().num_rows == 20
        shown = {r["name"]: str(r) for r in engine.sql("SHOW STREAMS").to_pylist()}
        assert "Connection refused" in shown["b"]
        assert "Connection refused" not in shown["a"]


def test_rows_of_a_source_that_is_mended_are_not_late(spark: Any, tmp_path: Path) -> None:
    """The end of a run does not pass a stream whose source has failed."""
    breaks = [True]

    def feed() -> Iterator[dict[str, Any]]:
        for i in range(4):
            if i == 2 and breaks:
                raise RuntimeError("the source broke")
            yield {"k": i, "ts": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=i)}

    with tw.Engine(spark, tmp_path / "path") as engine:
        engine.feed("bad", feed, SCHEMA, "ts", lateness="1 minute")
        engine.feed("good", rows_of(60), SCHEMA, "ts")
        both = engine.query(
            "SELECT ISTREAM a.k FROM bad [RANGE 1 HOUR] a, good [RANGE 1 HOUR] b WHERE a.k = b.k"
        )
        good = engine.query("SELECT k FROM good")
        with pytest.raises(tw.errors.SourceError, match="the source broke"):
            engine.run()
        assert good.results().num_rows == 60
        breaks.clear()
        engine.run()
        assert sorted(both.results()["k"].to_pylist()) == [0, 1, 2, 3]
        assert both.stats()["streams"]["bad"]["late"] == 0
        assert engine.sql("SHOW STREAMS")["error"].to_pylist() == [None, None]
