"""Open packs of one process, and values derived from them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from cachetools import LRUCache

from thalweg.store.hostfiles import HostFiles
from thalweg.store.packs import Pack
from thalweg.store.storage import COLD, RemoteStorage, Storage

MOST_BYTES = 2 << 30
"""What open packs of one process take at most, and as much again what is derived from them."""
MOST_ENTRIES = 4096
"""The number of entries remembered at a time, however small."""
LEAST_OPENED = 16
"""After at least so many packs were opened, and half as many as are held, those that have been
deleted since are looked for: what a pack costs then is one look."""


class ColdReads:
    """Recently read cold packs, for the caches of one process: reading one takes a while."""

    MOST = 16

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._read: LRUCache[str, pa.Table] = LRUCache(self.MOST)

    def table(self, name: str) -> pa.Table:
        with self._lock:  # one at a time: mostly all readers want the same one
            if name not in self._read:
                self._read[name] = self._storage.read_table(name)
            return self._read[name]


class PackCache:
    """Open packs and values derived from them; the least recently used are dropped first, and
    those of packs that were deleted soon after.

    Packs never change, so a name identifies one; losing an entry costs time, never a row. `files`
    is set where other processes may continue with the derived values of this one, `cold` where
    there are other caches in this process.
    """

    def __init__(
        self,
        storage: Storage,
        limit: int = MOST_BYTES,
        files: HostFiles | None = None,
        cold: ColdReads | None = None,
    ) -> None:
        self.storage = storage
        self.files = files
        self._cold = cold or ColdReads(storage)
        self._packs = _OpenPacks(limit)
        self._derived = _LeastRecent(limit)
        self._opened = 0
        self._can_look = not isinstance(storage, RemoteStorage)  # each look is a request there
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def open(self, name: str) -> Pack:
        held = self._packs.get(name)
        if held is None:
            is_cold = name.endswith(COLD)
            table = self._cold.table(name) if is_cold else self.storage.read_table(name)
            pack = Pack(name, table)
            held = self._packs[name] = pack, int(pack.table.nbytes)
            self._opened += 1
            self._forget_deleted()
        return held[0]

    def number_of(self, name: str) -> int:
        """A small number that stands for a pack in this process."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    def name_of(self, number: int) -> str:
        return self._names[number]

    def derived(self, key: tuple[Any, ...]) -> Any:
        """What was remembered under a key. Names of packs in the key are those it was made of."""
        held = self._derived.get(key)
        return None if held is None else held[0]

    def remember(self, key: tuple[Any, ...], value: Any, size: int) -> None:
        self._derived[key] = value, size

    @property
    def names(self) -> set[str]:
        """The packs that are held, open or in what was derived from them."""
        return {*self._packs, *(p for key in self._derived for p in _packs_of(key))}

    def _forget_deleted(self) -> None:
        """Drop what was made of files that are gone: their memory stays mapped until then. Values
        whose packs were dropped to save memory go as well, as they may map them too."""
        if self._packs.evicted:
            self._forget(self._packs.evicted)
            self._packs.evicted.clear()
        if self._can_look and self._opened >= max(LEAST_OPENED, len(self._packs) // 2):
            self._opened = 0
            self._forget({name for name in self.names if not self.storage.exists(name)})

    def _forget(self, packs: set[str]) -> None:
        if packs:
            for name in packs:
                self._packs.pop(name, None)
            stale = [k for k in self._derived if not packs.isdisjoint(_packs_of(k))]
            for key in stale:
                del self._derived[key]


def _packs_of(key: tuple[Any, ...]) -> Iterable[str]:
    return (p for p in key if isinstance(p, str) and p.endswith((".arrow", COLD)))


class _LeastRecent(LRUCache[Any, tuple[Any, int]]):
    """Values with their sizes, bounded in bytes and in entries; the least recently used are dropped
    first."""

    def __init__(self, limit: int) -> None:
        smallest = max(limit // MOST_ENTRIES, 1)

        def size(held: tuple[Any, int]) -> int:
            return min(max(held[1], smallest), limit)  # an entry larger than that is kept alone

        super().__init__(limit, getsizeof=size)


class _OpenPacks(_LeastRecent):
    """Packs by name; `evicted` names those that were dropped since it was emptied."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.evicted: set[str] = set()

    def popitem(self) -> tuple[Any, tuple[Any, int]]:
        found = super().popitem()
        self.evicted.add(found[0])
        return found
