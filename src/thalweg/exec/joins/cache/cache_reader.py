"""A subresult as pipelines read it: looked up like a leaf, whose rows are combinations.

Within an epoch a key is resolved once. Combinations that existed when the epoch began are read from
its entry, or from a fill where there is none; those that appeared since are taken from the
pipelines of the members.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.columns.frame import Changes, Frame, concat_frames
from thalweg.columns.vector import Mask, Vector
from thalweg.exec.context import TaskContext
from thalweg.exec.joins.cache.cache_files import Referable, leave
from thalweg.exec.joins.cache.join_cache import ANYONE, Kept
from thalweg.exec.leaves.lifetimes import Lifetimes
from thalweg.exec.leaves.protocol import Matches, Needles
from thalweg.exec.leaves.row_combinations import Combinations, combinations
from thalweg.exec.tactics import CacheSeen
from thalweg.instants import Ints
from thalweg.plan.joins.join_caches import KEY
from thalweg.plan.pipeline import Subresult
from thalweg.plan.relations.block import Block
from thalweg.plan.types import BIGINT
from thalweg.store.hashing import Hashes, hash_columns, is_injective, second_hash
from thalweg.store.packs import Key

ROW = "__row"
"""For each combination of a fill, the key it started from."""
Fill = Callable[[Changes, frozenset[str]], Changes]
"""Runs the fill pipeline over rows of keys; the second argument names the columns wanted."""


class SubresultReader:
    """One subresult in one epoch. `fresh` gives the combinations that appear in it."""

    def __init__(
        self,
        ctx: TaskContext,
        block: Block,
        subresult: Subresult,
        leaves: Mapping[int, Referable],
        kept: Kept,
        fill: Fill,
        fresh: Callable[[], Combinations],
    ) -> None:
        self.ctx = ctx
        self.block = block
        self.subresult = subresult
        self.leaves = leaves
        self.kept = kept
        self._fill = fill
        self._fresh_of = fresh
        self._fresh: Combinations | None = None
        self._lookups = 0
        self._filled = Combinations.empty(subresult.members)
        self._asked: tuple[Hashes, Hashes] = (np.empty(0, np.uint64), np.empty(0, np.uint64))

    # -- probing by pipelines ----------------------------------------------------------------

    def find(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> FoundCombinations:
        hashes = needles.hashes
        seconds = _seconds(needles.values, len(hashes))
        self.ctx.counts[f"lookups:{self.subresult.alias}"] += len(hashes)
        self._lookups += len(hashes)
        self._resolve(hashes, seconds, needles.values)
        stamps = self.kept.stamps_of(hashes, seconds)
        found = [self._matching(part, needles, seconds, stamps) for part in self.kept.parts]
        anyone = np.full(len(hashes), ANYONE)
        found += [
            self._matching(part, needles, seconds, anyone)
            for part in (self._filled, self._appeared())
            if len(part)
        ]
        return FoundCombinations(self, len(hashes), found, want_ends, columns)

    def probe(
        self, needles: Needles, key: Key, want_ends: bool, columns: frozenset[str]
    ) -> Matches:
        return self.find(needles, key, want_ends, columns).rows(
            np.ones(len(needles.hashes), np.bool_)
        )

    def has_null_keys(self, key: Key) -> bool:
        return any(
            self.leaves[i].has_null_keys((self.block.leaves[i].bare(name),))
            for i in self.subresult.members
            for name in key
            if any(f.name == name for f in self.block.leaves[i].fields)
        )

    def _matching(
        self, part: Combinations, needles: Needles, seconds: Hashes, stamps: Ints
    ) -> tuple[Combinations, Ints, Ints]:
        """(needle, combination) of all combinations that are valid at the needles' instants."""
        lifetimes = Lifetimes(part.hashes, part.starts, part.ends, part.last, part.first)
        needle, rows, _ = lifetimes.met_by(needles)
        fits = part.seconds[rows] == seconds[needle]
        fits &= (stamps[needle] == ANYONE) | (part.stamps[rows] == stamps[needle])
        if not fits.all():
            needle, rows = needle[fits], rows[fits]
        return part, needle, rows

    # -- resolving keys ----------------------------------------------------------------------

    def _resolve(self, hashes: Hashes, seconds: Hashes, values: Sequence[Vector]) -> None:
        """Fill the keys that have no entry yet, each once."""
        unknown = np.flatnonzero(~self.kept.present(hashes, seconds))
        self.ctx.counts[f"misses:{self.subresult.alias}"] += len(unknown)
        unknown = unknown[_first_of_each(hashes[unknown], seconds[unknown])]
        unknown = unknown[~_among(hashes[unknown], seconds[unknown], *self._asked)]
        if not len(unknown):
            return
        self.ctx.counts[f"fills:{self.subresult.alias}"] += len(unknown)
        columns = {f"{KEY}{n}": v.take(unknown) for n, v in enumerate(values)}
        columns[ROW] = Vector(BIGINT, np.arange(len(unknown)))
        at = np.full(len(unknown), self.ctx.since - 1, np.int64)
        keys = Changes(Frame(columns, len(unknown)), at, np.ones(len(unknown), np.int8))
        rows = self._fill(keys, frozenset({ROW, *tracks_of(self.block, self.subresult)}))
        mine = (hashes[unknown], seconds[unknown])
        if len(rows):
            of = unknown[rows.frame.columns[ROW].data]
            more = combinations(
                self.block, self.subresult.members, rows.frame, hashes[of], seconds[of]
            )
            self._filled = Combinations.joined([self._filled, more], self.subresult.members)
        self._asked = (
            np.concatenate([self._asked[0], mine[0]]), np.concatenate([self._asked[1], mine[1]])
        )  # fmt: skip

    def _appeared(self) -> Combinations:
        if self._fresh is None:
            self._fresh = self._fresh_of()
        return self._fresh

    # -- the end of the epoch ----------------------------------------------------------------

    def settle(self) -> CacheSeen:
        """Store the keys that were filled and the combinations that appeared."""
        self.kept.create(*self._asked, self._filled)
        self.kept.insert(self._appeared())
        self.kept.settle(self.ctx.until)
        leave(self.kept, self.leaves)
        counts, alias = self.ctx.counts, self.subresult.alias
        counts[f"deltas:{alias}"] += len(self._appeared())
        return CacheSeen(self._lookups, len(self._asked[0]), self.kept.bytes)


