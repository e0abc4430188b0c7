"""A fixed pool of pages that caches compete for: a cache with more benefit per byte takes pages
from one with less."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Cache = TypeVar("Cache", bound=Hashable)


def priority(benefit: float, upkeep: float, entries: float, entry_bytes: float) -> float:
    """The benefit of a cache per requested byte, of which at least one is counted."""
    return (benefit - upkeep) / max(entries * entry_bytes, 1.0)


@dataclass(frozen=True, slots=True)
class Grant(Generic[Cache]):
    """Whether a page was granted, and the cache whose page and entries are taken for it."""

    granted: bool
    victim: Cache | None = None


class PagePool(Generic[Cache]):
    """Pages of one size and the caches that hold them.

    >>> pool = PagePool[str](pages=1, page_bytes=4096)
    >>> pool.ask("poor", 0.1)
    Grant(granted=True, victim=None)
    >>> pool.ask("rich", 0.9)
    Grant(granted=True, victim='poor')
    >>> pool.ask("poor", 0.1)
    Grant(granted=False, victim=None)
    """

    def __init__(self, pages: int, page_bytes: int) -> None:
        if pages < 0 or page_bytes < 1:
            raise ValueError(f"no pool can have {pages} pages of {page_bytes} bytes")
        self.pages = pages
        self.page_bytes = page_bytes
        self._held: dict[Cache, int] = {}
        self._priorities: dict[Cache, float] = {}

    @property
    def free(self) -> int:
        return self.pages - sum(self._held.values())

    def pages_of(self, cache: Cache) -> int:
        return self._held.get(cache, 0)

    def bytes_of(self, cache: Cache) -> int:
        return self.pages_of(cache) * self.page_bytes

    def rank(self, cache: Cache, priority: float) -> None:
        """Update the priority of a cache that holds pages; it keeps them until another cache needs
        one."""
        if cache in self._held:
            self._priorities[cache] = priority

    def ask(self, cache: Cache, priority: float) -> Grant[Cache]:
        """One more page: a free one, else one of the cache of least priority if that is below the
        asker's, else none."""
        self.rank(cache, priority)
        victim = None if self.free else self._poorest(priority)
        if victim is None and not self.free:
            return Grant(False)
        if victim is not None:
            self.release(victim, 1)
        self._held[cache] = self.pages_of(cache) + 1
        self._priorities[cache] = priority
        return Grant(True, victim)

    def release(self, cache: Cache, pages: int | None = None) -> int:
        """Release pages, all of them unless a number is given; returns how many there were."""
        held = self.pages_of(cache)
        given = held if pages is None else min(max(pages, 0), held)
        if given == held:
            self._held.pop(cache, None)
            self._priorities.pop(cache, None)
        else:
            self._held[cache] = held - given
        return given

    def _poorest(self, below: float) -> Cache | None:
        """The cache of least priority, if that is below this one."""
        found = min(self._held, key=self._priorities.__getitem__, default=None)
        return found if found is not None and self._priorities[found] < below else None
