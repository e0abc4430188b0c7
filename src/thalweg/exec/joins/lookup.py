"""The result of a probe before any row is fetched: which needles have partners, and where these
are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.columns.vector import Mask
from thalweg.exec.leaves.pack_view import View
from thalweg.exec.leaves.protocol import Matches, Needles
from thalweg.exec.leaves.time_window import TimeLeaf
from thalweg.instants import Ints
from thalweg.store import native
from thalweg.store.packs import Key


class Found(Protocol):
    """Partners of needles. `hit` marks the needles that have any."""

    @property
    def hit(self) -> Mask: ...

    def rows(self, among: Mask) -> Matches:
        """The partners of the needles `among` all."""
        ...


@runtime_checkable
class Finder(Protocol):
    """A leaf that can be probed without fetching rows."""

    def find(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Found: ...


class Unit(Protocol):
    """The target of a probe: a leaf or a subresult."""

    def probe(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Matches: ...
    def has_null_keys(self, key: Key) -> bool: ...


def find(leaf: Unit, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]) -> Found:
    """Look needles up in a leaf. Rows in packs are read only when they are requested."""
    if isinstance(leaf, Finder):
        return leaf.find(needles, key, want_ends, columns)
    if isinstance(leaf, TimeLeaf):
        return _InPacks(leaf, needles, key, want_ends, columns)
    matches = leaf.probe(needles, key, want_ends, columns)
    return _AtHand(matches, len(needles.hashes))


class _AtHand:
    """Partners whose columns are in memory already."""

    def __init__(self, matches: Matches, needles: int) -> None:
        self._matches = matches
        self.hit = np.zeros(needles, np.bool_)
        self.hit[matches.needle] = True

    def rows(self, among: Mask) -> Matches:
        found = self._matches
        kept = np.flatnonzero(among[found.needle])
        if len(kept) == len(found.needle):
            return found
        ends = None if found.ends is None else found.ends[kept]
        return Matches(found.needle[kept], found.frame.take(kept), ends)


@dataclass(slots=True)
class _Ranges:
    """Per needle with partners in one pack, the first position in its view and the number of
    partners."""

    view: View
    needle: Ints
    begin: Ints
    count: Ints


class _InPacks:
    """Partners as ranges of positions in the views of packs."""

    def __init__(
        self,
        leaf: TimeLeaf,
        needles: Needles,
        key: Key,
        want_ends: bool,
        columns: frozenset[str],
    ) -> None:
        self._leaf = leaf
        self._want_ends = want_ends
        self._columns = columns
        self.hit = np.zeros(len(needles.hashes), np.bool_)
        self._ranges: list[_Ranges] = []
        for view, needle, begin, count, _ in leaf.ranges(needles, key):
            self.hit[needle] = True
            self._ranges.append(_Ranges(view, needle, begin, count))

    def rows(self, among: Mask) -> Matches:
        frames: list[Frame] = []
        needles: list[Ints] = []
        times: list[Ints] = []
        for one in self._ranges:
            needle, positions = native.expand_some(one.needle, one.begin, one.count, among)
            if not len(needle):
                continue
            needles.append(needle)
            frames.append(self._leaf.fetch(one.view, positions, self._columns))
            if self._want_ends:
                times.append(one.view.ts[positions])
        known = times if self._want_ends else None
        return self._leaf.matches(needles, frames, known, self._columns)
