"""The example of the README runs as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def blocks(info: str) -> list[str]:
    """The fenced blocks with this info string."""
    text = README.read_text("utf-8")
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S)
    return [body for given, body in found if given == info]


def example() -> str:
    (only,) = blocks("python")
    return only


def test_example_is_short() -> None:
    lines = [line for line in example().splitlines() if line.strip()]
    assert len(lines) <= 10
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.spark
def test_example_runs_as_printed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", example()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout in blocks("")
