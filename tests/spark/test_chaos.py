"""The short version of `thalweg bench chaos`, with the benchmark's own pieces.

Drivers killed, a full disk, one faulty query among ten, a clock that jumps back: the output is that
of an undisturbed run and nothing is left behind. All but one without a JVM.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from thalweg.cli import bench
from thalweg.runtime.upkeep import compaction
from thalweg.store import manifest

sys.path.insert(0, str(bench.folder()))

from faults import clock, disk, killed_drivers, one_of_ten_queries, small_driver
from faults import workload as work
from faults.ledger import Ledger


@pytest.fixture(autouse=True)
def upkeep(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmark changes both for its own process; here they are put back."""
    monkeypatch.setattr(manifest, "CHECKPOINT_EVERY", 5)
    monkeypatch.setattr(compaction, "FAN_IN", 3)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger("a fault")


def assert_all_hold(ledger: Ledger) -> None:
    assert ledger.checks
    assert not ledger.failed, "\n".join(f"{c.what}: {c.detail}" for c in ledger.failed)


def test_twelve_drivers_killed(tmp_path: Path, ledger: Ledger) -> None:
    """Before, inside and after both commits and the sink's, and at random instants."""
    killed_drivers.run_small(tmp_path, ledger, 12)
    assert ledger.figures["without a JVM: at points"] > 0
    assert ledger.figures["without a JVM: at random instants"] > 0
    assert_all_hold(ledger)


@pytest.mark.parametrize("when", ["before", "inside", "after"])
@pytest.mark.parametrize("kind", ["log", "manifests", "sink"])
def test_every_point_kills(tmp_path: Path, kind: str, when: str) -> None:
    """A point that is never reached would prove nothing."""
    work.write_input(tmp_path)
    for number in (1, 2):
        assert small_driver.small_life(tmp_path, f"{kind} {number} {when}", None) == -signal.SIGKILL
    assert small_driver.small_life(tmp_path, "", None) == 0
    assert not work.problems(tmp_path, work.expected(work.queries(tmp_path)))


def test_disk_full(tmp_path: Path, ledger: Ledger) -> None:
    disk.small(tmp_path, ledger, times=6)
    assert_all_hold(ledger)


def test_one_faulty_query_among_ten(tmp_path: Path, ledger: Ledger) -> None:
    one_of_ten_queries.small(tmp_path, ledger)
    assert_all_hold(ledger)


def test_a_clock_that_jumps_back(tmp_path: Path, ledger: Ledger) -> None:
    clock.small(tmp_path, ledger)
    assert_all_hold(ledger)


@pytest.mark.slow
@pytest.mark.spark
def test_killed_between_our_commit_and_sparks_own(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("t")  # Spark's sockets live below it: their paths must be short
    deaths = iter([killed_drivers.Death("spark 2 between")])
    wanted = work.expected(work.queries(root))
    found = killed_drivers.kill(root, wanted, killed_drivers.spark_life, deaths, 1)
    assert (found.at_points, found.between) == (1, 1)
    assert not found.wrong


# -- the checks themselves ---------------------------------------------------------------------


def killed_and_judged(folder: Path, point: str) -> list[str]:
    work.write_input(folder)
    assert small_driver.small_life(folder, point, None) == -signal.SIGKILL
    assert small_driver.small_life(folder, "", None) == 0
    return work.problems(folder, work.expected(work.queries(folder)))


def test_a_sweep_that_sweeps_nothing_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (small_driver, work):
        monkeypatch.setattr(module, "sweep", lambda storage, state: 0)
    found = killed_and_judged(tmp_path, "log 2 before")
    assert any("left behind" in f for f in found)


def test_a_batch_that_is_taken_twice_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.runtime.sources.log_writer.LogWriter.has", lambda *_: False)
    assert killed_and_judged(tmp_path, "log 2 after")


def test_a_mark_that_is_ignored_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that is told of an epoch again writes the same file; under another name it shows."""
    from thalweg.runtime.sinks import sinks

    def careless(self: Any, epoch: int, output: Any) -> None:
        number = len(list((tmp_path / "out").glob("*"))) if (tmp_path / "out").exists() else 0
        sinks.write_file(self.spec.target, f"{number}", "parquet", output)

    monkeypatch.setattr(sinks.FilesSink, "write", careless)
    found = killed_and_judged(tmp_path, "sink 2 after")
    assert any("files of the sink" in f for f in found)
