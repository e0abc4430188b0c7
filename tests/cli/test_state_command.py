"""`thalweg state`: what it says of a path, and that it leaves the path alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from engine_path import DAY, QUERIES, Driver, said, snapshot

from thalweg.cli import main
from thalweg.runtime.upkeep.inspection import inspect
from thalweg.store.manifest import FORMAT
from thalweg.store.storage import LocalStorage


def test_state_in_words(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = snapshot(path)
    assert main(["state", str(path)]) == 0
    shown = said(capsys)
    for text in (f"format {FORMAT}", "epoch 6", "1970-01-03T00:00:01Z", "each", "grouped",
                 "running",
                 "aggregates by group", "referred to by nothing"):  # fmt: skip
        assert text in shown
    assert snapshot(path) == before


def test_state_as_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", str(path), "--json"]) == 0
    found = json.loads(said(capsys))
    assert found == inspect(LocalStorage(str(path))).to_dict()
    assert [q["name"] for q in found["queries"]] == list(QUERIES)


def test_state_beside_a_running_engine(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    driver = Driver(path)
    driver.batch(30, clock=3 * DAY)
    before = snapshot(path)
    assert main(["state", str(path)]) == 0
    assert "has it open" in said(capsys)
    assert snapshot(path) == before
    driver.batch(40, clock=4 * DAY)
    driver.end()


def test_what_is_no_path_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "data.csv").write_text("1")
    for command in ("state", "vacuum"):
        assert main([command, str(tmp_path)]) == 1
        assert "is not the path of an engine" in capsys.readouterr().err
        assert main([command, str(tmp_path / "absent")]) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["data.csv"]


def test_a_newer_path_is_left_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path / "format.json").write_text('{"format": 99}')
    before = snapshot(path)
    for argv in (["state"], ["vacuum"], ["vacuum", "--dry-run"]):
        assert main([argv[0], str(path), *argv[1:]]) == 1
        assert "format too new" in capsys.readouterr().err
    assert snapshot(path) == before
