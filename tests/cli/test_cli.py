"""The command line: what it prints, and what it exits with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from thalweg import __version__
from thalweg.cli import app, main, rows
from thalweg.cli.errors import typed

SCRIPT = """\
-- high prices, and counts per company
CREATE STREAM trades (sym STRING, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts LATENESS 1 SECOND FROM FILES '{folder}/trades' FORMAT parquet;
CREATE TABLE companies FROM FILES '{folder}/companies.csv' FORMAT csv;
CREATE QUERY high AS SELECT sym, price FROM trades WHERE price > 90;
CREATE QUERY tech AS
  SELECT ISTREAM t.sym, count(*) AS n FROM trades [RANGE 10 SECONDS] t, companies c
  WHERE t.sym = c.sym AND c.sector = 'tech' GROUP BY t.sym;
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script with a hundred rows to read."""
    seconds = [datetime(2026, 1, 1, 0, i // 60, i % 60, tzinfo=UTC) for i in range(100)]
    columns = {"sym": ["A", "B"] * 50, "price": [float(i) for i in range(100)]}
    (tmp_path / "trades").mkdir()
    ts = pa.array(seconds, pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({**columns, "ts": ts}), tmp_path / "trades" / "1.parquet")
    (tmp_path / "companies.csv").write_text("sym,sector\nA,tech\nB,food\n")
    path = tmp_path / "script.sql"
    path.write_text(SCRIPT.format(folder=tmp_path))
    return path


# -- explain -----------------------------------------------------------------------------------


def test_explain_needs_no_spark(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert main(["explain", str(script)]) == 0
    shown = capsys.readouterr().out
    assert "stream trades  (sym STRING, price DOUBLE, ts TIMESTAMP)  time ts, lateness 1 s" in shown
    assert "table companies  sym STRING, sector STRING" in shown
    assert "routing: by t.sym, in 256 shares" in shown
    assert "state: bounded (t: [RANGE 10 s])" in shown


def test_explain_with_declared_columns_needs_no_files(tmp_path: Path) -> None:
    path = tmp_path / "s.sql"
    path.write_text(
        "CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts FROM FILES 'absent' FORMAT csv;"
        "CREATE TABLE t (a INT, b STRING) FROM FILES 'absent too' FORMAT csv;"
        "SELECT s.a, t.b FROM s, t WHERE s.a = t.a;"
    )
    assert main(["explain", str(path)]) == 0


def test_explain_places_errors_in_the_script(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = script.read_text() + "CREATE QUERY bad AS\n  SELECT sym, pric FROM trades;\n"
    script.write_text(text)
    assert main(["explain", str(script)]) == 1
    err = capsys.readouterr().err
    line = text.splitlines().index("  SELECT sym, pric FROM trades;") + 1
    assert f"unknown name: unknown column pric (line {line}, column 15)" in err
    assert " " * 16 + "^" in err
    assert "did you mean price?" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELEKT 1", "parse error"),
        ("CREATE STREAM s (a INT) TIMESTAMP BY a FROM SENSOR 'x'", "not available yet"),
        ("CREATE TABLE t FROM FILES 'absent' FORMAT csv", "no files under absent"),
    ],
)
def test_refusals_exit_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    path = tmp_path / "s.sql"
    path.write_text(text)
    assert main(["explain", str(path)]) == 1
    assert main(["run", str(path)]) == 1
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_missing_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "absent.sql"]) == 1
    assert "there is no script absent.sql" in capsys.readouterr().err


def test_script_without_a_query(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "s.sql"
    path.write_text("SHOW STREAMS;")
    assert main(["run", str(path)]) == 1
    assert "the script has no query" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("FROM FILES 'absent' FORMAT csv", "there is no folder absent"),
        ("FROM FILES '{}/in' FORMAT parquet", "holds csv files only"),
        ("FROM FILES '{}/in' FORMAT csv", "1.csv has no column a, which s declares"),
        ("", "s has no source"),
    ],
)
def test_sources_are_checked_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, said: str
) -> None:
    path = tmp_path / "s.sql"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("b,ts\n")
    path.write_text(
        "CREATE STREAM s (a INT, ts TIMESTAMP) TIMESTAMP BY ts "
        f"{source.format(tmp_path)}; SELECT a FROM s;"
    )
    assert main(["run", str(path)]) == 1
    assert said in capsys.readouterr().err


def test_a_source_that_has_nothing_yet_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty, absent = tmp_path / "empty", tmp_path / "absent"
    empty.mkdir()
    path = tmp_path / "s.sql"
    path.write_text(
        f"CREATE STREAM s (a INT) TIMESTAMP BY ARRIVAL FROM FILES '{empty}' FORMAT csv;"
        f"CREATE STREAM r (a INT) TIMESTAMP BY ARRIVAL FROM FILES '{absent}' FORMAT csv;"
        "SELECT a FROM s;"
    )
    assert main(["run", str(path)]) == 1  # because of r
    err = capsys.readouterr().err
    assert f"stream s: there is no file *.csv* in {empty} yet" in err
    assert "files that appear later are read" in err


def test_errors_of_spark_are_typed() -> None:
    from pyspark.errors import PySparkValueError

    found = typed(PySparkValueError("first line\nsecond line"))
    assert found is not None
    assert found.message == "Spark refused: first line"
    assert typed(ZeroDivisionError()) is None


# -- usage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [["fly"], ["run"], ["run", "x.sql", "--wings"], ["demo", "now"]])
def test_misuse_exits_with_two(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    assert "Usage: thalweg" in capsys.readouterr().err


def test_help_and_version() -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["--help"])
    assert shown.exit_code == 0
    commands = ("demo", "run", "explain", "doctor", "state", "vacuum", "bench")
    assert all(c in shown.output for c in commands)
    assert runner.invoke(app, ["--version"]).output == f"thalweg {__version__}\n"


# -- rows --------------------------------------------------------------------------------------


def test_json_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    ts = pa.array([0], pa.timestamp("us", "UTC"))
    rows.print_json("q", pa.table({"x": [float("nan")], "b": [b"\x01"], "n": [None], "__ts": ts}))
    found = json.loads(capsys.readouterr().out)
    assert found == {
        "query": "q", "x": "nan", "b": "01", "n": None, "__ts": "1970-01-01T00:00:00+00:00",
    }  # fmt: skip


# -- with Spark --------------------------------------------------------------------------------


def thalweg(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thalweg", *argv], capture_output=True, text=True, timeout=240
    )


@pytest.mark.spark
def test_run_once_and_once_more(script: Path, tmp_path: Path) -> None:
    """A second run on the same path reads nothing twice, and prints nothing again."""
    path = str(tmp_path / "state")
    first = thalweg("run", str(script), "--once", "--json", "--path", path)
    second = thalweg("run", str(script), "--once", "--path", path)
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert first.stderr == second.stderr == ""
    found = [json.loads(line) for line in first.stdout.splitlines()]
    high = [(r["sym"], r["price"]) for r in found if r["query"] == "high"]
    assert high == [("B" if i % 2 else "A", float(i)) for i in range(91, 100)]
    assert any(r["query"] == "tech" and r["n"] == 6 for r in found)
    assert "high (0 rows)" in second.stdout
    assert "trades: 100 rows" in second.stdout


@pytest.mark.spark
@pytest.mark.skipif(os.name == "nt", reason="signals to process groups are a Unix thing")
def test_interrupt_stops_cleanly(script: Path) -> None:
    """Ctrl-C reaches the whole foreground group: we must still stop in order, with 130."""
    with subprocess.Popen(
        [sys.executable, "-m", "thalweg", "run", str(script), "--live"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith(("high", "tech"))
        os.killpg(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert err == "stopping ...\n"
    assert _gone(running.pid)


def _gone(group: int) -> bool:
    """Whether no living process of the group is left, after a moment of grace."""
    for _ in range(50):
        listed = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True).stdout
        alive = [
            line for line in listed.splitlines()
            if line.split()[0] == str(group) and "Z" not in line.split()[1]
        ]  # fmt: skip
        if not alive:
            return True
        time.sleep(0.2)
    return False
