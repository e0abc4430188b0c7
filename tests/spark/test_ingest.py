"""What ingest takes, in which forms, and what it refuses or puts aside."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from cases import aged, file_frame, write_files

import thalweg as tw
from thalweg.errors import TypeMismatch
from thalweg.plan.catalog import SourceSpec
from thalweg.plan.logical import Field
from thalweg.plan.types import BIGINT, TIMESTAMP
from thalweg.runtime.session.session import Query
from thalweg.runtime.sources.files import read_file

pytestmark = pytest.mark.spark

UTC = pa.timestamp("us", "UTC")
SECOND = 1_000_000


def at(seconds: float) -> dt.datetime:
    return dt.datetime(2024, 2, 29, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)


def everything(rows: int) -> pa.Table:
    """Columns of every type, with NULLs, in no order of time."""
    rng = Random(rows)
    order = rng.sample(range(rows), rows)
    return pa.table(
        {
            "ts": pa.array([at(i / 4) for i in order], UTC),
            "id": pa.array(order, pa.int64()),
            "i": pa.array([None if i % 5 == 0 else -i for i in order], pa.int32()),
            "x": pa.array([None if i % 7 == 0 else i / 3 for i in order], pa.float64()),
            "s": pa.array([f'a,"{i}" ä' if i % 3 else None for i in order], pa.string()),
            "f": pa.array([None if i % 4 == 0 else i % 2 == 0 for i in order], pa.bool_()),
            "d": pa.array([dt.date(1969, 12, 31) + dt.timedelta(i) for i in order], pa.date32()),
            "m": pa.array([Decimal(i * 7 - 50).scaleb(-2) for i in order], pa.decimal128(10, 2)),
            "b": pa.array([bytes([i, 255, 0]) if i % 2 else None for i in order], pa.binary()),
        }
    )


COLUMNS = "ts TIMESTAMP, id BIGINT, i INT, x DOUBLE, s STRING, f BOOLEAN, d DATE, m DECIMAL(10,2)"


def rows_of(query: Query, *, without: str = "__ts") -> list[dict[str, Any]]:
    table = query.results().drop_columns([without])
    return sorted(table.to_pylist(), key=lambda r: r["id"])


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda r: r["id"])


def write_csv(table: pa.Table, path: Path) -> None:
    pa.csv.write_csv(table, path, pa.csv.WriteOptions(quoting_style="needed"))


def write_json(table: pa.Table, path: Path) -> None:
    def plain(value: Any) -> Any:
        return str(value) if isinstance(value, (dt.date, Decimal)) else value

    lines = [json.dumps({k: plain(v) for k, v in row.items()}) for row in table.to_pylist()]
    path.write_text("".join(f"{line}\n" for line in lines))


def test_formats_and_many_small_files(spark: Any, tmp_path: Path) -> None:
    """Parquet, CSV and JSON; one to three rows per file, some files empty, names in no order."""
    table = everything(30)
    text = table.drop_columns(["b"])
    cuts = sorted(Random(1).choices(range(30), k=20))
    points = [0, *cuts, 30]
    writers = {"csv": write_csv, "json": write_json}
    write_files(tmp_path / "parquet", table, cuts)
    for form, write in writers.items():
        (tmp_path / form).mkdir()
        for i, (a, b) in enumerate(pairwise(points)):
            if b > a:
                write(text.slice(a, b - a), tmp_path / form / f"{i * 7 % 23:02d}.{form}")
    (tmp_path / "parquet" / "_SUCCESS").touch()
    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:
        queries = {}
        for form in ("parquet", *writers):
            binary = ", b BINARY" if form == "parquet" else ""
            engine.sql(
                f"CREATE STREAM {form}_rows ({COLUMNS}{binary}) TIMESTAMP BY ts LATENESS 1 HOUR "
                f"FROM FILES '{tmp_path / form}' FORMAT {form} "
                "OPTIONS (max_files_per_trigger = 15)"
            )
            queries[form] = engine.query(f"SELECT * FROM {form}_rows", form)
        engine.run()
        assert rows_of(queries["parquet"]) == sorted_rows(table)
        assert rows_of(queries["csv"]) == sorted_rows(text)
        assert rows_of(queries["json"]) == sorted_rows(text)
        stamps = dict(zip(*queries["csv"].results().select(["ts", "__ts"]).to_pydict().values(),
                          strict=True))  # fmt: skip
        assert all(ts == emitted for ts, emitted in stamps.items())


def test_times_in_text_with_and_without_a_zone(tmp_path: Path) -> None:
    """No zone is UTC, in CSV as in JSON, even where both kinds stand in one column."""
    fields = (Field("id", BIGINT), Field("ts", TIMESTAMP))
    texts = ["2024-02-29 00:00:01", "2024-02-29T02:00:02+02:00", "2024-02-29 00:00:03.5Z",
             "2024-02-28 19:00:04-0500", "2024-02-29", None]  # fmt: skip
    wanted = [at(1), at(2), at(3.5), at(4), at(0), None]
    for rows in (range(6), (0, 4, 5), (1, 2, 3)):
        lines = [f"{i},{texts[i] or ''}\n" for i in rows]
        (tmp_path / "f.csv").write_text("id,ts\n" + "".join(lines))
        lines = [json.dumps({"id": i, "ts": texts[i]}) + "\n" for i in rows]
        (tmp_path / "f.json").write_text("".join(lines))
        for form in ("csv", "json"):
            spec = SourceSpec("files", str(tmp_path), form)
            found = read_file("s", fields, spec, str(tmp_path / f"f.{form}"))
            assert found["ts"].to_pylist() == [wanted[i] for i in rows]


def test_types_and_zones_of_a_brought_session(spark: Any, tmp_path: Path) -> None:
    """A session in another time zone; TIMESTAMP is an instant, TIMESTAMP_NTZ is read as UTC."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    table = everything(12)
    table = table.append_column("wall", table["ts"].cast(pa.timestamp("us")))
    folder = write_files(tmp_path / "files", table, (5,))
    schema = f"{COLUMNS}, b BINARY, wall TIMESTAMP_NTZ"
    with tw.Engine(session, tmp_path / "path", parallelism=2) as engine:
        queries = []
        for name, time in (("by_ts", "ts"), ("by_wall", "wall")):
            frame = file_frame(session, folder, schema=schema)
            engine.stream(name, frame, time, lateness="1 hour")
            queries.append(engine.query(f"SELECT * FROM {name}", f"q_{name}"))
        shown = engine.query("SELECT id, CAST(ts AS STRING) AS t FROM by_ts", "shown")
        engine.run()
        wanted = sorted_rows(table.set_column(9, "wall", table["ts"]))
        for query in queries:
            assert rows_of(query) == wanted
            assert query.results()["ts"].to_pylist() == query.results()["__ts"].to_pylist()
        texts = {r["id"]: r["t"] for r in rows_of(shown)}
        assert texts[0] == "2024-02-29 00:00:00"


