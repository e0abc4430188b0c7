"""One version: the package's own, and the changelog agrees with it."""

from __future__ import annotations

import doctest
import re
import tomllib
from pathlib import Path

import thalweg

ROOT = Path(__file__).parents[1]


def test_newest_entry_of_the_changelog_is_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert headings[0] == thalweg.__version__
    assert headings == sorted(set(headings), key=numbers, reverse=True)


def numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def test_the_build_reads_the_version_from_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/thalweg/__init__.py"


def test_the_example_of_the_package_runs() -> None:
    failed, tried = doctest.testmod(thalweg)
    assert tried > 0
    assert not failed
