"""A directory whose owner dies at one of its operations, and what must not be left in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from thalweg.runtime.state.open_path import load_state, sweep
from thalweg.store.storage import LocalStorage


class Killed(BaseException):
    """The process is gone; no handler of ours may catch it."""


@dataclass(frozen=True, slots=True)
class DyingStorage:
    """A directory whose owner dies at one point, counted over all its operations."""

    real: LocalStorage
    die_at: int = -1
    seen: list[str] = field(default_factory=list)

    def _point(self, what: str) -> None:
        self.seen.append(what)
        if len(self.seen) - 1 == self.die_at:
            raise Killed(what)

    def write_table(self, name: str, table: pa.Table) -> int:
        self._point(f"write {name}: before")
        size = self.real.write_table(name, table)
        whole = Path(self.real.root, name).read_bytes()
        Path(self.real.root, name).write_bytes(whole[: len(whole) // 2])
        self._point(f"write {name}: torn")
        Path(self.real.root, name).write_bytes(whole)
        self._point(f"write {name}: after")
        return size

    def create(self, name: str, data: bytes) -> bool:
        self._point(f"commit {name}: before")
        draft = f"drafts/{len(self.seen)}"
        (Path(self.real.root) / "drafts").mkdir(exist_ok=True)
        Path(self.real.root, draft).write_bytes(data)
        self._point(f"commit {name}: drafted")
        done = self.real.create(name, data)
        self._point(f"commit {name}: linked")
        self.real.delete(draft)
        return done

    def delete(self, name: str) -> None:
        self._point(f"delete {name}: before")
        self.real.delete(name)
        self._point(f"delete {name}: after")

    def read_table(self, name: str) -> pa.Table:
        return self.real.read_table(name)

    def size(self, name: str) -> int:
        return self.real.size(name)

    def read(self, name: str) -> bytes:
        return self.real.read(name)

    def exists(self, name: str) -> bool:
        return self.real.exists(name)

    def listing(self, folder: str) -> list[str]:
        return self.real.listing(folder)


def storage(path: Path, die_at: int = -1) -> DyingStorage:
    return DyingStorage(LocalStorage(str(path), durable=False), die_at)


def orphans(path: Path) -> set[str]:
    """Files left after opening the path once more that nothing refers to."""
    files = storage(path)
    state = load_state(files)
    sweep(files, state)
    found = {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()}
    missing = state.files() - found
    assert not missing, f"lost: {missing}"
    manifests = {n for n in found if n.startswith("manifests/")}
    return found - state.files() - manifests - {"format.json", "owner.lock"}
