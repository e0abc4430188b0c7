"""Leaves: the interface between a pipeline and one input.

Every leaf provides three operations: the rows that appear in the epoch (`arrivals`), those that
vanish (`departures`), and the rows with a given key that are valid at given instants (`probe`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from thalweg.columns.frame import Changes, Frame
from thalweg.columns.instant_set import InstantSet
from thalweg.columns.vector import Vector
from thalweg.instants import Ints
from thalweg.store.hashing import Hashes
from thalweg.store.packs import Key


@dataclass(frozen=True, slots=True)
class Floor:
    """Rows with before ≤ event time < now are evicted at the first instant of the epoch, whatever
    their window says; older ones have been evicted already."""

    before: int
    now: int


@dataclass(slots=True)
class Needles:
    """The input of a probe: key hashes and instants (of appearing or vanishing). Where an answer
    may have to be computed, `values` are the keys themselves."""

    hashes: Hashes
    instants: Ints
    departing: bool
    source: int
    values: Sequence[Vector] = ()


@dataclass(slots=True)
class Matches:
    """Pairs (needle, row): the rows' columns and the ends of their lifetimes."""

    needle: Ints
    frame: Frame
    ends: Ints | None


class LeafReader(Protocol):
    """The operations that pipelines use of a leaf."""

    def arrivals(self) -> Changes: ...
    def departures(self, only_at: InstantSet | None = None) -> Changes: ...
    def probe(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Matches: ...
    def has_null_keys(self, key: Key) -> bool: ...
    def wakes_at(self) -> int:
        """The first instant after the epoch at which its content may change without new rows; never
        later than that, AFTER_TIME if there is none."""
        ...


AFTER_ALL = 1 << 30
"""The position of a source after every leaf: it sees their content once the instant is over."""
