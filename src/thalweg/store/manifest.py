"""Manifests: the state of the engine after each epoch, committed by creating one small file.

A manifest is the difference to the one before; every so often a whole one is written as well, so
that opening a path reads a bounded number of files. Plain JSON, never pickle.
"""

from __future__ import annotations

import re
from typing import Any

from thalweg.errors import FormatTooNew, PathError, PathInUse
from thalweg.store.json_files import create_json, load_json
from thalweg.store.storage import Storage, where

FOLDER = "manifests"
FORMAT = 5
CHECKPOINT_EVERY = 32
MOST_CHECKPOINTS_LEFT_OUT = 8
"""A large state with few changes is written as a whole at the latest after this many."""
FORMAT_FILE = "format.json"

State = dict[str, Any]
_NOTHING = object()
_MANIFEST = re.compile(rf"{FOLDER}/\d{{12}}(\.whole)?\.json")


def manifest_name(epoch: int, whole: bool = False) -> str:
    return f"{FOLDER}/{epoch:012d}{'.whole' if whole else ''}.json"


def refuse_newer(storage: Storage) -> int | None:
    """Refuse a path of a newer version, before anything in it is changed; returns its format, None
    on a path without one."""
    if not storage.exists(FORMAT_FILE):
        return None
    found = int(load_json(storage, FORMAT_FILE)["format"])
    if found > FORMAT:
        raise FormatTooNew(
            f"the path has format {found}, this version reads up to {FORMAT}",
            remedy="upgrade Thalweg, or use another path; nothing was changed",
        )
    return found


def check_format(storage: Storage) -> None:
    """Refuse a newer format; mark a fresh path, or an older one, with the present format: older
    versions must not read it."""
    found = refuse_newer(storage)
    if found is not None and found < FORMAT:
        storage.delete(FORMAT_FILE)
    if found is None or found < FORMAT:
        create_json(storage, FORMAT_FILE, {"format": FORMAT})


def difference(old: State, new: State, depth: int = 3) -> State:
    """Keys to set and keys to drop, and of dictionaries that are in both the same, some levels
    deep: of a query, say, only what has changed."""
    sets: State = {}
    nested: State = {}
    for key, value in new.items():
        before = old.get(key, _NOTHING)
        if value is before:
            continue
        if depth > 1 and isinstance(value, dict) and isinstance(before, dict):
            change = difference(before, value, depth - 1)
            if change:
                nested[key] = change
        elif value != before:
            sets[key] = value
    drops = [key for key in old if key not in new]
    found = {"set": sets, "nested": nested, "drop": drops}
    return {name: part for name, part in found.items() if part}


def apply(state: State, change: State) -> State:
    drops = set(change.get("drop", ()))
    merged = {**{k: v for k, v in state.items() if k not in drops}, **change.get("set", {})}
    for key, part in change.get("nested", {}).items():
        merged[key] = apply(merged.get(key, {}), part)
    return merged


def commit_manifest(storage: Storage, epoch: int, old: State, new: State) -> None:
    """Commit an epoch's state as the current one; if its place is taken, another owner is alive."""
    if not create_json(storage, manifest_name(epoch), difference(old, new)):
        raise PathInUse(
            f"epoch {epoch} was committed by another engine",
            remedy="another engine runs on this path: stop it, or use another path",
        )
    if epoch % CHECKPOINT_EVERY == 0 and _whole_pays(storage):
        write_whole(storage, epoch, new)


def _whole_pays(storage: Storage) -> bool:
    """Whether the manifests since the last whole one are as long as it, or many."""
    names = _manifests(storage)
    last = max((n for n in names if n.endswith(".whole.json")), default=None)
    if last is None:
        return True
    since = [n for n in names if _number(n) > _number(last)]
    if len(since) >= MOST_CHECKPOINTS_LEFT_OUT * CHECKPOINT_EVERY:
        return True
    return sum(map(storage.size, since)) >= storage.size(last)


def write_whole(storage: Storage, epoch: int, state: State) -> None:
    """Write a committed epoch's whole state and drop the manifests it makes superfluous."""
    create_json(storage, manifest_name(epoch, whole=True), state)
    for name in superseded(storage, epoch):
        storage.delete(name)


def superseded(storage: Storage, epoch: int) -> list[str]:
    """Manifests that are superfluous once this epoch has a whole one."""
    limit = manifest_name(epoch)
    return [name for name in _manifests(storage) if name < limit]


def load(storage: Storage) -> tuple[int, State]:
    """The last committed epoch and its state; (0, {}) on a fresh path."""
    names = _manifests(storage)
    wholes = [n for n in names if n.endswith(".whole.json")]
    state: State = {}
    epoch = 0
    if wholes:
        epoch = _number(wholes[-1])
        state = load_json(storage, wholes[-1])
    for name in names:
        if not name.endswith(".whole.json") and _number(name) > epoch:
            _refuse_gap(storage, epoch + 1, _number(name))
            state = apply(state, load_json(storage, name))
            epoch = _number(name)
    return epoch, state


def _refuse_gap(storage: Storage, wanted: int, found: int) -> None:
    """Refuse gaps between epochs: differences over one would give a state that never was."""
    if found != wanted:
        raise PathError(
            f"the manifest of epoch {wanted} is missing in {where(storage)}/{FOLDER}, though there "
            f"is one of epoch {found}",
            remedy="restore the manifests folder from a copy; nothing was changed",
        )


def _manifests(storage: Storage) -> list[str]:
    """Manifests in order; other files in their folder are none of the engine's."""
    return [n for n in storage.listing(FOLDER) if _MANIFEST.fullmatch(n)]


def _number(name: str) -> int:
    return int(name.rsplit("/", 1)[1].split(".")[0])
