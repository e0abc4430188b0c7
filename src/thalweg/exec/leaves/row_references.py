"""References to rows in packs, and their translation when packs are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from thalweg.exec.leaves.row_combinations import Combinations
from thalweg.instants import Ints
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import PackMeta

ROW_BITS = 32
"""A reference is the number of a pack and, in its lower bits, the row."""


def follow_merged(
    cache: PackCache, packs: Sequence[PackMeta], parts: Sequence[Combinations], member: int
) -> bool:
    """Translate references of one member to the present packs; False if the rows of some no longer
    exist."""
    here = {cache.number_of(m.name) for m in packs}
    if {n for part in parts for n in packs_of(part.references[member])} <= here:
        return True
    moves: dict[int, tuple[int, Ints]] = {}
    for meta in packs:
        for old, rows in cache.open(meta.name).moved().items():
            moves[cache.number_of(old)] = (cache.number_of(meta.name), rows)
    return all(_follow(part, member, here, moves) for part in parts)


def packs_of(references: Ints) -> list[int]:
    return np.unique(references >> ROW_BITS).tolist()  # type: ignore[no-any-return]


def renumbered(references: Ints, numbers: Mapping[int, int]) -> Ints:
    """References with other numbers for their packs."""
    known = packs_of(references)
    new = np.array([numbers[n] for n in known], np.int64)
    packs = new[np.searchsorted(known, references >> ROW_BITS)] if known else references
    return packs << ROW_BITS | references & (1 << ROW_BITS) - 1


def _follow(
    part: Combinations, member: int, here: set[int], moves: Mapping[int, tuple[int, Ints]]
) -> bool:
    references = part.references[member]
    packs = references >> ROW_BITS
    moved = references.copy()
    for old in set(packs_of(references)) - here:
        if old not in moves:
            return False
        new, rows = moves[old]
        mine = np.flatnonzero(packs == old)
        found = rows[references[mine] & (1 << ROW_BITS) - 1]
        if (found < 0).any():
            return False
        moved[mine] = new << ROW_BITS | found
    part.references[member] = moved
    return True
