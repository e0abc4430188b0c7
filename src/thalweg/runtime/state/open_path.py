"""Opening a path: one owner, a known format, the last committed state, no leftovers."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from filelock import lock_descriptor, unlock_descriptor

from thalweg.errors import PathError, PathInUse
from thalweg.runtime.state.clock import not_before
from thalweg.runtime.state.engine_state import EngineState
from thalweg.store import manifest
from thalweg.store.log import LogEntry, entries_from, entry_name, is_entry
from thalweg.store.storage import COLD, DRAFTS, LocalStorage, Storage, where

PACK_FOLDERS = ("log", "late", "q", "tables")
LOCK = "owner.lock"
_PACK = re.compile(rf"-[0-9a-f]{{12,16}}(\.arrow|{re.escape(COLD)})$")


def claim(storage: Storage) -> Any:
    """Hold the path for this process; a local path is locked, elsewhere commits arbitrate."""
    manifest.refuse_newer(storage)
    if not isinstance(storage, LocalStorage):
        return None
    Path(storage.root).mkdir(mode=0o700, parents=True, exist_ok=True)  # it may hold secrets
    lock = _locked(storage, "a+")
    lock.seek(0)
    lock.truncate()
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def hold(storage: Storage) -> Any:
    """Keep engines off a path for a moment without a trace: nothing is created or changed."""
    if isinstance(storage, LocalStorage) and storage.exists(LOCK):
        return _locked(storage, "r")
    return None


def _locked(storage: LocalStorage, mode: str) -> Any:
    lock = Path(storage.root, LOCK).open(mode)  # noqa: SIM115 - held for our lifetime
    if not lock_descriptor(lock.fileno(), blocking=False):
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        lock.close()
        raise PathInUse(
            f"{storage.root} is in use by process {owner}",
            remedy="stop that engine first, or use another path",
        )
    return lock


def release(lock: Any) -> None:
    if lock is not None:
        with contextlib.suppress(OSError):
            if lock.writable():
                lock.truncate(0)  # an owner that is named and alive is at work
            unlock_descriptor(lock.fileno())
            lock.close()


def owner(storage: Storage) -> int | None:
    """The process that has the path open, as far as can be told without asking for the lock."""
    try:
        pid = int(storage.read(LOCK))
        os.kill(pid, 0)
    except PermissionError:
        return pid
    except (OSError, PathError, ValueError):
        return None
    return pid


def refuse_foreign(storage: Storage) -> int:
    """Refuse what no engine has ever opened, and what a newer one has; the format otherwise."""
    found = manifest.refuse_newer(storage)
    if found is None:
        raise PathError(
            f"{where(storage)} is not the path of an engine",
            remedy=f"give the path of an Engine or of `thalweg run --path`; it has a "
            f"{manifest.FORMAT_FILE}",
        )
    return found


def committed_state(storage: Storage) -> EngineState:
    """The state after the last committed epoch; nothing is changed by looking."""
    epoch, saved = manifest.load(storage)
    state = EngineState.from_json(saved)
    state.epoch = epoch
    return state


def load_state(storage: Storage) -> EngineState:
    """The state after the last committed epoch, as a new incarnation of the engine."""
    manifest.check_format(storage)
    state = committed_state(storage)
    state.incarnation += 1
    not_before(state.clock)
    return state


def leftovers(names: Iterable[str], state: EngineState, waiting: Iterable[LogEntry]) -> list[str]:
    """Of these files, the packs that neither the state nor the waiting log entries refer to, the
    entries that were taken in, and commits that never happened. Files of other names are none of
    the engine's."""
    known, first = state.files(), entry_name(state.next_seq)
    for entry in waiting:
        known |= entry.files()
    return [
        name
        for name in names
        if (_PACK.search(name) and name not in known)
        or (is_entry(name) and name < first)
        or name.startswith(f"{DRAFTS}/")
    ]


def sweep(storage: Storage, state: EngineState) -> int:
    """Delete what nothing refers to; returns how many files."""
    waiting = list(entries_from(storage, state.next_seq))
    names = [n for folder in (*PACK_FOLDERS, DRAFTS) for n in storage.listing(folder)]
    orphans = leftovers(names, state, waiting)
    for name in orphans:
        storage.delete(name)
    return len(orphans)
