"""Opening a path: one owner, a known format, the last committed state, no leftovers."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Any

from thalweg.errors import PathInUse
from thalweg.runtime.state import EngineState
from thalweg.store import manifest
from thalweg.store.log import FOLDER as LOG
from thalweg.store.log import entries_from, entry_name
from thalweg.store.storage import DRAFTS, LocalStorage, Storage

PACK_FOLDERS = ("log", "late", "q", "tables")


def claim(storage: Storage) -> Any:
    """Hold the path for this process; a local path is locked, elsewhere commits arbitrate."""
    manifest.refuse_newer(storage)
    if not isinstance(storage, LocalStorage):
        return None
    Path(storage.root).mkdir(parents=True, exist_ok=True)
    lock = Path(storage.root, "owner.lock").open("a+")  # noqa: SIM115 - held for our lifetime
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        lock.close()
        raise PathInUse(
            f"{storage.root} is in use by process {owner}",
            remedy="stop that engine first, or use another path",
        ) from None
    lock.seek(0)
    lock.truncate()
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def release(lock: Any) -> None:
    if lock is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)
            lock.close()


def load_state(storage: Storage) -> EngineState:
    """The state after the last committed epoch, as a new incarnation of the engine."""
    manifest.check_format(storage)
    epoch, saved = manifest.load(storage)
    state = EngineState.from_json(saved)
    state.epoch = epoch
    state.incarnation += 1
    return state


def sweep(storage: Storage, state: EngineState) -> int:
    """Delete files that neither the state nor the log refers to, entries that were taken in and
    commits that never happened; returns how many."""
    known, first = state.files(), state.next_seq
    for entry in entries_from(storage, first):
        known |= {p.name for ps in (*entry.packs.values(), *entry.rejects.values()) for p in ps}
    orphans = [
        name
        for folder in PACK_FOLDERS
        for name in storage.listing(folder)
        if name.endswith(".arrow") and name not in known
    ]
    orphans += [n for n in storage.listing(LOG) if n.endswith(".json") and n < entry_name(first)]
    orphans += storage.listing(DRAFTS)
    for name in orphans:
        storage.delete(name)
    return len(orphans)
