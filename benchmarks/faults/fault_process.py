"""Faults in a process of their own: arguments FOLDER QUICK MODULE ....

The modules share one Spark session. Each one's ledger is printed as a line of JSON when it is done,
so that one that hangs or dies takes nothing from those before it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from child import command
from faults import processes
from faults.ledger import Ledger

MARK = "ledger "
_CAPBSET_DROP, _DAC_OVERRIDE, _DAC_READ_SEARCH = 24, 1, 2


def attempt(act: Callable[[], object], seconds: float) -> BaseException | None:
    """Do something that may fail or hang; what it raised, or a TimeoutError."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return TimeoutError(f"it did not end within {seconds:g} s")
    return raised[0] if raised else None


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())


# -- the parent's side -------------------------------------------------------------------------


def run_child(
    root: Path, modules: Sequence[str], quick: bool, seconds: float, faults: dict[str, str]
) -> list[Ledger]:
    """Run the modules in a child; one that gives no ledger in time is entered as failed."""
    root.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "TMPDIR": str(root), "PYTHONWARNINGS": "ignore"}
    with (root / "stdout").open("wb") as out, (root / "stderr").open("wb") as errors:
        child = subprocess.Popen(
            command(__name__, str(root), str(int(quick)), *modules),
            env=env, stdout=out, stderr=errors, start_new_session=True, preexec_fn=obey_permissions,
        )  # fmt: skip
        try:
            child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            processes.end_session(child.pid)
            child.wait()
            _unmount_below(root)
    lines = (root / "stdout").read_text().splitlines()
    found = [Ledger.from_dict(json.loads(x[len(MARK) :])) for x in lines if x.startswith(MARK)]
    said = (root / "stderr").read_text()[-2000:]
    for module in modules:
        if faults[module] not in {ledger.fault for ledger in found}:
            silent = Ledger(faults[module])
            silent.check(f"{module} comes to an end within {seconds:g} s", False, said)
            found.append(silent)
    return found


def _unmount_below(root: Path) -> None:
    """A child that was killed has left the disk it mounted."""
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for place in (p for p in places if p.startswith(f"{root}/")):
        subprocess.run(["umount", "--lazy", place], capture_output=True)


def obey_permissions() -> None:
    """Root reads what it may not; after the exec that follows it no longer does."""
    libc = ctypes.CDLL(None)
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)


# -- the child's side --------------------------------------------------------------------------


def main(root: Path, quick: bool, modules: Sequence[str]) -> None:
    from thalweg.spark.settings import create_session

    master = getattr(importlib.import_module(modules[0]), "MASTER", "local[2,4]")
    spark = create_session(master)
    for name in modules:
        module = importlib.import_module(name)
        ledger = Ledger(module.FAULT)
        begun = time.monotonic()
        try:
            module.run(root / name.rpartition(".")[2], spark, ledger, quick)
        except BaseException:
            ledger.check("the check itself comes to an end", False, traceback.format_exc()[-2000:])
        ledger.figures["seconds"] = time.monotonic() - begun
        print(MARK + json.dumps(ledger.to_dict()), flush=True)
    os._exit(0)  # a thread that hangs must not keep the process


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "1", sys.argv[3:])
