"""`thalweg bench`: find the benchmark modules, run them by name, gather their figures.

A benchmark is a module `<folder>/bench_<name>.py` with `run(quick, json_path) -> int`; the other
modules of a folder are its helpers.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import thalweg
from thalweg.errors import ConfigError, UnknownName, did_you_mean

PREFIX = "bench_"


def folder() -> Path:
    """Where the benchmarks are: beside the sources, or packed into the wheel."""
    package = Path(thalweg.__file__).parent
    for candidate in (package.parents[1] / "benchmarks", package / "_benchmarks"):
        if (candidate / "common" / "harness.py").exists():
            return candidate
    raise ConfigError(
        "the benchmarks are not installed", remedy="use a checkout of the repository or the wheel"
    )


def bench_modules() -> dict[str, str]:
    """Name → module, as it is imported with the benchmarks' folder on the path."""
    found = folder().glob(f"*/{PREFIX}*.py")
    return {p.stem.removeprefix(PREFIX): f"{p.parent.name}.{p.stem}" for p in found}


def bench_names() -> list[str]:
    return sorted(bench_modules())


def list_benches() -> None:
    console = Console(highlight=False)
    for name in bench_names():
        console.print(name)
    if not bench_names():
        console.print("there are no benchmarks yet", style="dim")


def run_benches(names: Sequence[str], quick: bool, json_path: Path | None) -> int:
    """Run the named ones, or all; the exit code is the worst of theirs."""
    known = bench_names()
    for name in names:
        if name not in known:
            raise UnknownName(f"there is no benchmark {name}", remedy=did_you_mean(name, known))
    worst, written = 0, []
    with tempfile.TemporaryDirectory(prefix="thalweg-bench-") as drafts:
        for name in names or known:
            draft = Path(drafts, f"{name}.json")
            worst = max(worst, _run_one(name, quick, draft))
            if draft.exists():
                written.append(json.loads(draft.read_text()))
    if json_path is not None:
        _write(json_path, written)
    return worst


def _run_one(name: str, quick: bool, draft: Path) -> int:
    console = Console(highlight=False)
    console.rule(f"[bold]{name}[/]" + (" (quick)" if quick else ""))
    begun = time.monotonic()
    code = _load(name).run(quick, str(draft))
    console.print(f"{name}: {time.monotonic() - begun:.0f} s", style="dim")
    return int(code)


def _load(name: str) -> Any:
    place = str(folder())
    if place not in sys.path:
        sys.path.insert(0, place)
    module = importlib.import_module(bench_modules()[name])
    if not callable(getattr(module, "run", None)):
        raise ConfigError(
            f"benchmark {name} has no run(quick, json_path)",
            remedy="choose another; thalweg bench lists them",
        )
    return module


def _write(path: Path, reports: list[Any]) -> None:
    """One report as it is, several as a list."""
    whole = reports[0] if len(reports) == 1 else reports
    path.write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