@dataclass(slots=True)
class FoundCombinations:
    """Combinations that match needles; columns are fetched on access."""

    reader: SubresultReader
    needles: int
    found: list[tuple[Combinations, Ints, Ints]]
    want_ends: bool
    columns: frozenset[str]

    @property
    def hit(self) -> Mask:
        hit = np.zeros(self.needles, np.bool_)
        for _, needle, _ in self.found:
            hit[needle] = True
        return hit

    def rows(self, among: Mask) -> Matches:
        reader, members = self.reader, self.reader.subresult.members
        needles, frames, ends = [], [], []
        for part, needle, rows in self.found:
            kept = np.flatnonzero(among[needle])
            if not len(kept):
                continue
            picked = rows[kept]
            needles.append(needle[kept])
            ends.append(part.ends[picked])
            columns: dict[str, Vector] = {}
            for i in members:
                names = self.columns & {f.name for f in reader.block.leaves[i].fields}
                if names:
                    fetched = reader.leaves[i].at(part.references[i][picked], names)
                    columns.update(fetched.columns)
            frames.append(Frame(columns, len(picked)))
        fields = tuple(f for f in reader.subresult.fields if f.name in self.columns)
        none = np.empty(0, np.int64)
        known = np.concatenate([none, *ends]) if self.want_ends else None
        return Matches(np.concatenate([none, *needles]), concat_frames(frames, fields), known)


def tracks_of(block: Block, subresult: Subresult) -> frozenset[str]:
    """The columns that identify the rows of a combination and hold their lifetimes."""
    leaves = [block.leaves[i] for i in subresult.members]
    return frozenset(f.name for leaf in leaves for f in leaf.fields[len(leaf.untracked) :])


def key_hashes(frame: Frame, key: Sequence[str]) -> tuple[Hashes, Hashes]:
    """The two hashes of a subresult's key."""
    values = [frame.columns[c] for c in key]
    return hash_columns([v.to_arrow() for v in values], frame.length), _seconds(
        values, frame.length
    )


def _seconds(values: Sequence[Vector], length: int) -> Hashes:
    arrays = [v.to_arrow() for v in values]
    if is_injective([a.type for a in arrays]):
        return np.zeros(length, np.uint64)
    return second_hash(arrays, length)


def _first_of_each(hashes: Hashes, seconds: Hashes) -> Ints:
    """The first position of every distinct key."""
    order = np.lexsort((seconds, hashes))
    fresh = np.ones(len(order), np.bool_)
    h, s = hashes[order], seconds[order]
    fresh[1:] = (h[1:] != h[:-1]) | (s[1:] != s[:-1])
    return order[fresh]


def _among(hashes: Hashes, seconds: Hashes, known: Hashes, others: Hashes) -> Mask:
    """Which keys are among known ones (few epochs look a key up in several pipelines)."""
    if not len(known) or not len(hashes):
        return np.zeros(len(hashes), np.bool_)
    pairs = np.dtype([("h", np.uint64), ("s", np.uint64)])
    left, right = (np.empty(len(h), pairs) for h in (hashes, known))
    left["h"], left["s"], right["h"], right["s"] = hashes, seconds, known, others
    return np.isin(left.view("V16"), right.view("V16"))
