"""`thalweg doctor`: what it says of a machine and of a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from thalweg.cli import doctor, main


def test_doctor_judges_a_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--path", str(tmp_path / "new")])
    shown = capsys.readouterr().out
    assert "commits are atomic" in shown
    assert "spark.sql.session.timeZone=UTC" in shown
    assert code == (1 if "✗" in shown else 0)
    assert list((tmp_path / "new").iterdir()) == []


def test_doctor_without_java(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "none was found" in shown
    assert "openjdk" in shown


def test_doctor_on_a_path_that_is_a_file(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    states = [f.state for f in doctor.findings(blocked) if f.what == "path"]
    assert states == [doctor.FATAL]
