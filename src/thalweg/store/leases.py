"""Leases: the progress of followers of a query's results, so that nothing they need is forgotten.

A follower (a Spark job that reads with `format("thalweg")`) writes one small file and renews it;
one that has not been renewed for a week is taken for dead.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from thalweg.errors import FileMissing
from thalweg.store.file_names import file_name_of
from thalweg.store.json_files import create_json, load_json
from thalweg.store.storage import Storage

FOLDER = "leases"
DEAD_AFTER = 7 * 86_400
_LEASE = re.compile(rf"{FOLDER}/[^/]+/\d{{12}}-[0-9a-f]{{8}}\.json")


@dataclass(frozen=True, slots=True)
class Lease:
    """The follower has read everything up to `epoch`; `renewed` is in seconds since 1970."""

    follower: str
    query: str
    epoch: int
    renewed: float


def renew(storage: Storage, lease: Lease) -> None:
    # a name of its own each time: files are created, never changed
    name = f"{_folder(lease.follower)}{lease.epoch:012d}-{uuid.uuid4().hex[:8]}.json"
    data = {"query": lease.query, "epoch": lease.epoch, "renewed": lease.renewed}
    create_json(storage, name, data)
    for other in _of(storage, lease.follower):
        if other != name:
            storage.delete(other)


def release(storage: Storage, follower: str) -> None:
    for name in _of(storage, follower):
        storage.delete(name)


def leases(storage: Storage) -> Iterator[Lease]:
    """The leases of followers that are alive, for each the one with the latest epoch."""
    latest: dict[str, Lease] = {}
    for name in filter(_LEASE.fullmatch, storage.listing(FOLDER)):
        follower = unquote(name.removeprefix(f"{FOLDER}/").rsplit("/", 1)[0])
        try:
            found = Lease(follower, **load_json(storage, name))
        except FileMissing:
            continue  # renewed during the listing
        known = latest.get(follower, found)
        latest[follower] = max(known, found, key=lambda lease: (lease.epoch, lease.renewed))
    alive = time.time() - DEAD_AFTER
    yield from (lease for lease in latest.values() if lease.renewed >= alive)


def followed(storage: Storage) -> dict[str, int]:
    """Per query with followers the epoch up to which all of them have read everything."""
    found: dict[str, int] = {}
    for lease in leases(storage):
        found[lease.query] = min(found.get(lease.query, lease.epoch), lease.epoch)
    return found


def _of(storage: Storage, follower: str) -> list[str]:
    return [n for n in storage.listing(FOLDER) if n.startswith(_folder(follower))]


def _folder(follower: str) -> str:
    return f"{FOLDER}/{file_name_of(follower)}/"
