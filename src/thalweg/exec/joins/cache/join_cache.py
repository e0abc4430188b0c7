"""The content of a cached subresult, kept by a task from one epoch to the next: soft state.

The cache is direct-mapped: a key has one bucket, and a new entry evicts the old one. For a key that
is present *all* its combinations are stored; nothing is promised about other keys. Combinations lie
in parts, which are merged in tiers; a merge leaves out combinations that ended or whose key was
evicted. Empty entries count: a key may be known to have no combination.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from thalweg.columns.vector import Mask
from thalweg.exec.leaves.row_combinations import Array, Combinations
from thalweg.instants import Ints
from thalweg.plan.pipeline import Subresult
from thalweg.store.hashing import Hashes

ENTRY_BYTES = 24
"""The size of a bucket: two hashes and a stamp."""
ANYONE, NOBODY = -1, 0
"""Stamps that every combination matches, and that none does."""


class Kept:
    """The entries of one subresult. `until` is the frontier up to which they are complete."""

    def __init__(self, subresult: Subresult, until: int) -> None:
        self.subresult = subresult
        self.until = until
        self.parts: list[Combinations] = []
        self._stamp = 0
        buckets = 0 if subresult.whole else subresult.buckets
        self._keys, self._seconds = np.zeros((2, buckets), np.uint64)
        self._stamps = np.zeros(buckets, np.int64)

    @property
    def entries(self) -> int:
        return int(np.count_nonzero(self._stamps))

    @property
    def bytes(self) -> int:
        """The size of present entries and their combinations; empty buckets count as nothing."""
        return self.entries * ENTRY_BYTES + sum(p.bytes for p in self.parts)

    def _bucket(self, hashes: Hashes) -> Ints:
        return (hashes % np.uint64(max(len(self._stamps), 1))).astype(np.int64)

    def present(self, hashes: Hashes, seconds: Hashes) -> Mask:
        """Which keys have an entry."""
        if self.subresult.whole:
            return np.ones(len(hashes), np.bool_)
        if not len(self._stamps):
            return np.zeros(len(hashes), np.bool_)
        at = self._bucket(hashes)
        same = (self._keys[at] == hashes) & (self._seconds[at] == seconds)
        present: Mask = same & (self._stamps[at] > 0)
        return present

    def stamps_of(self, hashes: Hashes, seconds: Hashes) -> Ints:
        """The stamp that valid combinations of a key have: that of its entry, or `NOBODY`."""
        if self.subresult.whole or not len(self._stamps):
            return np.full(len(hashes), ANYONE if self.subresult.whole else NOBODY)
        found: Ints = self._stamps[self._bucket(hashes)]
        found[~self.present(hashes, seconds)] = NOBODY
        return found

    def valid(self, part: Combinations, rows: Ints) -> Mask:
        """Which combinations belong to the present entry of their key."""
        if self.subresult.whole:
            return np.ones(len(rows), np.bool_)
        at = self._bucket(part.hashes[rows])
        valid: Mask = self._stamps[at] == part.stamps[rows]
        return valid

    def create(self, hashes: Hashes, seconds: Hashes, found: Combinations) -> None:
        """Create entries with all their combinations, evicting the entries in their buckets. Of
        keys that share a bucket one is stored."""
        if not len(self._stamps) or not len(hashes):
            return
        self._stamp += 1
        at = self._bucket(hashes)
        self._keys[at], self._seconds[at], self._stamps[at] = hashes, seconds, self._stamp
        self.insert(found)

    def insert(self, found: Combinations) -> None:
        """Add combinations that have appeared to the entries of their keys, where there are any."""
        mine = np.flatnonzero(self.present(found.hashes, found.seconds))
        if not len(mine):
            return
        part = found.take(mine)
        if not self.subresult.whole:
            part.stamps = self._stamps[self._bucket(part.hashes)]
        self.parts.append(part)

    def settle(self, until: int) -> None:
        """Merge parts in tiers, enforce the memory limit, and mark the content as complete up to a
        frontier."""
        self.until = until
        while len(self.parts) > 1 and 2 * len(self.parts[-1]) >= len(self.parts[-2]):
            self.parts[-2:] = [self._merged(self.parts[-2:])]
        if not self.subresult.whole and self.bytes > self.subresult.limit:
            self.parts = [self._merged(self.parts)]
            self._shrink()

    # -- serialisation -----------------------------------------------------------------------

    def exported(self) -> tuple[dict[str, int], list[Array]]:
        """The whole content as facts and arrays, from which it can be `restored`."""
        arrays: list[Array] = [self._keys, self._seconds, self._stamps]
        for part in self.parts:
            arrays += part.arrays()
        facts = {"until": self.until, "stamp": self._stamp, "parts": len(self.parts)}
        return facts | {"arrays": len(arrays)}, arrays

    @staticmethod
    def restored(subresult: Subresult, facts: Mapping[str, int], arrays: Iterator[Array]) -> Kept:
        kept = Kept(subresult, facts["until"])
        kept._stamp = facts["stamp"]
        kept._keys, kept._seconds, kept._stamps = (next(arrays) for _ in range(3))
        members = subresult.members
        kept.parts = [Combinations.of_arrays(members, arrays) for _ in range(facts["parts"])]
        return kept

    def _merged(self, parts: Sequence[Combinations]) -> Combinations:
        """Parts merged into one, without combinations that ended or whose entry is gone."""
        living = []
        for part in parts:
            rows = np.flatnonzero(part.ends >= self.until)
            living.append(part.take(rows[self.valid(part, rows)]))
        return Combinations.joined(living, self.subresult.members)

    def _shrink(self) -> None:
        """Evict entries, the oldest first, until the rest is within the limit."""
        (part,) = self.parts
        each = part.bytes // max(len(part), 1)
        counts = np.bincount(self._bucket(part.hashes), minlength=len(self._stamps))
        there = np.flatnonzero(self._stamps)
        newest = there[np.argsort(-self._stamps[there], kind="stable")]
        taken = np.cumsum(ENTRY_BYTES + counts[newest] * each)
        self._stamps[newest[taken > self.subresult.limit]] = 0
        self.parts = [self._merged(self.parts)]
