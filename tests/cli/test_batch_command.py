"""`thalweg batch`: a script's SELECTs, run once."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg.cli import main


@pytest.fixture
def script(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"k": [1, 2, 2], "v": [10, 20, 30]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": [1, 2], "n": ["A", "B"]}), tmp_path / "b.parquet")
    file = tmp_path / "script.sql"
    file.write_text(
        f"CREATE TABLE a FROM FILES '{tmp_path}/a.parquet' FORMAT parquet;\n"
        f"CREATE TABLE b FROM FILES '{tmp_path}/b.parquet' FORMAT parquet;\n"
        "SELECT b.n, sum(a.v) AS total FROM a, b, b AS c WHERE a.k = b.k AND c.k = b.k "
        "GROUP BY b.n ORDER BY total;\n"
        "SELECT count(*) AS n FROM a"
    )
    return file


@pytest.mark.spark
def test_each_select_is_run_once(
    spark: object, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["batch", str(script)]) == 0
    shown = capsys.readouterr().out
    assert "total" in shown
    assert "order: ((a ⋈ b) ⋈ c), as Spark has it" in shown
    assert "the join has exactly 3 rows" in shown
    assert shown.count("(measured)") == 2
    assert main(["batch", "--json", str(script)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"query": "select 1", "n": "A", "total": 10},
        {"query": "select 1", "n": "B", "total": 50},
        {"query": "select 2", "n": 3},
    ]


def test_a_script_without_a_select_is_refused_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "script.sql"
    file.write_text("CREATE TABLE a (k BIGINT) FROM FILES '/nowhere' FORMAT csv")
    assert main(["batch", str(file)]) == 1
    assert "the script has no SELECT" in capsys.readouterr().err
