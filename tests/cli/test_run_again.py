"""`thalweg run` for programs and service managers: what is new, whose it is, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg.cli.run import Tally
from thalweg.testing.runner import Runner

SCRIPT = """CREATE STREAM trades (sym STRING, price DOUBLE, ts TIMESTAMP)
  TIMESTAMP BY ts FROM FILES '{0}/trades' FORMAT parquet;
CREATE QUERY high AS SELECT sym, price FROM trades WHERE price > 90;"""


def write(folder: Path, name: str, since: int, until: int) -> None:
    folder.mkdir(exist_ok=True)
    stamps = [datetime(2026, 1, 1, 0, i // 60, i % 60, tzinfo=UTC) for i in range(since, until)]
    ts = pa.array(stamps, pa.timestamp("us", "UTC"))
    prices = [float(i) for i in range(since, until)]
    pq.write_table(
        pa.table({"sym": ["A"] * (until - since), "price": prices, "ts": ts}), folder / name
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    write(tmp_path / "trades", "1.parquet", 0, 100)
    path = tmp_path / "script.sql"
    path.write_text(SCRIPT.format(tmp_path))
    return path


def thalweg(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thalweg", *argv], capture_output=True, text=True, timeout=240
    )


@pytest.mark.spark
def test_a_second_run_prints_only_what_is_new(script: Path, tmp_path: Path) -> None:
    argv = ("run", str(script), "--once", "--json", "--path", str(tmp_path / "state"))
    first = [json.loads(line)["price"] for line in thalweg(*argv).stdout.splitlines()]
    write(tmp_path / "trades", "2.parquet", 100, 105)
    second = [json.loads(line)["price"] for line in thalweg(*argv).stdout.splitlines()]
    assert thalweg(*argv).stdout == ""
    assert sorted(first + second) == [float(i) for i in range(91, 105)]  # each once
    assert first
    assert min(second) > max(first)


@pytest.mark.spark
@pytest.mark.skipif(os.name == "nt", reason="signals are a Unix thing")
def test_sigterm_stops_cleanly(script: Path, tmp_path: Path) -> None:
    """As a service manager stops it: the process alone, then nothing is left to be mended."""
    with subprocess.Popen(
        [sys.executable, "-m", "thalweg", "run", str(script), "--live",
         "--path", str(tmp_path / "p")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdout.readline().startswith("high")
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 143
    assert err == "stopping ...\n"


def test_queries_that_share_a_filter_are_followed_by_name() -> None:
    """Their output lies together; what is counted and printed is that of each query."""
    stamps = pa.array([i * 1_000_000 for i in range(20)], pa.timestamp("us", "UTC"))
    made = Runner(epochs=2)
    made.stream("s", pa.table({"ts": stamps, "k": [i % 5 for i in range(20)]}))
    for i in range(3):
        made.query(f"SELECT k FROM s WHERE k > {i} WITH (share = 'on')", f"q{i}")
    made.run()
    tally = Tally(made, 3)  # type: ignore[arg-type]  # it needs `queries` alone
    for report in made.reports:
        tally.epoch(report)
    assert tally.results == {"q0": 16, "q1": 12, "q2": 8}
    assert set(tally.newest) == {"q0", "q1", "q2"}
