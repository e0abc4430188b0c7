"""The page about the benchmarks names every folder and every benchmark."""

from __future__ import annotations

import re

from thalweg.cli import bench

PAGE = (bench.folder() / "README.md").read_text("utf-8")


def test_every_benchmark_is_listed_with_its_folder() -> None:
    listed = re.findall(r"^\| `(\w+)/` \|.*\|(.*)\|$", PAGE, re.M)
    found = {name: folder for folder, runs in listed for name in re.findall(r"`bench (\w+)`", runs)}
    modules = bench.bench_modules()
    assert found == {name: module.partition(".")[0] for name, module in modules.items()}


def test_every_folder_is_listed() -> None:
    folders = {path.parent.name for path in bench.folder().glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)/` \|", PAGE, re.M)) == folders
