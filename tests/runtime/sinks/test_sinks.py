"""INTO: files, tables, changelogs and the console, each row once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from eight_rows import RELATION, STREAM, runner_over, summed

from thalweg.errors import BindError
from thalweg.testing import Runner
from trade_rows import rows


def bag(table: pa.Table) -> Counter[str]:
    return Counter(repr(r) for r in table.to_pylist())


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "arrow"])
def test_files_hold_every_row_once(tmp_path: Path, form: str) -> None:
    runner = runner_over()
    query = runner.query(f"SELECT k, x FROM s WHERE k > 0 INTO FILES '{tmp_path}' FORMAT {form}")
    runner.run()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 5  # four epochs and the close
    assert all(f.name.endswith(form) for f in files)
    read = {
        "parquet": pq.read_table,
        "csv": pyarrow.csv.read_csv,
        "json": pyarrow.json.read_json,
        "arrow": lambda f: pa.ipc.open_file(pa.memory_map(str(f))).read_all(),
    }[form]
    rows = pa.concat_tables([read(f).select(["k", "x"]) for f in files])
    assert bag(rows) == bag(query.results().select(["k", "x"]))


def test_a_crash_between_writing_and_marking_writes_the_same_file(tmp_path: Path) -> None:
    runner = runner_over(epochs=3, restarts=(1, 2))
    query = runner.query(f"SELECT k FROM s INTO FILES '{tmp_path}'", name="q")
    marks = []
    for i in range(3):
        runner.feed({"s": STREAM.slice(i * 3, 3)})
        marks.append(runner.core.state.queries["q"].progress.delivered)
        runner.core.state.queries["q"].progress.delivered = 0  # as if never marked
        runner.core.delivery.deliver(insist=True)
    runner.close()
    rows = pa.concat_tables([pq.read_table(f) for f in sorted(tmp_path.iterdir())])
    assert bag(rows.select(["k"])) == bag(query.results().select(["k"]))


def test_two_engines_may_write_to_one_folder(tmp_path: Path) -> None:
    for _ in range(2):
        runner = runner_over(epochs=1)
        runner.query(f"SELECT k FROM s INTO FILES '{tmp_path}'", name="q")
        runner.run()
    names = [f.name for f in tmp_path.iterdir()]
    assert len({n.split("-")[1] for n in names}) == 2
    assert len(names) == 4


def test_a_changelog_has_signs_and_a_table_the_answer(tmp_path: Path) -> None:
    runner = runner_over()
    runner.query(f"{RELATION} INTO CHANGELOG '{tmp_path / 'log'}'", name="log")
    query = runner.query(f"{RELATION} INTO TABLE '{tmp_path / 'now'}' FORMAT parquet", name="now")
    seen = []
    for i in range(4):
        runner.feed({"s": STREAM.slice(i * 2, 2)})
        (only,) = (tmp_path / "now").iterdir()
        now = Counter((r["k"], r["n"]) for r in pq.read_table(only).to_pylist())
        assert now == summed(query.results())
        seen.append(now)
        if i == 1:
            runner.restart()
    assert len({repr(sorted(s.items(), key=repr)) for s in seen}) > 2
    log = pa.concat_tables([pq.read_table(f) for f in sorted((tmp_path / "log").iterdir())])
    assert bag(log) == bag(query.results())


def test_the_console_prints_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    runner = runner_over(epochs=1)
    runner.query(f"{RELATION} INTO CONSOLE", name="c")
    runner.run()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("c  1970-01-01 00:00:00.000001+00:00  + k=1  n=1")
    assert any("  - k=" in line for line in lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT ISTREAM k FROM s [NOW] INTO TABLE 'x'", "takes a relation"),
        ("SELECT k FROM s INTO FILES 'x' FORMAT xml", "cannot write xml"),
        ("SELECT k FROM s INTO SPARK 'delta'", "needs an Engine"),
        ("SELECT a.k FROM (SELECT k FROM s INTO CONSOLE) a", "about a whole query"),
    ],
)
def test_what_cannot_be_written_is_refused_first(text: str, message: str) -> None:
    with pytest.raises(BindError, match=message):
        runner_over().query(text)


def test_explain_says_what_a_sink_guarantees(tmp_path: Path) -> None:
    runner = runner_over()
    query = runner.query(f"SELECT k FROM s INTO FILES '{tmp_path}'")
    assert "exactly once" in query.explain()


@pytest.mark.parametrize("form", ["json", "csv"])
def test_arrays_of_anything_can_be_written(tmp_path: Any, form: str) -> None:
    runner = Runner()
    runner.stream("t", rows((1, "A", float("nan"), 1), (2, "A", 2.5, 2)))
    runner.query(
        "SELECT array_agg(ts) AS times, array_agg(price) AS prices, "
        "array_agg(CAST(qty AS DECIMAL(5,2))) AS amounts FROM t [RANGE 1 MINUTE] "
        f"INTO CHANGELOG '{tmp_path}' FORMAT {form}",
        name="q",
    )
    runner.run()
    assert runner.core.delivery.failure("q") is None
    text = "".join(f.read_text() for f in tmp_path.iterdir())
    assert "NaN" not in text
    assert "datetime" not in text


@pytest.mark.parametrize("into", ["CONSOLE", "FORMAT csv", "FORMAT json", "FORMAT parquet"])
def test_no_value_stops_a_sink(
    into: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are no text, and days and times beyond the years that Python knows."""
    stamps = pa.array([0, 1], pa.timestamp("us", "UTC"))
    days = pa.array([2_932_897, 0], pa.int32()).cast(pa.date32())
    far = pa.array([2**62, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = {"b": pa.array([b"\xff\x00", b"a"]), "d": days, "f": far, "fs": [[1], None]}
    runner = Runner()
    runner.stream("s", pa.table({**table, "ts": stamps}))
    where = into if into == "CONSOLE" else f"FILES '{tmp_path}' {into}"
    query = runner.query(f"SELECT b, d, f, fs FROM s INTO {where}", "q")
    runner.run()
    assert "cannot be handed over" not in str(query.stats())
    if into == "CONSOLE":
        assert "d=2932897 days since 1970" in capsys.readouterr().out
    else:
        assert any(tmp_path.iterdir())


def test_a_row_beyond_the_years_of_python_is_rejected_in_words() -> None:
    stamps = pa.array([0, 1], pa.timestamp("us", "UTC"))
    days = pa.array([2_932_897, 0], pa.int32()).cast(pa.date32())
    runner = Runner()
    runner.stream("s", pa.table({"d": days, "n": [0, 1], "ts": stamps}))
    query = runner.query("SELECT d, 1 / n AS r FROM s", "q")
    runner.run()
    assert query.results().num_rows == 1
    assert "d=2932897 days since 1970" in query.rejects()["row"].to_pylist()[0]
