"""The log: one entry per ingested micro-batch, committed by creating one small file.

An entry names the packs a batch brought, per stream. A batch is in the log or it is not; a retried
task leaves an orphan file that no entry names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from thalweg.errors import PathError, PathInUse
from thalweg.store.json_files import create_json, load_json
from thalweg.store.packs import PackMeta
from thalweg.store.storage import Storage, where

FOLDER = "log"
_ENTRY = re.compile(rf"{FOLDER}/\d{{12}}\.json")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """`source` is (ingest query id, batch id); packs and raw reject packs are per stream. A
    heartbeat promises that no more row of a stream before an instant will arrive."""

    seq: int
    group: int
    source: tuple[str, int]
    packs: dict[str, tuple[PackMeta, ...]]
    rejects: dict[str, tuple[PackMeta, ...]]
    clock: int
    heartbeats: dict[str, int] = field(default_factory=dict)

    def files(self) -> set[str]:
        """Every pack the entry names."""
        return {p.name for ps in (*self.packs.values(), *self.rejects.values()) for p in ps}

    def to_json(self) -> dict[str, Any]:
        return {
            "seq": self.seq,
            "group": self.group,
            "source": list(self.source),
            "packs": {s: [p.to_json() for p in ps] for s, ps in self.packs.items()},
            "rejects": {s: [p.to_json() for p in ps] for s, ps in self.rejects.items()},
            "clock": self.clock,
            "heartbeats": self.heartbeats,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> LogEntry:
        return LogEntry(
            data["seq"],
            data["group"],
            (data["source"][0], data["source"][1]),
            _packs(data["packs"]),
            _packs(data["rejects"]),
            data["clock"],
            data.get("heartbeats", {}),
        )


def _packs(data: dict[str, list[list[object]]]) -> dict[str, tuple[PackMeta, ...]]:
    return {s: tuple(PackMeta.from_json(p) for p in ps) for s, ps in data.items()}


def entry_name(seq: int) -> str:
    return f"{FOLDER}/{seq:012d}.json"


def is_entry(name: str) -> bool:
    """Whether a file is an entry of the log."""
    return _ENTRY.fullmatch(name) is not None


def commit_entry(storage: Storage, entry: LogEntry) -> None:
    """Make the entry part of the log; if its place is taken, another owner is alive."""
    if not create_json(storage, entry_name(entry.seq), entry.to_json()):
        raise PathInUse(
            f"log entry {entry.seq} was written by another engine",
            remedy="another engine runs on this path: stop it, or use another path",
        )


def entries_from(storage: Storage, seq: int) -> Iterator[LogEntry]:
    """Committed entries from `seq` on, in order; a gap is refused, its rows would be lost."""
    names = [n for n in storage.listing(FOLDER) if is_entry(n) and n >= entry_name(seq)]
    for wanted, name in enumerate(names, seq):
        if name != entry_name(wanted):
            raise PathError(
                f"{where(storage)}/{entry_name(wanted)} is missing, though there is {name}; it "
                "held the rows of one batch",
                remedy="restore the file from a copy of the path, or start over on a new path; "
                "nothing was changed",
            )
        yield LogEntry.from_json(load_json(storage, name))
