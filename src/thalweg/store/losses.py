"""What is lost with a file of a path, told when it is missing, damaged or cannot be read."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from thalweg.errors import FileDamaged, FileMissing, FileTrouble

_REMEDY = "restore the file from a copy of the path, or start over on a new path"


def loss(name: str) -> str:
    """What a file of a path holds.

    >>> loss("q/spikes/3-17-out-5e.arrow")
    'results or state of query spikes'
    >>> loss("log/000000000012.json")
    'the rows of one batch'
    """
    folder, *rest = name.split("/")
    if folder == "q" and len(rest) > 1:
        of = {
            "answers": "the answer of a relation",
            "passed": "rows kept for queries that are asked",
        }
        return of.get(rest[0], f"results or state of query {unquote(rest[0])}")
    if folder == "log":
        return "the rows of one batch" if name.endswith(".json") else "rows of a stream"
    return {
        "manifests": "the state of all queries",
        "late": "rejected rows",
        "tables": "rows of a table",
        "control": "a request of another process, or its answer",
        "leases": "how far a reader of results is",
        "format.json": "the format of the path",
    }.get(folder, "a part of the path")


def damaged(root: str, name: str, why: object) -> FileDamaged:
    """The refusal of a file that is not as it was written."""
    return FileDamaged(f"{root}/{name} is damaged: {why}; it holds {loss(name)}", remedy=_REMEDY)


def missing(root: str, name: str) -> FileMissing:
    """The refusal of a file that is not there."""
    return FileMissing(f"{root}/{name} is missing; it holds {loss(name)}", remedy=_REMEDY)


@contextmanager
def told(root: str, name: str, doing: str) -> Iterator[None]:
    """Failures of the system as refusals that name the file, and what it holds."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing(root, name) from error
    except OSError as error:
        raise _trouble(f"{root}/{name}", doing, error, loss(name)) from error


def _trouble(path: str, doing: str, error: OSError, holds: str) -> FileTrouble:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    found = FileTrouble(
        f"cannot {doing} {path}: {error.strerror or error}; it holds {holds}",
        remedy="make room on the device, then start the engine again: nothing committed is lost"
        if full
        else "let the engine's user read and write all files of the path, and see that the "
        "device works; then start the engine again: nothing committed is lost",
    )
    found.errno = error.errno
    return found
