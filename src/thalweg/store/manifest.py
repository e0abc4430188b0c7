"""Manifests: the state of the engine after each epoch, committed by creating one small file.

A manifest is the difference to the one before; every so often a whole one is written as well, so
that opening a path reads a bounded number of files. Plain JSON, never pickle.
"""

from __future__ import annotations

import json
from typing import Any

from thalweg.errors import FormatTooNew, PathInUse
from thalweg.store.storage import Storage

FOLDER = "manifests"
FORMAT = 1
CHECKPOINT_EVERY = 32
FORMAT_FILE = "format.json"

State = dict[str, Any]


def manifest_name(epoch: int, whole: bool = False) -> str:
    return f"{FOLDER}/{epoch:012d}{'.whole' if whole else ''}.json"


def refuse_newer(storage: Storage) -> None:
    """Refuse a path of a newer version, before anything in it is touched."""
    if storage.exists(FORMAT_FILE):
        found = json.loads(storage.read(FORMAT_FILE))["format"]
        if found > FORMAT:
            raise FormatTooNew(
                f"the path has format {found}, this version reads up to {FORMAT}",
                remedy="upgrade Thalweg, or use another path; nothing was changed",
            )


def check_format(storage: Storage) -> None:
    """Refuse a newer format; mark a fresh path with ours."""
    refuse_newer(storage)
    if not storage.exists(FORMAT_FILE):
        storage.create(FORMAT_FILE, json.dumps({"format": FORMAT}).encode())


def difference(old: State, new: State) -> State:
    """Keys to set and keys to drop, two levels deep."""
    changed = {k: v for k, v in new.items() if old.get(k) != v and not isinstance(v, dict)}
    nested = {}
    for key, value in new.items():
        if isinstance(value, dict):
            before = old.get(key, {})
            sets = {k: v for k, v in value.items() if before.get(k) != v}
            drops = [k for k in before if k not in value]
            if sets or drops or key not in old:
                nested[key] = {"set": sets, "drop": drops}
    return {"set": changed, "nested": nested}


def apply(state: State, change: State) -> State:
    merged = {**state, **change["set"]}
    for key, part in change["nested"].items():
        inner = {k: v for k, v in merged.get(key, {}).items() if k not in part["drop"]}
        merged[key] = {**inner, **part["set"]}
    return merged


def commit_manifest(storage: Storage, epoch: int, old: State, new: State) -> None:
    """Make epoch's state the current one; if its place is taken, another owner is alive."""
    data = json.dumps(difference(old, new)).encode()
    if not storage.create(manifest_name(epoch), data):
        raise PathInUse(
            f"epoch {epoch} was committed by somebody else",
            remedy="another engine runs on this path: stop it, or use another path",
        )
    if epoch % CHECKPOINT_EVERY == 0:
        storage.create(manifest_name(epoch, whole=True), json.dumps(new).encode())
        forget_before(storage, epoch)


def forget_before(storage: Storage, epoch: int) -> None:
    """Drop manifests that a later whole one makes superfluous."""
    limit = manifest_name(epoch)
    for name in storage.listing(FOLDER):
        if name < limit:
            storage.delete(name)


def load(storage: Storage) -> tuple[int, State]:
    """The last committed epoch and its state; (0, {}) on a fresh path."""
    names = [n for n in storage.listing(FOLDER) if n.endswith(".json")]
    wholes = [n for n in names if n.endswith(".whole.json")]
    state: State = {}
    epoch = 0
    if wholes:
        epoch = _number(wholes[-1])
        state = json.loads(storage.read(wholes[-1]))
    for name in names:
        if not name.endswith(".whole.json") and _number(name) > epoch:
            state = apply(state, json.loads(storage.read(name)))
            epoch = _number(name)
    return epoch, state


def _number(name: str) -> int:
    return int(name.rsplit("/", 1)[1].split(".")[0])
