"""`thalweg bench`: benchmarks by name, and what it exits with."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from thalweg.cli import bench, main

BENCH = """\
import json
from pathlib import Path
def run(quick, json_path):
    Path(json_path).write_text(json.dumps({{"bench": "{name}", "quick": quick}}))
    return {code}
"""


@pytest.fixture
def benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "benchmarks"
    (folder / "cli_claims").mkdir(parents=True)
    (folder / "cli_claims" / "helper.py").write_text("")
    for name, code in (("cli_good", 0), ("cli_poor", 1)):
        script = folder / "cli_claims" / f"bench_{name}.py"
        script.write_text(BENCH.format(name=name, code=code))
    monkeypatch.setattr(bench, "folder", lambda: folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return folder


def test_bench_lists(benches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--list"]) == 0
    assert capsys.readouterr().out.split() == ["cli_good", "cli_poor"]


def test_bench_runs_by_name(benches: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.json"
    assert main(["bench", "cli_good", "--quick", "--json", str(out)]) == 0
    assert json.loads(out.read_text()) == {"bench": "cli_good", "quick": True}


def test_bench_runs_all_and_returns_the_worst(benches: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.json"
    assert main(["bench", "--json", str(out)]) == 1
    assert [r["bench"] for r in json.loads(out.read_text())] == ["cli_good", "cli_poor"]


def test_unknown_bench(benches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "cli_god"]) == 1
    assert "did you mean cli_good?" in capsys.readouterr().err


def test_repository_benches_are_found() -> None:
    assert {"join", "kernel", "latency"} <= set(bench.bench_names())
