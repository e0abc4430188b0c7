"""Joined rows of several leaves as references, with key and lifetime.

They are sorted by (hash of the key, first instant), as the indexes of packs are, so that looking a
key up as of an instant is a range search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.columns.frame import Frame
from thalweg.instants import Ints
from thalweg.plan.leaf import END, REFERENCE, START
from thalweg.plan.relations.block import Block
from thalweg.store import native
from thalweg.store.hashing import Hashes

Places = npt.NDArray[np.int8]
Array = npt.NDArray[Any]


@dataclass(slots=True)
class Combinations:
    """Combinations as arrays. `last` is the place in FROM of the member that appeared last, `first`
    of the one that vanishes first: among changes at one instant they decide which meet. `seconds`
    tells keys of equal hash apart. `stamps` name the creation of the key's entry that a combination
    belongs to."""

    hashes: Hashes
    seconds: Hashes
    starts: Ints
    ends: Ints
    last: Places
    first: Places
    references: dict[int, Ints]
    stamps: Ints

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def bytes(self) -> int:
        """Their size in memory."""
        return len(self) * (8 * (5 + len(self.references)) + 2)

    def take(self, rows: Ints) -> Combinations:
        return Combinations(
            self.hashes[rows], self.seconds[rows], self.starts[rows], self.ends[rows],
            self.last[rows], self.first[rows], {i: r[rows] for i, r in self.references.items()},
            self.stamps[rows],
        )  # fmt: skip

    def end_by(self, ends: Ints, member: int) -> None:
        """End combinations at these instants, where one of their members vanishes: maybe sooner
        than was known."""
        sooner = ends < self.ends
        first = np.minimum(self.first, member)
        self.first = np.where(sooner, member, np.where(ends == self.ends, first, self.first))
        self.first = self.first.astype(np.int8)
        self.ends = np.minimum(self.ends, ends)

    def sorted(self) -> Combinations:
        return self.take(native.key_time_order(self.hashes, self.starts))

    def arrays(self) -> list[Array]:
        """All columns, members in ascending order last."""
        references = [self.references[i] for i in sorted(self.references)]
        return [
            self.hashes, self.seconds, self.starts, self.ends, self.last, self.first, self.stamps,
            *references,
        ]  # fmt: skip

    @staticmethod
    def of_arrays(members: Sequence[int], arrays: Iterator[Array]) -> Combinations:
        hashes, seconds, starts, ends, last, first, stamps = (next(arrays) for _ in range(7))
        references = {i: next(arrays) for i in sorted(members)}
        return Combinations(hashes, seconds, starts, ends, last, first, references, stamps)

    @staticmethod
    def empty(members: Sequence[int]) -> Combinations:
        none, hashes = np.empty(0, np.int64), np.empty(0, np.uint64)
        places = np.empty(0, np.int8)
        return Combinations(
            hashes, hashes, none, none, places, places, dict.fromkeys(members, none), none
        )  # fmt: skip

    @staticmethod
    def joined(parts: Sequence[Combinations], members: Sequence[int]) -> Combinations:
        """Several sets of combinations as one, sorted."""
        filled = [p for p in parts if len(p)]
        if len(filled) < 2:
            return filled[0] if filled else Combinations.empty(members)
        return Combinations(
            np.concatenate([p.hashes for p in filled]),
            np.concatenate([p.seconds for p in filled]),
            np.concatenate([p.starts for p in filled]),
            np.concatenate([p.ends for p in filled]),
            np.concatenate([p.last for p in filled]),
            np.concatenate([p.first for p in filled]),
            {i: np.concatenate([p.references[i] for p in filled]) for i in members},
            np.concatenate([p.stamps for p in filled]),
        ).sorted()  # fmt: skip


def combinations(
    block: Block,
    members: Sequence[int],
    frame: Frame,
    hashes: Hashes,
    seconds: Hashes,
    begun: tuple[Ints, int] | None = None,
) -> Combinations:
    """Combinations from the tracks of a join of the members. `begun` are their first instants and
    the place of the member that appeared last, where that is known."""
    tracks = _Tracks(block, members, frame)
    if begun is None:
        starts, last = tracks.extreme(START, np.maximum, latest=True)
    else:
        starts, last = begun[0], np.full(frame.length, begun[1], np.int8)
    ends, first = tracks.extreme(END, np.minimum, latest=False)
    references = {i: tracks.of(i, REFERENCE) for i in members}
    stamps = np.zeros(frame.length, np.int64)
    return Combinations(hashes, seconds, starts, ends, last, first, references, stamps).sorted()


class _Tracks:
    def __init__(self, block: Block, members: Sequence[int], frame: Frame) -> None:
        self.block = block
        self.members = members
        self.columns: Mapping[str, object] = frame.columns

    def of(self, member: int, track: str) -> Ints:
        return self.columns[self.block.leaves[member].full(track)].data  # type: ignore[attr-defined, no-any-return]

    def extreme(self, track: str, choose: np.ufunc, *, latest: bool) -> tuple[Ints, Places]:
        """The extreme instant over the members, and of those that have it the place that decides:
        the last in FROM, or the first."""
        found = [self.of(i, track) for i in self.members]
        edge = choose.reduce(found)
        places = np.zeros(len(edge), np.int8)
        ordered = sorted(zip(self.members, found, strict=True), reverse=not latest)
        for member, instants in ordered:
            places[instants == edge] = member
        return edge, places
