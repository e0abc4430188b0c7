"""The control log: requests of other processes, each one small file, and the answers to them.

A request has a name of its own that begins with the time, so that requests are processed in the
order they were made and two clients never write the same file. The client reads the answer and
removes it.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from thalweg.errors import FileDamaged
from thalweg.store.json_files import create_json, load_json
from thalweg.store.storage import Storage

REQUESTS, ANSWERS = "control/requests", "control/answers"
_NAME = re.compile(r"(\d{20})-[0-9a-f]{8}\.json")


@dataclass(frozen=True, slots=True)
class Request:
    """A script to run between two epochs; `query` is the name for a single SELECT."""

    name: str
    script: str
    query: str | None = None


def submit(storage: Storage, script: str, query: str | None = None) -> Request:
    """Write a request; an engine on the path will process it, now or when one is started."""
    request = Request(f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}", script, query)
    create_json(storage, f"{REQUESTS}/{request.name}.json", {"script": script, "query": query})
    return request


def waiting(storage: Storage) -> Iterator[Request]:
    """Requests in the order they were made; one that is damaged is answered with that."""
    for file in sorted(storage.listing(REQUESTS)):
        if _made(file) is None:
            continue
        name = file.rsplit("/", 1)[1].removesuffix(".json")
        try:
            yield Request(name, **load_json(storage, file))
        except FileDamaged as error:
            refusal = {"error": "FileDamaged", "message": error.message, "remedy": "ask again"}
            answer(storage, name, refusal)


def answer(storage: Storage, name: str, outcome: dict[str, Any]) -> None:
    """Write the answer to a request, and remove the request."""
    create_json(storage, f"{ANSWERS}/{name}.json", outcome)
    storage.delete(f"{REQUESTS}/{name}.json")


def answered(storage: Storage, name: str) -> dict[str, Any] | None:
    """The answer to a request, once there is one; it is removed."""
    file = f"{ANSWERS}/{name}.json"
    if not storage.exists(file):
        return None
    found: dict[str, Any] = load_json(storage, file)
    storage.delete(file)
    return found


def forget_answers(storage: Storage, older_than: float) -> None:
    """Remove answers, older than an instant (seconds since 1970), that no client has fetched."""
    for file in storage.listing(ANSWERS):
        made = _made(file)
        if made is not None and made < older_than * 1e9:
            storage.delete(file)


def _made(file: str) -> int | None:
    """When a request or an answer was made (ns since 1970); None for files of others."""
    found = _NAME.fullmatch(file.rsplit("/", 1)[1])
    return None if found is None else int(found[1])
