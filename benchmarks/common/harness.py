"""What every benchmark shares: progress lines, the table `ours | peer | seed`, goals, and the JSON.

A report has rows (what was measured) and goals (what the step promised). Every goal is declared
before anything runs, so a goal whose peer was skipped, or whose run failed, still appears: with
`measured` and `holds` null and a reason.

    report = Report("join", scale="full")
    report.declare("1 M: times Spark's default store", at_least=50)
    report.row("1 M rows a batch", "thalweg-files", "warm batch", "ms", 281)
    report.measure("1 M: times Spark's default store", 52.3)
    report.finish(json_path)
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

import thalweg
from common.peer_process import PeerResult

PACKAGES = ("pyspark", "pyarrow", "numpy", "numba", "duckdb", "sqlglot")
NOT_MEASURED = "not measured"

Scale = Literal["quick", "full"]
Role = Literal["ours", "peer", "seed"]


@dataclass(frozen=True)
class Row:
    """One measured figure."""

    case: str
    system: str
    metric: str
    unit: str
    value: float | None
    role: Role

    def to_dict(self) -> dict[str, Any]:
        names = ("case", "system", "metric", "unit", "value")
        return {name: getattr(self, name) for name in names}


@dataclass
class Goal:
    """One promise: at least or at most a bound."""

    name: str
    bound: float
    at_least: bool
    scale: Scale
    unit: str = "x"
    measured: float | None = None
    reason: str | None = NOT_MEASURED

    @property
    def holds(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    @property
    def text(self) -> str:
        unit = self.unit if self.unit == "x" else f" {self.unit}"
        return f"{'>=' if self.at_least else '<='} {self.bound:g}{unit}"

    def to_dict(self) -> dict[str, Any]:
        out = {
            "name": self.name,
            "goal": self.text,
            "measured": self.measured,
            "holds": self.holds,
            "scale": self.scale,
        }
        return out | ({"reason": self.reason} if self.reason else {})


class Report:
    """Collects the rows and goals of one benchmark, prints them and writes them down."""

    def __init__(self, bench: str, *, scale: Scale, console: Console | None = None) -> None:
        self.bench = bench
        self.scale: Scale = scale
        self.console = console or Console()
        self.rows: list[Row] = []
        self.versions = versions()
        self._goals: dict[str, Goal] = {}
        self._start = time.monotonic()

    @property
    def goals(self) -> list[Goal]:
        return list(self._goals.values())

    @property
    def failed(self) -> list[Goal]:
        """The goals that were measured and missed."""
        return [goal for goal in self.goals if goal.holds is False]

    def progress(self, message: str) -> None:
        """A line of life, with the seconds since the start."""
        elapsed = time.monotonic() - self._start
        self.console.print(f"{elapsed:7.1f} s  {message}", style="dim", markup=False)

    def row(
        self,
        case: str,
        system: str,
        metric: str,
        unit: str,
        value: float | None,
        role: Role | None = None,
    ) -> None:
        """A figure. Systems called `thalweg...` are ours unless `role` says otherwise."""
        chosen: Role = role or ("ours" if system.startswith("thalweg") else "peer")
        figure = None if value is None else float(value)  # NumPy's numbers are not JSON's
        self.rows.append(Row(case, system, metric, unit, figure, chosen))

    def peer(self, case: str, result: PeerResult, role: Role | None = None) -> None:
        """The usual rows of a run: whole run, warm batch, results; run minus read where known."""
        if result.skipped:
            self.progress(f"{case}: {result.system} skipped: {result.skipped}")
            return
        system = result.label
        self.row(case, system, "whole run", "s", result.total_s, role)
        if result.warm_ms is not None:
            self.row(case, system, "warm batch", "ms", result.warm_ms, role)
        if result.read_s is not None:
            self.row(case, system, "reading", "s", result.read_s, role)
            self.row(case, system, "run minus read", "s", result.net_s, role)
        self.row(case, system, "results", "rows", result.rows_out, role)

    def declare(
        self,
        name: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
        unit: str = "x",
    ) -> None:
        """Promise a goal; call before measuring, so that it appears whatever happens."""
        if (at_least is None) == (at_most is None):
            raise ValueError(f"goal {name!r} needs either at_least or at_most")
        lower = at_least is not None
        bound = at_least if at_least is not None else at_most
        assert bound is not None
        self._goals[name] = Goal(name, bound, lower, self.scale, unit)

    def measure(self, name: str, value: float | None, reason: str | None = None) -> None:
        """Settle a goal: a value, or None with the reason why there is none."""
        goal = self._goals[name]
        goal.measured = None if value is None else float(value)
        goal.reason = (reason or NOT_MEASURED) if value is None else reason

    def ratio(self, name: str, above: float | None, below: float | None, reason: str = "") -> None:
        """Settle a goal with a quotient; either part missing leaves it unmeasured."""
        value = above / below if above is not None and below else None
        self.measure(name, value, reason or None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "bench": self.bench,
            "versions": self.versions,
            "rows": [row.to_dict() for row in self.rows],
            "goals": [goal.to_dict() for goal in self.goals],
        }

    def finish(self, json_path: Path | None = None) -> None:
        """Print both tables; write the JSON if asked."""
        self.console.print(self._figures())
        self.console.print(self._promises())
        if json_path is not None:
            json_path.write_text(json.dumps(self.to_dict(), indent=2) + "\n")
            self.progress(f"written: {json_path}")

    def _figures(self) -> Table:
        table = Table(title=f"{self.bench} ({self.scale})", show_lines=True)
        for heading in ("case", "metric", "ours", "peer", "seed"):
            table.add_column(heading)
        for case, metric, unit in dict.fromkeys((r.case, r.metric, r.unit) for r in self.rows):
            group = [r for r in self.rows if (r.case, r.metric, r.unit) == (case, metric, unit)]
            cells = [_cell(r for r in group if r.role == role) for role in ("ours", "peer", "seed")]
            table.add_row(case, f"{metric} [{unit}]".replace("[", "\\["), *cells)
        return table

    def _promises(self) -> Table:
        table = Table(title="goals")
        for heading in ("goal", "promised", "measured", "holds"):
            table.add_column(heading)
        words = {True: "[green]yes[/]", False: "[red]no[/]", None: "[yellow]-[/]"}
        for goal in self.goals:
            measured = goal.reason or "" if goal.measured is None else f"{goal.measured:,.2f}"
            table.add_row(goal.name, goal.text, measured, words[goal.holds])
        return table


def _cell(rows: Iterable[Row]) -> str:
    return "\n".join(f"{row.system}: {_figure(row.value)}" for row in rows)


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.2f}"


def versions() -> dict[str, str | None]:
    """What ran: Python, Java, our packages and the machine's cores; null for what is absent."""
    out: dict[str, str | None] = {"python": platform.python_version()}
    out["thalweg"] = thalweg.__version__  # what runs may be newer than what was installed
    for package in PACKAGES:
        try:
            out[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            out[package] = None
    out["java"] = _java_version()
    out["cores"] = str(os.cpu_count())
    return out


def _java_version() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else "java"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line for line in done.stderr.splitlines() if "version" in line]
    return lines[0].split('"')[1] if lines and '"' in lines[0] else None
