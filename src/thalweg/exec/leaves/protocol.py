"""Leaves: what a pipeline sees of one input.

Every leaf answers the same three questions: which rows appear in the epoch (`arrivals`), which
vanish (`departures`), and which rows with a given key are alive at given instants (`probe`).
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
    """Rows with before ≤ event time < now leave the window at the first instant of the epoch,
    whatever their window says; older ones have left already."""

    before: int
    now: int


@dataclass(slots=True)
class Needles:
    """What a probe looks for: key hashes and instants (of appearing or vanishing). Where an answer
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
    """What pipelines ask of a leaf."""

    def arrivals(self) -> Changes: ...
    def departures(self, only_at: InstantSet | None = None) -> Changes: ...
    def probe(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Matches: ...
    def has_null_keys(self, key: Key) -> bool: ...
    def wakes_at(self) -> int:
        """The first instant after the epoch at which its content may change though no row comes;
        never later than that, AFTER_TIME if there is none."""
        ...


AFTER_ALL = 1 << 30
"""A source that comes after every leaf: it sees what they are once the instant is over."""
