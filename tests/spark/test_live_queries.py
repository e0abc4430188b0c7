"""Queries that come, change and go while an engine runs, from threads and other processes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import wait_until

import thalweg as tw
from thalweg.cli import main
from thalweg.errors import ConfigError, DuplicateName, UnknownName
from thalweg.runtime.session.client import Receipt
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

pytestmark = pytest.mark.spark

SCHEMA = "k BIGINT, v BIGINT, ts TIMESTAMP"


def rows(since: int, until: int) -> pa.Table:
    times = list(range(since, until))
    return pa.table(
        {
            "k": pa.array([t % 3 for t in times], pa.int64()),
            "v": pa.array([t * 7 % 11 for t in times], pa.int64()),
            "ts": pa.array([t * 1000 for t in times], pa.timestamp("us", "UTC")),
        }
    )


class Tap:
    """A stream that gives what is put in, to every reader from the beginning, until it is shut."""

    def __init__(self) -> None:
        self.items: list[pa.Table] = []
        self.is_shut = False

    def __call__(self) -> Iterator[pa.Table]:
        given = 0
        while given < len(self.items) or not self.is_shut:
            if given < len(self.items):
                yield self.items[given]
                given += 1
            else:
                time.sleep(0.005)

    def put(self, since: int, until: int) -> None:
        self.items.append(rows(since, until))

    def shut(self) -> None:
        self.is_shut = True


def started(spark: Any, path: Path, tap: Tap, **options: Any) -> tw.Engine:
    engine = tw.Engine(spark, path, parallelism=2)
    engine.feed("s", tap, SCHEMA, "ts", idle=None, **options)
    return engine


def seen(query: Any, count: int) -> None:
    wait_until(lambda: query.stats()["streams"]["s"]["rows"] >= count, 30)


def expected(sql: str, until: int) -> Any:
    made = Runner()
    made.stream("s", rows(0, until))
    query = made.query(sql, "q")
    made.run()
    return query


COUNTS = "SELECT k, count(*) AS n FROM s [RANGE 20 MILLISECONDS] GROUP BY k"
HIGH = "SELECT ISTREAM k, v FROM s WHERE v > 4"


def test_queries_come_from_other_threads(spark: Any, tmp_path: Path) -> None:
    """Others' output does not depend on them; registration returns when it is committed."""
    tap = Tap()
    with started(spark, tmp_path / "p", tap, retain="1 hour") as engine:
        counts = engine.query(COUNTS, "counts")
        engine.start()
        tap.put(0, 100)
        seen(counts, 100)
        made: list[Any] = []

        def register(i: int) -> None:
            made.append(engine.query(f"{HIGH} AND k = {i % 3} AND v <> {i}", f"high{i}"))
            assert f"high{i}" in engine.core.committer.committed["queries"]

        threads = [threading.Thread(target=register, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(made) == 8
        with pytest.raises(DuplicateName):
            engine.query(HIGH, "high1")
        with pytest.raises(UnknownName):
            engine.query("SELECT x FROM nowhere")
        engine.sql("PAUSE counts; DROP QUERY high2; CREATE VIEW big AS SELECT k FROM s WHERE v > 9")
        tap.put(100, 150)
        engine.sql("CREATE QUERY bigs AS SELECT ISTREAM k FROM big; RESUME counts")
        tap.put(150, 200)
        seen(counts, 200)
        tap.shut()
        wait_until(lambda: counts.stats()["frontier"] >= 199_000, 30)
        engine.stop()
        engine.run()
        for i in (0, 1, 7):
            sql = f"{HIGH} AND k = {i % 3} AND v <> {i}"
            found = engine.queries[f"high{i}"].results()
            assert difference(from_table(expected(sql, 200).results()), from_table(found)) is None
        assert engine.queries["bigs"].results().num_rows == sum(
            v > 9 for v in rows(0, 200)["v"].to_pylist()
        )
        assert difference(from_table(expected(COUNTS, 200).results()),
                          from_table(counts.results())) is None  # fmt: skip


def test_a_callback_may_register_what_comes_next(spark: Any, tmp_path: Path) -> None:
    """It runs between two epochs: nothing to wait for, and no deadlock."""
    tap = Tap()
    with started(spark, tmp_path / "p", tap, retain="1 hour") as engine:

        def called(table: pa.Table) -> None:
            if "second" not in engine.queries:
                engine.query("SELECT ISTREAM v FROM s WHERE v = 1", "second")

        engine.query(HIGH, "first", called)
        engine.start()
        tap.put(0, 50)
        wait_until(lambda: "second" in engine.queries, 30)
        second = engine.queries["second"]
        tap.put(50, 80)
        seen(second, 80)
        tap.shut()
        engine.stop()
        engine.run()
        assert second.results().num_rows == sum(v == 1 for v in rows(0, 80)["v"].to_pylist())


CLIENT = """
import sys, thalweg as tw
client = tw.connect(sys.argv[1])
assert client.is_running
client.query("SELECT k, count(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k", "far")
client.sql("ALTER QUERY near AS SELECT ISTREAM k, v FROM s WHERE v > 8")
try:
    client.sql("CREATE QUERY bad AS SELECT nothing FROM s")
except tw.errors.UnknownName as error:
    assert error.column == 28, error.column
else:
    raise SystemExit("not refused")
print(client.queries()["name"].to_pylist())
print(client.sql("EXPLAIN far").splitlines()[0])
client.sql("DROP QUERY gone")
"""


def test_another_process_manages_an_engine(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Register, alter, list, explain and drop through the path alone; days later, invoke."""
    tap, path = Tap(), tmp_path / "p"
    with started(spark, path, tap, retain="1 hour") as engine:
        near = engine.query(HIGH, "near")
        engine.query(HIGH, "gone")
        engine.start()
        tap.put(0, 100)
        seen(near, 100)
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, str(path)], capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0] == "['near', 'gone', 'far']"
        assert set(engine.queries) == {"near", "far"}
        tap.put(100, 200)
        seen(near, 200)
        tap.shut()
        engine.stop()
        engine.run()
        late = near.results().filter(near.results()["__ts"].cast(pa.int64()).to_numpy() >= 100_000)
        assert set(late["v"].to_pylist()) == {9, 10}
    client = tw.connect(path)
    assert not client.is_running
    wanted = expected("SELECT k, count(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k", 200).invoke()
    assert client.invoke("far").sort_by("k") == wanted.sort_by("k").select(["k", "n"])
    assert client.results("near") == near.results()
    assert main(["sql", str(path), "INVOKE far", "--json"]) == 0
    assert '{"k": 0, "n": 67}' in capsys.readouterr().out
    assert main(["sql", str(path), "SHOW QUERIES"]) == 0
    assert "running" in capsys.readouterr().out
    assert main(["sql", str(path), "INVOKE nowhere"]) == 1
    assert main(["sql", str(path), "PAUSE near; RESUME near"]) == 0
    assert "written down for the next one" in capsys.readouterr().out
    receipt = client.query("SELECT ISTREAM v FROM s WHERE v = 3", "threes")
    assert isinstance(receipt, Receipt)
    with pytest.raises(ConfigError, match="no engine has answered"):
        receipt.result(timeout=0.05)
    with started(spark, path, tap, retain="1 hour") as again:
        again.run()
        assert again.queries["threes"].results().num_rows == 18
    receipt.result(1)
    assert client.results("threes").num_rows == 18


def test_foreign_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(tw.errors.PathError, match="is not the path of an engine"):
        tw.connect(tmp_path / "nothing")


def test_streams_come_while_the_engine_runs(spark: Any, tmp_path: Path) -> None:
    """A stream of files by SQL and one that Python feeds, each with a query, beside one that runs;
    a later run on the path knows all of them."""
    files = tmp_path / "files"
    files.mkdir()
    pq.write_table(rows(0, 30), files / "a.parquet")
    first, second = Tap(), Tap()
    declare = (
        f"CREATE STREAM f ({SCHEMA}) TIMESTAMP BY ts FROM FILES '{files}' FORMAT parquet; "
        "CREATE QUERY of_files AS SELECT ISTREAM v FROM f WHERE k = 1"
    )
    joined = "SELECT ISTREAM s.v, t.v AS w FROM s [RANGE 1 SECOND] s, t [RANGE 1 SECOND] t "
    joined += "WHERE s.k = t.k AND s.v = t.v"
    with started(spark, tmp_path / "path", first) as engine:
        engine.query("SELECT ISTREAM v FROM s", "of_s")
        engine.start()
        first.put(0, 20)
        seen(engine.queries["of_s"], 20)
        engine.sql(declare)
        engine.feed("t", second, SCHEMA, "ts", idle=None)
        engine.query(joined, "both")
        second.put(0, 25)
        first.put(20, 40)
        wait_until(lambda: engine.queries["of_files"].stats()["emitted"] == 10, 60)
        wait_until(lambda: engine.queries["both"].stats()["emitted"] > 0, 60)
        with pytest.raises(DuplicateName, match="defined differently"):
            engine.feed("t", second, "k BIGINT, ts TIMESTAMP", "ts")
        engine.stop()
    pq.write_table(rows(30, 60), files / "b.parquet")
    for tap in (first, second):
        tap.shut()
    with started(spark, tmp_path / "path", first) as engine:
        engine.feed("t", second, SCHEMA, "ts", idle=None)
        engine.sql(declare)
        engine.run()
        found = {name: from_table(query.results()) for name, query in engine.queries.items()}
    made = Runner(epochs={"s": [20], "t": [0]})
    made.stream("s", rows(0, 40))
    made.stream("f", rows(0, 60))
    made.stream("t", rows(0, 25))
    made.query("SELECT ISTREAM v FROM s", "of_s")
    made.query("SELECT ISTREAM v FROM f WHERE k = 1", "of_files")
    made.run(lambda number: made.query(joined, "both") if number == 1 else None)
    for name, query in made.queries.items():
        problem = difference(from_table(query.results()), found[name])
        assert problem is None, f"{name}\n{problem}"


def test_a_stream_that_cannot_be_read_does_no_harm_to_others(spark: Any, tmp_path: Path) -> None:
    tap = Tap()
    counted = spark.readStream.format("rate").load().groupBy("value").count()  # not as it is
    with started(spark, tmp_path / "path", tap) as engine:
        query = engine.query("SELECT ISTREAM v FROM s", "of_s")
        engine.start()
        tap.put(0, 20)
        seen(query, 20)
        engine.stream("broken", counted)
        tap.put(20, 50)
        seen(query, 50)
        wait_until(lambda: _error_of(engine, "broken"), 30)
        assert "Invalid streaming output mode" in _error_of(engine, "broken")
        tap.put(50, 60)
        seen(query, 60)
        assert engine.is_running
        with pytest.raises(tw.errors.SourceError, match="source of stream broken failed"):
            engine.stop()
    tap.shut()
    with started(spark, tmp_path / "path", tap) as engine:  # it was never read, so is not missed
        query = engine.query("SELECT ISTREAM v FROM s", "of_s")
        engine.run()
        assert query.results().num_rows == 60


def _error_of(engine: Any, stream: str) -> str:
    """What SHOW STREAMS says that a source fails with."""
    shown = {row["name"]: row for row in engine.sql("SHOW STREAMS").to_pylist()}
    return (shown.get(stream) or {}).get("error") or ""


def test_a_stream_that_comes_while_the_engine_starts_is_read(spark: Any, tmp_path: Path) -> None:
    tap, files = Tap(), tmp_path / "files"
    files.mkdir()
    pq.write_table(rows(0, 12), files / "a.parquet")
    declare = f"CREATE STREAM f ({SCHEMA}) TIMESTAMP BY ts FROM FILES '{files}' FORMAT parquet"
    with started(spark, tmp_path / "path", tap) as engine:
        engine.query("SELECT ISTREAM v FROM s", "of_s")
        adding = threading.Thread(target=lambda: engine.sql(declare))
        form = engine._runs._ingest.form

        def formed() -> Any:
            groups = form()
            adding.start()  # the groups are formed without it
            adding.join(0.5)
            return groups

        engine._runs._ingest.form = formed
        engine.start()
        adding.join()
        query = engine.query("SELECT ISTREAM v FROM f", "of_files")
        wait_until(lambda: query.stats()["streams"]["f"]["rows"] > 0, 30)
        assert query.stats()["streams"]["f"]["rows"] == 12
        engine.stop()
