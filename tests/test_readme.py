"""The example of the README runs as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def example() -> str:
    found = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    assert len(found) == 1
    return str(found[0])


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
    printed = re.findall(r"^```\n(.*?)^```", README.read_text("utf-8"), re.M | re.S)
    assert any(done.stdout.strip() == block.strip() for block in printed), done.stdout
