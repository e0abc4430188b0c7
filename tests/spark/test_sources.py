"""Where rows may come from besides streaming DataFrames and good files."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg import Engine
from thalweg.errors import ConfigError, DuplicateName, SourceError, TypeMismatch, UnknownName
from thalweg.runtime.sources.push import Heartbeat

pytestmark = pytest.mark.spark
UTC = pa.timestamp("us", "UTC")
COLUMNS = "k BIGINT, x DOUBLE, ts TIMESTAMP"


def rows(first: int, count: int) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([i % 3 for i in range(first, first + count)], pa.int64()),
            "x": pa.array([i / 2 for i in range(first, first + count)]),
            "ts": pa.array([i * 1_000_000 for i in range(first, first + count)], UTC),
        }
    )


def wait_for(condition: Any, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "waited too long"
        time.sleep(0.05)


def test_from_spark_takes_any_source(spark: Any, tmp_path: Path) -> None:
    pq.write_table(rows(0, 30), tmp_path / "a.parquet")
    with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
        engine.sql(
            f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY ts "
            f"FROM SPARK 'parquet' OPTIONS (path = '{tmp_path}', pathGlobFilter = '*.parquet')"
        )
        query = engine.query("SELECT k, x FROM s WHERE k = 1")
        engine.run()
        assert query.results().num_rows == 10
        for columns, error, message in (
            ("when_ TIMESTAMP, value BIGINT", SourceError, "has no column when_"),
            ("timestamp TIMESTAMP, value INT", TypeMismatch, "value is BIGINT in the source"),
        ):
            first = columns.split()[0]
            with pytest.raises(error, match=message):
                engine.sql(f"CREATE STREAM r ({columns}) TIMESTAMP BY {first} FROM SPARK 'rate'")
        with pytest.raises(SourceError, match="kafka"):
            engine.sql(f"CREATE STREAM r ({COLUMNS}) TIMESTAMP BY ts FROM SPARK 'kafka'")


def test_records_that_do_not_fit_are_rejects(spark: Any, tmp_path: Path) -> None:
    """As from Kafka: the value of each record is JSON, or is not."""
    lines = [
        json.dumps({"k": 1, "x": 2.5, "ts": "1970-01-01T00:00:01Z"}),
        '{"k": 2, "x": 3.5, "ts": ',
        json.dumps({"k": "two", "x": 1.0, "ts": "1970-01-01T00:00:02Z"}),
        json.dumps({"k": 3, "x": None, "ts": "1970-01-01T00:00:03Z"}),
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("\n".join(lines) + "\n")
    with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
        engine.sql(
            f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY ts "
            f"FROM SPARK 'text' FORMAT json OPTIONS (path = '{tmp_path / 'in'}')"
        )
        query = engine.query("SELECT k, x FROM s")
        bad = engine.query("SELECT reason FROM s.rejects")
        engine.run()
        assert sorted(query.results().column("k").to_pylist()) == [1, 3]
        reasons = bad.results().column("reason").to_pylist()
        assert len(reasons) == 2
        assert all(r.startswith("malformed record: {") for r in reasons)
        assert engine.rejects("s").num_rows == 2


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_file_with_bad_records_gives_the_good_ones(spark: Any, tmp_path: Path, form: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    stamp = "1970-01-01 00:00:0"
    texts = {
        "csv": f"k,x,ts\n1,1.5,{stamp}1\nmany,2.5,{stamp}2\n3,3.5\n4,4.5,{stamp}4\n5,5.5,then\n",
        "json": "\n".join(
            [
                json.dumps({"k": 1, "x": 1.5, "ts": f"{stamp}1"}),
                "{broken",
                "[1, 2]",
                json.dumps({"k": 4, "x": 4.5, "ts": f"{stamp}4"}),
                json.dumps({"k": 5, "x": "?", "ts": f"{stamp}5"}),
            ]
        ),
        "parquet": "PAR1 this is no parquet file",
    }
    (folder / f"a.{form}").write_text(texts[form])
    if form == "parquet":
        pq.write_table(rows(0, 4), folder / "b.parquet")
    with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
        engine.sql(
            f"CREATE STREAM s ({COLUMNS}) TIMESTAMP BY ts LATENESS 1 HOUR "
            f"FROM FILES '{folder}' FORMAT {form}"
        )
        query = engine.query("SELECT k FROM s")
        engine.run()
        found = sorted(query.results().column("k").to_pylist())
        reasons = engine.rejects("s").column("__reason").to_pylist()
    if form == "parquet":
        assert found == [0, 0, 1, 2]
        assert len(reasons) == 1
        assert reasons[0].startswith("unreadable file")
    else:
        assert found == [1, 4]
        assert len(reasons) == 3
        assert all(r.startswith("malformed record") for r in reasons)


def test_a_generator_is_taken_in_once_across_restarts(spark: Any, tmp_path: Path) -> None:
    calls: list[int] = []

    def items() -> Iterator[Any]:
        calls.append(1)
        yield rows(0, 5)
        yield {"k": 7, "x": 0.5, "ts": 5_000_000}
        yield [{"k": "seven", "x": 0.5, "ts": 6_000_000}, {"k": 8, "x": 1.0, "ts": 7_000_000}]
        yield rows(8, 2).to_batches()[0]

    wanted = [0, 1, 2, 0, 1, 7, 8, 2, 0]
    for _ in range(2):
        with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
            engine.feed("s", items, COLUMNS, timestamp="ts")
            query = engine.query("SELECT k FROM s", name="q")
            engine.run()
            assert query.results().column("k").to_pylist() == wanted
            assert engine.rejects("s").num_rows == 1
    assert len(calls) == 2


def test_a_source_that_fails_says_so_and_loses_nothing(spark: Any, tmp_path: Path) -> None:
    broken = [True]

    def items() -> Iterator[Any]:
        yield rows(0, 5)
        if broken[0]:
            raise RuntimeError("the line is dead")
        yield rows(5, 5)

    with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
        engine.feed("s", items, COLUMNS, timestamp="ts")
        query = engine.query("SELECT k FROM s", name="q")
        with pytest.raises(SourceError, match="the line is dead"):
            engine.run()
        broken[0] = False
        engine.run()
        assert query.results().num_rows == 10


def test_an_arrow_reader_is_a_stream(spark: Any, tmp_path: Path) -> None:
    reader = pa.RecordBatchReader.from_batches(rows(0, 1).schema, rows(0, 9).to_batches(2))
    with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
        engine.feed("s", reader, timestamp="ts")
        query = engine.query("SELECT count(*) AS n FROM s")
        engine.run()
        assert query.invoke().to_pylist() == [{"n": 9}]


def test_replay_gives_the_same_as_the_stream_did(spark: Any, tmp_path: Path) -> None:
    """Retained history and tables at rest, in the order of time, as fast as can be or paced."""
    text = "SELECT k, count(*) AS n FROM {} [RANGE 4 SECONDS] GROUP BY k"
    with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
        engine.feed("s", lambda: [rows(0, 20)], COLUMNS, timestamp="ts", retain="1 hour")
        first = engine.query(text.format("s"), name="first")
        engine.run()
        kept = engine.history("s")
        assert kept.num_rows == 20
        assert engine.history("s", since=5_000_000, until=8_000_000).num_rows == 3
        frame = spark.createDataFrame(kept.drop_columns(["__ts"]))
        expected = first.results()
    with Engine(spark, tmp_path / "again", parallelism=2) as engine:
        engine.replay("a", frame.orderBy("x", ascending=False), "ts")
        engine.replay("b", kept, "ts", speed=20)
        queries = [engine.query(text.format(n)) for n in "ab"]
        begun = time.monotonic()
        engine.run()
        assert time.monotonic() - begun > 19 / 20
        for query in queries:
            assert query.results().sort_by([("__ts", "ascending"), ("k", "ascending"), (
                "__sign", "ascending")]) == expected.sort_by([("__ts", "ascending"), (
                    "k", "ascending"), ("__sign", "ascending")])  # fmt: skip


def test_a_heartbeat_lets_others_go_on(spark: Any, tmp_path: Path) -> None:
    """A stream without rows holds the others back until its source says that none will come."""
    with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
        engine.feed("s", lambda: [rows(0, 10)], COLUMNS, timestamp="ts", idle=None)
        engine.feed("quiet", list, COLUMNS, timestamp="ts", idle=None)
        query = engine.query(
            "SELECT ISTREAM s.x FROM s [NOW] s LEFT JOIN quiet [RANGE 1 SECOND] q ON s.k = q.k"
        )
        engine.start()
        time.sleep(1.5)
        assert query.results().num_rows == 0
        engine.heartbeat("quiet", 5_000_000)
        wait_for(lambda: query.results().num_rows == 5)
        engine.heartbeat("quiet", 60_000_000)
        wait_for(lambda: query.results().num_rows >= 9)
        engine.stop()
        with pytest.raises(UnknownName):
            engine.heartbeat("nobody", 1)
    assert Heartbeat(5).at == 5


def test_a_table_changes_while_the_engine_runs(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"k": [1], "w": ["old"]}), tmp_path / "t" / "t.parquet")
    gate = [False]

    def items() -> Iterator[Any]:
        yield rows(0, 3)
        while not gate[0]:
            time.sleep(0.02)
        yield rows(3, 4)

    with Engine(spark, tmp_path / "engine", parallelism=2) as engine:
        engine.feed("s", items, COLUMNS, timestamp="ts")
        engine.sql(f"CREATE TABLE t FROM FILES '{tmp_path / 't'}' FORMAT parquet")
        query = engine.query("SELECT ISTREAM s.x, t.w FROM s [NOW] s JOIN t ON s.k = t.k")
        engine.start()
        wait_for(lambda: query.results().num_rows == 1)
        pq.write_table(pa.table({"k": [1], "w": ["new"]}), tmp_path / "t" / "t.parquet")
        engine.sql("REFRESH TABLE t")
        wait_for(lambda: len(engine.core.state.versions["t"]) == 2)
        with pytest.raises(DuplicateName, match="defined differently"):
            engine.table("t", pa.table({"k": [1]}))
        gate[0] = True
        wait_for(lambda: query.results().num_rows == 2)
        engine.stop()
        assert query.results().column("w").to_pylist() == ["old", "new"]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_stream_from_a_single_file(spark: Any, tmp_path: Path, scheme: str) -> None:
    (tmp_path / "one.csv").write_text("k,ts\n1,2026-01-01 00:00:00\n")
    (tmp_path / "other.csv").write_text("k,ts\n2,2026-01-01 00:00:00\n")
    with Engine(spark) as engine:
        engine.sql(
            "CREATE STREAM s (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts "
            f"FROM FILES '{scheme}{tmp_path}/one.csv' FORMAT csv"
        )
        query = engine.query("SELECT k FROM s")
        engine.run()
        assert query.results()["k"].to_pylist() == [1]


def test_a_secret_that_is_not_there_is_refused_before_the_query_starts(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"k": 1, "ts": 1}]
    sql = f"SELECT k FROM s INTO SPARK 'json' OPTIONS (path = '{tmp_path}/out', x = SECRET 'NO_PW')"
    with Engine(spark, path=tmp_path / "engine") as engine:
        engine.feed("s", lambda: iter(rows), "k BIGINT, ts TIMESTAMP", "ts")
        with pytest.raises(ConfigError, match="there is no secret NO_PW"):
            engine.query(sql, "q")
        monkeypatch.setenv("NO_PW", "hunter2")
        engine.query(sql, "r")
        engine.run()
        assert engine.queries["r"].stats()["sink_error"] is None
    assert any((tmp_path / "out").rglob("*.json"))
    kept = [f.read_bytes() for f in (tmp_path / "engine").rglob("*") if f.is_file()]
    assert not any(b"hunter2" in content for content in kept)
