"""Faults on purpose: killed drivers and executors, a full disk, bad files, bad clocks, bad code.

After each fault the final output must be that of an undisturbed run, other queries unharmed,
nothing left behind after the sweep, and what the user is told must name the thing and say what to
do. The undisturbed run is one of `thalweg.testing.Runner`, in one piece and in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from rich.table import Table

from common.harness import Report
from faults import killed_drivers
from faults.fault_process import run_child
from faults.ledger import Ledger

KILLS = "driver kills"
TOLD = "faults not reported in words with a remedy"
LEFT = "files left behind after the sweep"
TOGETHER = (
    "faults.unreadable_files",
    "faults.clock",
    "faults.user_functions",
    "faults.one_of_ten_queries",
    "faults.disk",
)
ALONE = ("faults.executors", "faults.stuck_function")
SMALL_KILLS, SPARK_KILLS = 100, 20
QUICK_SMALL_KILLS, QUICK_SPARK_KILLS = 95, 5
EXPECTED = "expected"


def run(quick: bool = False, json_path: str | None = None) -> int:
    report = Report("chaos", scale="quick" if quick else "full")
    faults = {m: str(import_module(m).FAULT) for m in (*TOGETHER, *ALONE)}
    _declare(report, [KILLS, *faults.values()], quick)
    with tempfile.TemporaryDirectory(prefix="thalweg-chaos-", ignore_cleanup_errors=True) as folder:
        root = Path(folder).resolve()
        ledgers = [_kills(report, root, quick)]
        for modules in (TOGETHER, *((m,) for m in ALONE)):
            ledgers += _in_child(report, root, modules, quick, faults)
    for ledger in ledgers:
        _enter(report, ledger)
    unclear = [t for ledger in ledgers for t in ledger.told if not t.is_clear]
    report.measure(TOLD, len({(t.fault, t.line) for t in unclear}))
    report.console.print(_messages(ledgers))
    report.finish(Path(json_path) if json_path else None)
    _explain(report, ledgers)
    return 0


def _declare(report: Report, faults: Sequence[str], quick: bool) -> None:
    report.declare("drivers killed with SIGKILL", at_least=100, unit="kills")
    spark = QUICK_SPARK_KILLS if quick else SPARK_KILLS
    report.declare("of these drivers with a JVM", at_least=spark, unit="kills")
    report.declare("killed between our commit and Spark's own", at_least=1, unit="kills")
    report.declare(LEFT, at_most=0, unit="files")
    for fault in faults:
        report.declare(f"{fault}: checks that fail", at_most=0, unit="checks")
    report.declare(TOLD, at_most=0, unit="messages")


def _kills(report: Report, root: Path, quick: bool) -> Ledger:
    """Drivers without a JVM first: they are forked, and this process has no threads yet."""
    ledger = Ledger(KILLS)
    small, spark = (QUICK_SMALL_KILLS, QUICK_SPARK_KILLS) if quick else (SMALL_KILLS, SPARK_KILLS)
    report.progress(f"{small} drivers without a JVM")
    killed_drivers.run_small(root / "small", ledger, small)
    report.progress(f"{spark} drivers with Spark")
    killed_drivers.run_spark(root / "spark", ledger, spark)
    found = ledger.figures
    real = found["with Spark: kills"]
    report.measure("drivers killed with SIGKILL", found["without a JVM: kills"] + real)
    report.measure("of these drivers with a JVM", real)
    between = found["with Spark: between both commits"]
    report.measure("killed between our commit and Spark's own", between)
    report.measure(LEFT, sum(n for name, n in found.items() if name.endswith("left behind")))
    return ledger


def _in_child(
    report: Report, root: Path, modules: Sequence[str], quick: bool, faults: dict[str, str]
) -> list[Ledger]:
    report.progress(", ".join(faults[m] for m in modules))
    seconds = 240 if quick else 600
    return run_child(root / modules[0].rpartition(".")[2], modules, quick, seconds, faults)


def _enter(report: Report, ledger: Ledger) -> None:
    """A row per fault: checks that hold beside all there are; then its own figures."""
    report.row(ledger.fault, "thalweg", "checks that hold", "checks", ledger.passed)
    report.row(ledger.fault, EXPECTED, "checks that hold", "checks", len(ledger.checks))
    for name, value in ledger.figures.items():
        unit = "s" if name.endswith("seconds") else "count"
        report.row(ledger.fault, "thalweg", name, unit, round(value, 1))
    report.measure(f"{ledger.fault}: checks that fail", len(ledger.failed))


def _messages(ledgers: Sequence[Ledger]) -> Table:
    table = Table(title="what the user is told", show_lines=True)
    for heading in ("fault", "first line", "names it", "has a remedy"):
        table.add_column(heading)
    words = {True: "yes", False: "[red]no[/]"}
    for told in dict.fromkeys(t for ledger in ledgers for t in ledger.told):
        shown = told.line.replace("[", "\\[")
        table.add_row(told.fault, shown, words[told.names_it], words[told.has_remedy])
    return table


def _explain(report: Report, ledgers: Sequence[Ledger]) -> None:
    for ledger in ledgers:
        for note in ledger.notes:
            report.console.print(f"{ledger.fault}: {note}", markup=False)
    for check in (c for ledger in ledgers for c in ledger.failed):
        report.console.print(f"{check.fault}: does not hold: {check.what}", style="red")
        report.console.print(check.detail[:1500], markup=False, style="dim")
