"""`thalweg vacuum`: what it does, what it leaves alone, and death in its midst."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from engine_path import DAY, SECOND, Driver, said, snapshot

from thalweg.cli import main
from thalweg.runtime.sinks.sinks import FunctionSink
from thalweg.runtime.state.open_path import claim, release
from thalweg.runtime.upkeep.inspection import Files, inspect
from thalweg.runtime.upkeep.vacuum import carry_out, plan_vacuum
from thalweg.store import manifest
from thalweg.store.storage import LocalStorage, Storage


def crash(path: Path) -> int:
    """Everything a process that dies may leave behind; how many files."""
    packs = ("log/g1-7-0-pack", "late/9-9-x", "q/each/9-9-0")
    for name in (*(f"{pack}-0123456789ab.arrow" for pack in packs), "drafts/d"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(b"left over")
    (path / "log" / f"{0:012d}.json").write_text("{}")
    (path / "q" / "gone").mkdir()
    return 5


# -- vacuum ------------------------------------------------------------------------------------


def test_a_dry_run_changes_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crash(path)
    before = snapshot(path)
    assert main(["vacuum", str(path), "--dry-run", "--results-older-than", "1 day"]) == 0
    assert "would remove 5 files that nothing referred to" in said(capsys)
    assert snapshot(path) == before


@pytest.mark.parametrize("older", [[], ["--results-older-than", "1 day"]])
def test_it_does_what_the_dry_run_said(
    path: Path, capsys: pytest.CaptureFixture[str], older: list[str]
) -> None:
    crash(path)
    main(["vacuum", str(path), "--dry-run", *older])
    announced = said(capsys).replace("would remove", "removed").replace("would free", "freed")
    size = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    plan = plan_vacuum(LocalStorage(str(path)), 10**18 if older else None, 2 * 10**18)
    main(["vacuum", str(path), *older])
    assert said(capsys) == announced
    left = sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    answers = sum(p.stat().st_size for p in (path / "q" / "answers").glob("*"))
    assert bool(answers) == bool(older)  # relations keep theirs; manifests name the files
    assert abs(size - left + answers - plan.freed) < (256 if answers else 16)  # the clock's digits
    main(["vacuum", str(path), *older])
    assert said(capsys) == "nothing to do\n"


def test_after_a_crash_no_orphan_is_left(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = crash(path)
    storage = LocalStorage(str(path))
    assert inspect(storage).totals.unreferenced.files == left
    known = manifest.load(storage)
    assert main(["vacuum", str(path)]) == 0
    assert "removed 5 files that nothing referred to" in said(capsys)
    assert inspect(storage).totals.unreferenced == Files(0, 0)
    assert inspect(storage).totals.missing == ()
    assert manifest.load(storage) == known
    assert not (path / "q" / "gone").exists()
    assert not any(f.is_dir() and not any(f.iterdir()) for f in (path / "q").rglob("*"))


def test_manifests_become_one(path: Path) -> None:
    storage = LocalStorage(str(path))
    known = manifest.load(storage)
    assert len(storage.listing("manifests")) == 6
    main(["vacuum", str(path)])
    assert storage.listing("manifests") == [
        manifest.manifest_name(6), manifest.manifest_name(6, whole=True)
    ]  # fmt: skip
    assert manifest.load(storage) == known


def test_what_is_read_but_not_taken_in_stays(path: Path) -> None:
    driver = Driver(path)
    driver.ingest(30)
    driver.end()
    main(["vacuum", str(path)])
    again = Driver(path)
    assert [e.source for e in again.log.take(0)] == [("source", 30)]
    assert inspect(again.storage).totals.missing == ()
    again.end()


def test_it_goes_on_afterwards(path: Path, tmp_path: Path) -> None:
    """The results are those of a path that was never vacuumed."""
    crash(path)
    main(["vacuum", str(path)])
    undisturbed = Driver(tmp_path / "other")
    for day in range(3):
        undisturbed.batch(10 * day, clock=day * DAY + SECOND)
    driver = Driver(path)
    for one in (driver, undisturbed):
        one.batch(30, clock=3 * DAY)
    assert driver.results() == undisturbed.results()
    assert driver.results()["each"]
    for one in (driver, undisturbed):
        one.end()


def test_a_running_engine_refuses(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    driver = Driver(path)
    crash(path)
    before = snapshot(path)
    for argv in ([], ["--dry-run"]):
        assert main(["vacuum", str(path), *argv]) == 1
        assert "path in use" in capsys.readouterr().err
    assert snapshot(path) == before
    driver.end()


def test_remote_paths_are_only_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    from thalweg.store.storage import open_storage

    manifest.check_format(open_storage("memory://vacuum"))
    assert main(["vacuum", "memory://vacuum"]) == 1
    assert "is remote" in capsys.readouterr().err
    assert main(["vacuum", "memory://vacuum", "--dry-run"]) == 0


# -- results that are given up -----------------------------------------------------------------


def older_than(path: Path, instant: int) -> None:
    """A vacuum that gives up results committed before an instant of the drivers' clock."""
    storage = LocalStorage(str(path))
    lock = claim(storage)
    carry_out(storage, plan_vacuum(storage, instant, 5 * DAY))
    release(lock)


