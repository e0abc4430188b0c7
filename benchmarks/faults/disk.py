"""A full disk: the run ends with an error, and with space again it goes on as if nothing had been.

Where mounting is permitted the disk is real, a small tmpfs filled up to what is left for a part of
the run; elsewhere a storage raises ENOSPC in the middle of a write, chosen at random.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from faults import small_driver, spark_driver
from faults import workload as work
from faults.fault_process import attempt, wait_until
from faults.ledger import Ledger
from thalweg.errors import ThalwegError
from thalweg.runtime.sources.log_writer import MOST_PENDING
from thalweg.store.storage import LocalStorage

FAULT = "disk full"
SIZE_MIB = 32
BLOCK = 4096
WRITES = (("log/0", 3), ("", 40), ("manifests/", 3))  # entries of the log, any, manifests
SHARES = (0.05, 0.02, 0.1, 0.3, 0.2, 0.5, 0.7, 0.9)


@dataclass(slots=True)
class FullStorage:
    """A directory on a disk that has room for so many writes of names that start so; then it stays
    full (`lasting`), or somebody makes space right after one has failed."""

    real: LocalStorage
    room: int
    start: str
    lasting: bool
    failed: bool = False

    def _spend(self, wanted: str, name: str, half: bytes) -> None:
        self.room -= wanted.startswith(self.start)
        is_full = self.room < 0 and (self.lasting or not self.failed)
        if is_full:
            self.failed = True
            path = Path(self.real.root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(half)  # what did fit stays, as on a real disk
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def write_table(self, name: str, table: pa.Table) -> int:
        self._spend(name, name, b"ARROW1")
        return self.real.write_table(name, table)

    def create(self, name: str, data: bytes) -> bool:
        self._spend(name, f"drafts/full{self.room}", data[: len(data) // 2])
        return self.real.create(name, data)

    def read_table(self, name: str) -> pa.Table:
        return self.real.read_table(name)

    def read(self, name: str) -> bytes:
        return self.real.read(name)

    def exists(self, name: str) -> bool:
        return self.real.exists(name)

    def size(self, name: str) -> int:
        return self.real.size(name)

    def listing(self, folder: str) -> list[str]:
        return self.real.listing(folder)

    def delete(self, name: str) -> None:
        self.real.delete(name)


def small(root: Path, ledger: Ledger, times: int, seed: int = 3) -> None:
    """Without a JVM: one life after another ends on a full disk, the last has room."""
    work.write_input(root)
    wanted = work.expected(work.queries(root))
    rng = random.Random(seed)
    silent = full = 0
    for number in range(times):
        real = LocalStorage(str(root / "path"), durable=False)
        start, most = WRITES[number % len(WRITES)]
        disk = FullStorage(real, rng.randrange(most), start, lasting=number % 2 == 0)
        try:
            small_driver.live(root, storage=disk)
            silent += disk.failed
        except OSError as error:
            silent += error.errno != errno.ENOSPC
        full += disk.failed
    ledger.check(f"{full} random writes without space end the run", full and not silent, silent)
    small_driver.live(root)
    ledger.none("no JVM: with space again the output is complete", work.problems(root, wanted))


# -- a real one --------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(place: Path) -> Iterator[bool]:
    """A file system of its own, if we may mount one."""
    place.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MIB}m", "tmpfs", str(place)]
    with contextlib.suppress(FileNotFoundError):
        if subprocess.run(command, capture_output=True).returncode == 0:
            try:
                yield True
            finally:
                # an abandoned run may still hold files open
                subprocess.run(["umount", "--lazy", str(place)], capture_output=True)
            return
    yield False


def fill(place: Path, free: int) -> Path:
    """Leave so many bytes."""
    ballast = place / "ballast"
    found = os.statvfs(place)
    size = max(found.f_bavail * found.f_frsize - free, 0) // BLOCK * BLOCK
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(size, 1))
    return ballast


def used(folder: Path) -> int:
    files = [p for p in folder.rglob("*") if p.is_file()]
    return sum(-(-p.stat().st_size // BLOCK) * BLOCK for p in files)


def run(root: Path, spark: Any, ledger: Ledger, quick: bool) -> None:
    small(root / "small", ledger, 10 if quick else 40)
    with small_disk(root / "disk") as mounted:
        if mounted:
            size = _undisturbed(root / "disk" / "whole", spark)
            for share in SHARES[::3] if quick else SHARES:
                _on_full_disk(root / "disk", spark, ledger, share, int(size * share))
        else:
            ledger.notes.append("no tmpfs could be mounted: ENOSPC was raised by a storage only")
    _while_ingest_waits(root / "waiting", spark, ledger)


def _undisturbed(folder: Path, spark: Any) -> int:
    work.write_input(folder)
    before = used(folder)
    error = _one_run(folder, spark)
    if error is not None:
        raise error
    return used(folder) - before


def _one_run(folder: Path, spark: Any) -> BaseException | None:
    import thalweg as tw

    def act() -> None:
        with tw.Engine(spark, folder / "path", parallelism=2) as engine:
            queries = spark_driver.add_work(engine, folder)
            engine.run()
            spark_driver.save_results(engine, folder, queries)

    return attempt(act, 60)


def _on_full_disk(disk: Path, spark: Any, ledger: Ledger, share: float, free: int) -> None:
    folder = disk / f"share{share}"
    work.write_input(folder)
    wanted = work.expected(work.queries(folder))
    ballast = fill(disk, free)
    title = f"room for {share:.0%}"
    error = _one_run(folder, spark)
    ledger.check(
        f"{title}: the run ends with an error",
        error is not None and not isinstance(error, TimeoutError),
        error or "no error at all",
    )
    if error is not None:
        ledger.tell(f"{error}", f"(?i)(?=.*(no space|is full))(?=.*{folder.name})")
    ballast.unlink()
    error = _one_run(folder, spark)
    if ledger.check(f"{title}: with space again the run gets to the end", error is None, error):
        ledger.none(f"{title}: the output is complete", work.problems(folder, wanted))


def _while_ingest_waits(root: Path, spark: Any, ledger: Ledger) -> None:
    """An epoch finds no space while ingest, far ahead, waits for room in the log."""
    import thalweg as tw

    work.write_input(root)
    with tw.Engine(spark, root / "path", parallelism=2) as engine:
        spark_driver.add_work(engine, root)
        log = engine._runs._log

        def full(report: Any) -> None:
            wait_until(lambda: len(log._pending) >= MOST_PENDING, 20)
            time.sleep(3)  # the next batch stands before the log
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(root / "path"))

        error = attempt(lambda: engine.run(full), 30)
        ledger.check("while ingest waits for the epochs: the run ends too",
                     isinstance(error, ThalwegError),
                     repr(error))  # fmt: skip
        log.fail()  # lets a run go that hangs
