"""Soft state of tasks in files of the host, so that any process there can continue from it.

Spark may give a task to another Python worker in every epoch. A file holds what one epoch left, and
is mapped into memory when it is opened. One that is incomplete, or not of this boot of the host, is
treated as missing.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray[Any, Any]]
_MAGIC = b"THALWEG1"
_ALIGNED = 64
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_OLD = 86_400
"""Seconds after which a file that has not been written to is removed."""
MOST_BYTES = 64 << 20
"""Size above which nothing is written: writing would take longer than filling caches again."""


@dataclass(frozen=True, slots=True)
class HostFiles:
    """Files by name, each with some facts and arrays."""

    folder: Path

    @staticmethod
    def of(engine: str) -> HostFiles:
        """The files of one engine on this host; old ones of any engine are removed."""
        every = _own_folder(Path(tempfile.gettempdir()))
        with contextlib.suppress(OSError):
            for path in every.glob("*/*"):
                if path.stat().st_mtime < time.time() - _OLD:
                    path.unlink()
        folder = every / _short(engine)
        folder.mkdir(exist_ok=True)
        return HostFiles(folder)

    def write(self, name: str, facts: Mapping[str, Any], arrays: Arrays) -> None:
        """Replace a file atomically. If that fails, there is none."""
        if sum(a.nbytes for a in arrays) > MOST_BYTES:
            self.remove(name)
            return
        shapes = [(a.dtype.str, len(a)) for a in arrays]
        head = json.dumps({"boot": _boot(), "facts": facts, "arrays": shapes}).encode()
        made = self.folder / f"{self._path(name).name}.{os.getpid()}"
        try:
            with made.open("wb") as file:
                file.write(_MAGIC + len(head).to_bytes(8, "little") + head)
                for array in arrays:
                    file.write(bytes(-file.tell() % _ALIGNED))
                    file.write(np.ascontiguousarray(array).data)
            made.replace(self._path(name))
        except OSError:
            made.unlink(missing_ok=True)
            self.remove(name)

    def read(self, name: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]] | None:
        """Facts and arrays; writing to the arrays changes a private copy."""
        try:
            whole = np.memmap(self._path(name), np.uint8, "c")
            if bytes(whole[:8]) != _MAGIC:
                return None
            at = 16 + int.from_bytes(bytes(whole[8:16]), "little")
            head = json.loads(bytes(whole[16:at]))
            if head["boot"] != _boot():
                return None
            arrays = []
            for kind, length in head["arrays"]:
                at += -at % _ALIGNED
                end = at + np.dtype(kind).itemsize * length
                arrays.append(np.asarray(whole[at:end]).view(kind))
                if len(arrays[-1]) != length:
                    return None
                at = end
        except (OSError, ValueError, KeyError):
            return None
        return head["facts"], arrays

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / _short(name)


def _own_folder(base: Path) -> Path:
    """A folder that only this user can write to: what is read there is believed. One of that name
    which others made, or may write to, is refused."""
    user = os.getuid() if hasattr(os, "getuid") else os.getpid()
    folder = base / f"thalweg-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    foreign = stat.S_ISLNK(found.st_mode) or (hasattr(os, "getuid") and found.st_uid != user)
    if foreign or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"{folder} is not this user's alone")
    return folder


def _short(name: str) -> str:
    return blake2b(name.encode(), digest_size=16).hexdigest()


def _boot() -> str:
    """An identifier of the host's boot: files written before a crash are not trusted."""
    return _BOOT.read_text().strip() if _BOOT.exists() else ""
