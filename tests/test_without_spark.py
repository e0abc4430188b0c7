"""Thalweg in a virtual environment without PySpark: what needs no Spark works, an Engine is
refused with the remedy."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import thalweg

LEFT_OUT = ("pyspark", "py4j", "__editable__", "_editable")
WORKS = """
import pyarrow as pa
import thalweg as tw
from thalweg.testing import Runner

runner = Runner()
ts = pa.array([1, 2, 3], pa.timestamp("us", "UTC"))
runner.stream("s", pa.table({"k": [1, 2, 1], "ts": ts}))
query = runner.query("SELECT k, count(*) AS n FROM s [RANGE 1 HOUR] GROUP BY k")
print(query.explain())
built = runner["s"].filter(tw.col("k") > 1).query(name="built")
runner.run()
assert query.results().num_rows == 4, query.results()
assert built.results().num_rows == 1
"""
REFUSED = """
import thalweg as tw
from thalweg import *

try:
    tw.Engine()
except tw.ThalwegError as error:
    print(type(error).__name__, error)
"""
SCRIPT = """
CREATE STREAM s (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts FROM FILES '{0}' FORMAT csv;
CREATE TABLE t FROM FILES '{0}/t.csv' FORMAT csv;
CREATE QUERY q AS SELECT s.k FROM s [RANGE 1 HOUR], t WHERE s.k = t.k;
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter whose packages are ours without PySpark."""
    folder = tmp_path_factory.mktemp("without") / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.lower().startswith(LEFT_OUT):
            (own / entry.name).symlink_to(entry)
    (own / "thalweg.pth").write_text(str(Path(thalweg.__file__).parents[1]))
    return folder / "bin" / "python"


def said(python: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), *args], capture_output=True, text=True, timeout=120, check=False
    )


def test_there_is_no_pyspark(python: Path) -> None:
    assert "ModuleNotFoundError" in said(python, "-c", "import pyspark").stderr
    assert sys.prefix not in said(python, "-c", "import sys; print(sys.prefix)").stdout


def test_the_runner_and_built_queries_work(python: Path) -> None:
    done = said(python, "-c", WORKS)
    assert done.returncode == 0, done.stderr
    assert "state: bounded" in done.stdout


def test_an_engine_is_refused_with_the_remedy(python: Path) -> None:
    done = said(python, "-c", REFUSED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("MissingSpark an Engine needs PySpark")
    assert "pip install 'thalweg[spark]'" in done.stdout


def test_scripts_are_explained(python: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,word,ts\n1,one,2026-01-01\n")
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT.format(tmp_path))
    done = said(python, "-m", "thalweg", "explain", str(script))
    assert done.returncode == 0, done.stderr
    assert "query q" in done.stdout


def test_commands_that_need_it_say_so(python: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("k,word,ts\n1,one,2026-01-01\n")
    script = tmp_path / "script.sql"
    script.write_text(SCRIPT.format(tmp_path))
    done = said(python, "-m", "thalweg", "run", "--once", str(script))
    assert done.returncode == 1
    assert "this command needs PySpark" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_path_is_looked_at(python: Path, tmp_path: Path) -> None:
    code = (
        "from thalweg.testing import Runner; from thalweg.store.storage import open_storage; "
        f"Runner(storage=open_storage({str(tmp_path / 'path')!r})).core.coordinator.save(1)"
    )
    assert said(python, "-c", code).returncode == 0
    done = said(python, "-m", "thalweg", "sql", str(tmp_path / "path"), "SHOW QUERIES")
    assert done.returncode == 0, done.stderr
    assert said(python, "-m", "thalweg", "state", str(tmp_path / "path")).returncode == 0
