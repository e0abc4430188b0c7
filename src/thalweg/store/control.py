"""The control log: requests of other processes, each one small file, and the answers to them.

A request has a name of its own that begins with the time, so that requests are processed in the
order they were made and two clients never write the same file. The client reads the answer and
removes it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from thalweg.store.storage import Storage

REQUESTS, ANSWERS = "control/requests", "control/answers"


@dataclass(frozen=True, slots=True)
class Request:
    """A script to run between two epochs; `query` is the name for a single SELECT."""

    name: str
    script: str
    query: str | None = None


def submit(storage: Storage, script: str, query: str | None = None) -> Request:
    """Write a request; an engine on the path will process it, now or when one is started."""
    request = Request(f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}", script, query)
    data = json.dumps({"script": script, "query": query}).encode()
    storage.create(f"{REQUESTS}/{request.name}.json", data)
    return request


def waiting(storage: Storage) -> Iterator[Request]:
    """Requests in the order they were made."""
    for file in sorted(storage.listing(REQUESTS)):
        if file.endswith(".json"):
            name = file.rsplit("/", 1)[1].removesuffix(".json")
            yield Request(name, **json.loads(storage.read(file)))


def answer(storage: Storage, name: str, outcome: dict[str, Any]) -> None:
    """Write the answer to a request, and remove the request."""
    storage.create(f"{ANSWERS}/{name}.json", json.dumps(outcome).encode())
    storage.delete(f"{REQUESTS}/{name}.json")


def answered(storage: Storage, name: str) -> dict[str, Any] | None:
    """The answer to a request, once there is one; it is removed."""
    file = f"{ANSWERS}/{name}.json"
    if not storage.exists(file):
        return None
    found: dict[str, Any] = json.loads(storage.read(file))
    storage.delete(file)
    return found


def forget_answers(storage: Storage, older_than: float) -> None:
    """Remove answers, older than an instant (seconds since 1970), that no client has fetched."""
    for file in storage.listing(ANSWERS):
        if int(file.rsplit("/", 1)[1].split("-")[0]) < older_than * 1e9:
            storage.delete(file)
