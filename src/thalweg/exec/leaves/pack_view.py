"""The rows of a pack that a leaf reads, by key and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from thalweg.exec.context import Reject
from thalweg.instants import Ints
from thalweg.store import native
from thalweg.store.hashing import Hashes
from thalweg.store.packs import Pack

_SELDOM = 16  # from this many rows per wanted row on, an index of times is faster than a scan
_FEW = 1  # from this many rows per needle on, a directory is faster than a scan


@dataclass(slots=True)
class View:
    """The rows of one pack that pass a leaf's filters, within the task's share.

    `hashes` is there when the share has a key; entries are then in (hash, time) order. `ascending`
    says that `rows` are in the order of the pack.
    """

    pack: Pack
    ts: Ints
    rows: Ints | None
    hashes: Hashes | None
    erring: list[Reject]
    ascending: bool
    directory: tuple[Any, ...] | None = None

    def matches(self, hashes: Hashes, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints, int]:
        """Per needle that has rows with low ≤ time ≤ high, where they begin and how many they are,
        and the number of all."""
        assert self.hashes is not None
        if len(hashes) * _FEW > len(self.ts) or not len(self.ts):
            return native.match_ranges(hashes, low, high, self.hashes, self.ts)  # type: ignore[no-any-return]
        if self.directory is None:
            base, shift, starts = native.hash_directory(self.hashes)
            times = int(self.ts.min()), int(self.ts.max())
            self.directory = *times, np.uint64(base), np.uint64(shift), starts
        return native.match_by_directory(  # type: ignore[no-any-return]
            hashes, low, high, self.hashes, self.ts, *self.directory
        )

    def picked(self, positions: Ints) -> Ints:
        return positions if self.rows is None else self.rows[positions]

    def between(self, low: int, high: int) -> Ints:
        """Positions with low ≤ time < high; a large pack is not scanned for few of them."""
        indexed = self.ascending and self.pack.has_time_index
        if not indexed or self.pack.count_between(low, high) * _SELDOM > len(self.ts):
            return native.rows_between(self.ts, low, high)  # type: ignore[no-any-return]
        found = self.pack.rows_between(low, high)
        if self.rows is None or not len(self.rows):
            return found if self.rows is None else self.rows
        first, last = self.rows[0], self.rows[-1]
        if last - first + 1 == len(self.rows):
            inside: Ints = found[(found >= first) & (found <= last)] - first
            return inside
        at = np.searchsorted(self.rows, found)
        here = at < len(self.rows)
        here[here] = self.rows[at[here]] == found[here]
        return at[here].astype(np.int64)
