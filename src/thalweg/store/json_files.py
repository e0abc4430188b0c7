"""JSON files of a path: sealed when they are written, verified when they are read."""

from __future__ import annotations

from typing import Any

from thalweg.store.losses import damaged
from thalweg.store.seals import Broken, read_json, sealed_json
from thalweg.store.storage import Storage, where


def create_json(storage: Storage, name: str, value: Any) -> bool:
    """Create a file with a value, wholly or not at all; False if it is there already."""
    return storage.create(name, sealed_json(value))


def load_json(storage: Storage, name: str) -> Any:
    """The value of a file; a changed file is refused."""
    data = storage.read(name)
    try:
        return read_json(data)
    except Broken as error:
        raise damaged(where(storage), name, error) from error
