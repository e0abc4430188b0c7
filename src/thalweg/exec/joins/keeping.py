"""Where subresults are kept between epochs: in the memory of the process that runs the task.

Anything but what the last epoch left is cold: a worker that never had the task, an epoch that is
run again, a plan that differs. References to packs that were merged since are moved along.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from thalweg.exec.context import TaskContext
from thalweg.exec.frame import Ints
from thalweg.exec.joins.combinations import Combinations
from thalweg.exec.joins.kept import Kept
from thalweg.exec.leaf import ROW_BITS, TimeLeaf
from thalweg.plan.physical import Subresult


@dataclass(slots=True)
class Keeper:
    """Opens and keeps the subresults of one relation of one task, which `task` identifies. Not
    `usable` where rows may leave before their time."""

    ctx: TaskContext
    task: tuple[object, ...]
    usable: bool

    def opened(self, subresult: Subresult, leaves: Mapping[int, TimeLeaf]) -> tuple[Kept, bool]:
        """What was kept, or something new (and that it is)."""
        key = ("subresult", self.task, self.ctx.start, str(replace(subresult, limit=0)))
        kept = self.ctx.cache.derived(key)
        if kept is None or kept.until != self.ctx.since or not _moved(kept, leaves):
            kept = Kept(subresult, self.ctx.since)
            self.ctx.cache.remember(key, kept, 0)
            return kept, True
        kept.subresult = subresult  # with what it may take now
        return kept, False


def _moved(kept: Kept, leaves: Mapping[int, TimeLeaf]) -> bool:
    """Let references follow packs that were merged; False if some cannot."""
    for member, leaf in leaves.items():
        cache = leaf.ctx.cache
        here = {cache.number_of(m.name) for m in leaf.packs}
        used = {n for part in kept.parts for n in _packs(part.references[member])}
        if used <= here:
            continue
        moves: dict[int, tuple[int, Ints]] = {}
        for meta in leaf.packs:
            for old, rows in cache.open(meta.name).moved().items():
                moves[cache.number_of(old)] = (cache.number_of(meta.name), rows)
        kept.parts = [_living(part, kept.until) for part in kept.parts]
        for part in kept.parts:
            if not _follow(part, member, here, moves):
                return False
    return True


def _packs(references: Ints) -> list[int]:
    return np.unique(references >> ROW_BITS).tolist()  # type: ignore[no-any-return]


def _living(part: Combinations, since: int) -> Combinations:
    rows = np.flatnonzero(part.ends >= since)
    return part if len(rows) == len(part) else part.take(rows)


def _follow(
    part: Combinations, member: int, here: set[int], moves: Mapping[int, tuple[int, Ints]]
) -> bool:
    references = part.references[member]
    packs = references >> ROW_BITS
    moved = references.copy()
    for old in set(_packs(references)) - here:
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