def test_old_results_are_forgotten(path: Path) -> None:
    storage = LocalStorage(str(path))
    packs = {k: v for k, v in manifest.load(storage)[1]["outputs"].items() if k.startswith("each")}
    older_than(path, 2 * DAY)
    epoch, state = manifest.load(storage)
    assert epoch == state["epoch"] == 7
    assert list(state["clocks"].values()) == [2 * DAY + SECOND]
    kept = {k: v for k, v in state["outputs"].items() if k.startswith("each")}
    assert (len(kept), len(packs)) == (1, 3)
    gone = [p[0] for key in packs.keys() - kept.keys() for p in packs[key]]
    assert gone
    assert not any((path / name).exists() for name in gone)
    assert inspect(storage).totals.missing == ()
    driver = Driver(path)
    assert driver.results()["each"]
    driver.batch(30, clock=2 * DAY + 2 * SECOND)
    assert inspect(storage).totals.missing == ()
    driver.end()


def test_a_duration_counts_from_now(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vacuum", str(path), "--results-older-than", "100000 days"]) == 0
    assert "of results" not in said(capsys)
    assert main(["vacuum", str(path), "--results-older-than", "1 day"]) == 0
    assert "of results (3 epochs)" in said(capsys)
    assert main(["vacuum", str(path), "--results-older-than", "soon"]) == 1
    assert "is not a duration" in capsys.readouterr().err


def test_results_no_callback_has_seen_stay(tmp_path: Path) -> None:
    """A callback is promised each epoch at least once, a vacuum cannot take that back."""
    path = tmp_path / "path"
    driver = Driver(path)
    driver.batch(0, clock=SECOND)
    driver.batch(10, clock=2 * SECOND, delivered=False)
    driver.end()
    older_than(path, DAY)
    plan = plan_vacuum(LocalStorage(str(path)), DAY, 5 * DAY)
    assert (plan.result_epochs, plan.undelivered, plan.is_idle) == (0, 1, True)
    again = Driver(path)
    assert len(again.core.state.clocks) == 1
    seen: list[pa.Table] = []
    again.session.queries["each"].sinks.append(FunctionSink(seen.append))
    again.loop.save_definitions()
    assert [t.num_rows for t in seen] == [3]
    assert again.results()["each"] == seen[0].to_pylist()
    again.end()


class Killed(BaseException):
    pass


@dataclass
class Dying:
    """A storage whose owner dies before one of its changes."""

    real: LocalStorage
    die_at: int
    seen: list[str] = field(default_factory=list)

    def _point(self, what: str) -> None:
        self.seen.append(what)
        if len(self.seen) > self.die_at:
            raise Killed

    def create(self, name: str, data: bytes) -> bool:
        self._point(f"create {name}")
        return self.real.create(name, data)

    def delete(self, name: str) -> None:
        self._point(f"delete {name}")
        self.real.delete(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def test_death_anywhere_leaves_a_path_that_opens(tmp_path: Path) -> None:
    """Whatever was committed is whole: never is a file missing that something refers to."""
    points = 0
    while True:
        path = tmp_path / str(points)
        driver = Driver(path)
        for day in range(3):
            driver.batch(10 * day, clock=day * DAY + SECOND)
        driver.end()
        crash(path)
        storage: Storage = Dying(LocalStorage(str(path), durable=False), points)
        try:
            carry_out(storage, plan_vacuum(storage, 2 * DAY, 5 * DAY))
            break
        except Killed:
            points += 1
        totals = inspect(LocalStorage(str(path))).totals
        assert totals.missing == ()
        older_than(path, 2 * DAY)
        again = Driver(path)
        assert len(again.core.state.clocks) == 1
        assert inspect(again.storage).totals.unreferenced == Files(0, 0)
        again.end()
    assert points > 10