def test_integer_times_with_a_unit(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"id": [0, 1, 2], "t": [-1, 0, 1_700_000_000]})
    folder = write_files(tmp_path / "files", table, (1,))
    with tw.Engine(spark, tmp_path / "path", parallelism=1) as engine:
        frame = file_frame(spark, folder, schema="id BIGINT, t BIGINT")
        engine.stream("whole", frame, "t", unit="seconds")
        engine.sql(
            "CREATE STREAM thousandths (id BIGINT, t BIGINT) TIMESTAMP BY t UNIT MILLISECONDS "
            f"FROM FILES '{folder}' FORMAT parquet"
        )
        seconds = engine.query("SELECT id FROM whole", "seconds")
        millis = engine.query("SELECT id FROM thousandths", "millis")
        engine.run()
        for query, unit in ((seconds, SECOND), (millis, 1000)):
            found = query.results()["__ts"].cast(pa.int64()).to_pylist()
            assert found == [t * unit for t in table["t"].to_pylist()]


def test_rejected_rows_and_their_reasons(spark: Any, tmp_path: Path) -> None:
    """No time, too far ahead, late (here: at or before the close of the run before)."""
    ahead = dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    first = pa.table({"ts": pa.array([at(10), None, ahead, at(11)], UTC), "id": [0, 1, 2, 3]})
    second = pa.table({"ts": pa.array([at(11), at(12), at(3)], UTC), "id": [4, 5, 6]})
    folder = write_files(tmp_path / "files", first, ())
    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:
        engine.stream(
            "s", file_frame(spark, folder, schema="ts TIMESTAMP, id BIGINT"), "ts", ahead="1 day"
        )
        query = engine.query("SELECT id FROM s", "q")
        engine.run()
        write_files(folder, second, (), first=1)
        engine.run()
        assert query.results()["id"].to_pylist() == [0, 3, 5]
        found = {r["id"]: r["__reason"] for r in engine.rejects("s").to_pylist()}
        assert found == {1: "no timestamp", 2: "too far ahead", 4: "late", 6: "late"}
        counts = query.stats()["streams"]["s"]
        assert (counts["rows"], counts["late"], counts["rejected"]) == (3, 2, 2)


