"""Points at which a driver kills itself: `KIND NUMBER WHEN`, from the variable CHAOS_POINT.

log 2 before        before the second commit to the log
manifests 3 inside  the draft of the third manifest is written, the hard link is not made
log 1 after         the first log entry is there, Spark has not heard of it
spark 2 between     the second batch is in the log and in a manifest, and Spark, whose batch
                    this is, has not committed it
sink 1 inside       the first file of a sink is drafted, not yet in its place
sink 1 after        it is in its place, nothing has marked that
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from thalweg.runtime.sinks import sinks
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.store.storage import LocalStorage

VARIABLE = "CHAOS_POINT"
WHENS = ("before", "inside", "after")
_seen: dict[str, int] = {"log": 0, "manifests": 0, "sink": 0, "spark": 0}


def die() -> None:
    """This process, its JVM and its workers, at once; the driver leads its process group."""
    os.killpg(os.getpgid(0), signal.SIGKILL)
    time.sleep(60)


def arm(point: str) -> None:
    """Make a point the last thing this process does; no point, no harm."""
    if not point:
        return
    kind, number, when = point.split()
    if kind == "spark":
        _die_between(int(number))
    elif kind == "sink":
        _die_at_sink(int(number), when)
    else:
        _die_at_commit(kind, int(number), when)


def arm_from_environment() -> None:
    arm(os.environ.get(VARIABLE, ""))


def _die_at_commit(folder: str, number: int, when: str) -> None:
    commit, link = LocalStorage.create, os.link

    def dying_link(source: Any, target: Any) -> None:
        if f"/{folder}/" in str(target):
            _seen[folder] += 1
            if _seen[folder] == number and when == "inside":
                die()
        link(source, target)

    def dying_commit(self: LocalStorage, name: str, data: bytes) -> bool:
        mine = name.startswith(f"{folder}/")
        if mine and when == "before" and _seen[folder] + 1 == number:
            die()
        done = commit(self, name, data)
        if mine and when == "after" and _seen[folder] == number:
            die()
        return done

    os.link = dying_link  # type: ignore[assignment]
    LocalStorage.create = dying_commit  # type: ignore[method-assign]


def _die_between(number: int) -> None:
    """Hold the batch after its log entry, so that Spark cannot commit it, until the manifest that
    takes the entry in is there."""
    append, commit = LogWriter.append, LocalStorage.create
    held: list[int] = []

    def holding_append(self: LogWriter, *args: Any, **named: Any) -> None:
        append(self, *args, **named)
        _seen["spark"] += 1
        if _seen["spark"] == number:
            held.append(self.next_seq)
            threading.Event().wait()

    def dying_commit(self: LocalStorage, name: str, data: bytes) -> bool:
        done = commit(self, name, data)
        if held and name.startswith("manifests/"):
            change = json.loads(data.splitlines()[0])  # a checksum stands below
            if change.get("set", change).get("next_seq", 0) >= held[0]:
                die()
        return done

    LogWriter.append = holding_append  # type: ignore[method-assign]
    LocalStorage.create = dying_commit  # type: ignore[method-assign]


def _die_at_sink(number: int, when: str) -> None:
    write: Callable[..., None] = sinks.write_file
    replace = os.replace

    def dying_replace(source: Any, target: Any, **named: Any) -> None:
        if when == "inside" and _seen["sink"] == number and str(source).endswith(".draft"):
            die()
        replace(source, target, **named)

    def dying_write(*args: Any) -> None:
        _seen["sink"] += 1
        if when == "before" and _seen["sink"] == number:
            die()
        write(*args)
        if when == "after" and _seen["sink"] == number:
            die()

    os.replace = dying_replace  # type: ignore[assignment]
    sinks.write_file = dying_write  # type: ignore[assignment]
