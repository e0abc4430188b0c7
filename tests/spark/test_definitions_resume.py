"""A path starts with its own script, whatever was added and dropped meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thalweg as tw

pytestmark = pytest.mark.spark
STREAM = (
    "CREATE STREAM {0} (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts "
    "FROM FILES '{1}/{0}' FORMAT parquet;"
)


def test_a_path_starts_with_its_own_script_after_streams_were_added(
    spark: Any, tmp_path: Path
) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        stamps = pa.array(range(20), pa.timestamp("us", "UTC"))
        pq.write_table(
            pa.table({"k": list(range(20)), "ts": stamps}), tmp_path / folder / "1.parquet"
        )
    (tmp_path / "t.csv").write_text("k,name\n1,one\n")
    stream = STREAM
    script = stream.format("a", tmp_path) + "CREATE QUERY of_a AS SELECT k FROM a"
    with tw.Engine(spark, tmp_path / "path") as engine:
        engine.sql(script)
        engine.run()
        engine.sql(
            stream.format("b", tmp_path)
            + f"CREATE TABLE t FROM FILES '{tmp_path}/t.csv' FORMAT csv;"
            "CREATE QUERY of_b AS SELECT ISTREAM b.k, t.name FROM b [NOW] b, t WHERE b.k = t.k"
        )
        engine.run()
    with tw.Engine(spark, tmp_path / "path") as engine:
        engine.sql(script)
        engine.run()
        assert engine.queries["of_b"].results().num_rows == 1


def test_a_stream_of_a_group_is_dropped_and_the_others_go_on(spark: Any, tmp_path: Path) -> None:
    """Spark tells the sources of a group apart by their places."""

    def write(folder: str, number: int) -> None:
        (tmp_path / folder).mkdir(exist_ok=True)
        stamps = pa.array(range(10 * number, 10 * number + 10), pa.timestamp("us", "UTC"))
        table = pa.table({"k": list(range(10 * number, 10 * number + 10)), "ts": stamps})
        pq.write_table(table, tmp_path / folder / f"{number}.parquet")

    script = "".join(STREAM.format(name, tmp_path) for name in "abc")
    for folder in "abc":
        write(folder, 1)
    with tw.Engine(spark, tmp_path / "path") as engine:
        engine.sql(script)
        kept = {name: engine.query(f"SELECT k FROM {name}", f"of_{name}") for name in "ac"}
        engine.run()
        engine.sql("DROP STREAM b")
        for folder in "abc":
            write(folder, 2)
        engine.run()
        assert [q.results().num_rows for q in kept.values()] == [20, 20]
    with tw.Engine(spark, tmp_path / "path") as engine:
        for folder in "abc":
            write(folder, 3)
        engine.run()
        found = [engine.queries[f"of_{name}"].results()["k"].to_pylist() for name in "ac"]
        assert [sorted(k) for k in found] == [list(range(10, 40))] * 2
        assert "b" not in engine.core.catalog.streams
        engine.sql(STREAM.format("b", tmp_path))  # the name is free, and is read from the beginning
        anew = engine.query("SELECT k FROM b", "of_b")
        engine.run()
        assert anew.results().num_rows == 30