def test_batches_without_rows(spark: Any, tmp_path: Path) -> None:
    """Files with no rows, and a frame that lets none through."""
    table = pa.table({"ts": pa.array([at(1), at(2)], UTC), "id": [0, 1]})
    folder = write_files(tmp_path / "files", table, (0, 1, 1, 2))
    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:
        frame = file_frame(spark, folder, schema="ts TIMESTAMP, id BIGINT")
        engine.stream("s", frame, "ts")
        engine.stream("none", frame.where("id < 0"), "ts")
        both = engine.query("SELECT id FROM s", "both")
        count = engine.query("SELECT count(*) AS n FROM none [RANGE 1 SECOND]", "count")
        engine.run()
        assert both.results()["id"].to_pylist() == [0, 1]
        assert count.results().num_rows == 0


def test_a_file_with_an_old_date_is_read_too(spark: Any, tmp_path: Path) -> None:
    """Spark would ignore a file that is a week older than the newest it has seen."""
    folder = write_files(
        tmp_path / "files", pa.table({"ts": pa.array([at(1)], UTC), "id": [0]}), ()
    )
    aged(next(folder.iterdir()), 30 * 86_400)
    with tw.Engine(spark, tmp_path / "path", parallelism=1) as engine:
        engine.sql(
            "CREATE STREAM s (ts TIMESTAMP, id BIGINT) TIMESTAMP BY ts "
            f"FROM FILES '{folder}' FORMAT parquet"
        )
        query = engine.query("SELECT id FROM s", "q")
        engine.run()
        write_files(folder, pa.table({"ts": pa.array([at(2)], UTC), "id": [1]}), (), first=1)
        engine.run()
        assert query.results()["id"].to_pylist() == [0, 1]


def test_two_engines_share_a_session(spark: Any, tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([at(1), at(2)], UTC), "id": [0, 1]})
    frame = file_frame(
        spark, write_files(tmp_path / "files", table, (1,)), schema="ts TIMESTAMP, id BIGINT"
    )
    with tw.Engine(spark, tmp_path / "one") as one, tw.Engine(spark, tmp_path / "two") as two:
        queries = []
        for engine in (one, two):
            engine.stream("s", frame, "ts")
            queries.append(engine.query("SELECT id FROM s", "q"))
        one.start()
        two.run()
        one.stop()
        one.run()
        assert [q.results()["id"].to_pylist() for q in queries] == [[0, 1], [0, 1]]


def test_a_path_deleted_and_used_again_starts_afresh(spark: Any, tmp_path: Path) -> None:
    """Workers outlive engines and remember packs; they must not take new ones for old ones."""
    table = pa.table({"ts": pa.array([at(1)], UTC), "id": [0]})
    frame = file_frame(
        spark, write_files(tmp_path / "files", table, ()), schema="ts TIMESTAMP, id BIGINT"
    )
    for name in ("old", "new"):
        with tw.Engine(spark, tmp_path / "path", parallelism=1) as engine:
            engine.stream("s", frame, "ts")
            engine.table("t", pa.table({"id": [0], "name": [name]}))
            query = engine.query("SELECT ISTREAM name FROM s [NOW], t WHERE s.id = t.id", "q")
            engine.run()
            assert query.results()["name"].to_pylist() == [name]
        shutil.rmtree(tmp_path / "path")


def test_a_column_that_cannot_be_read_is_refused(spark: Any, tmp_path: Path) -> None:
    schema = "ts TIMESTAMP, deep STRUCT<a: INT>"
    (tmp_path / "files").mkdir()
    with tw.Engine(spark, tmp_path / "path") as engine:
        frame = file_frame(spark, tmp_path / "files", schema=schema)
        with pytest.raises(TypeMismatch, match=r"column deep .*\n.* flatten"):
            engine.stream("s", frame, "ts")
