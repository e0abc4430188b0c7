"""Where subresults are kept between epochs: in the memory of the process that runs the task.

Anything but what the last epoch left is cold: a worker that never had the task, an epoch that is
run again, a plan that differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from thalweg.exec.context import TaskContext
from thalweg.exec.frame import Changes, Frame, Ints
from thalweg.exec.joins.combinations import Combinations
from thalweg.exec.joins.kept import Kept
from thalweg.plan.physical import Subresult
from thalweg.store.packs import Key


class Referable(Protocol):
    """A leaf whose rows can be referred to: within an epoch, and from one to the next."""

    def at(self, references: Ints, columns: frozenset[str]) -> Frame: ...
    def standing(self, instant: int) -> Changes: ...
    def has_null_keys(self, key: Key) -> bool: ...
    def follow(self, parts: Sequence[Combinations], member: int) -> bool: ...
    def leave(self, parts: Sequence[Combinations], member: int) -> None: ...
    def after(self, references: Ints) -> Ints: ...


@dataclass(slots=True)
class Keeper:
    """Opens and keeps the subresults of one relation of one task, which `task` identifies. Not
    `usable` where rows may leave before their time."""

    ctx: TaskContext
    task: tuple[object, ...]
    usable: bool

    def opened(self, subresult: Subresult, leaves: Mapping[int, Referable]) -> tuple[Kept, bool]:
        """What was kept, or something new (and that it is)."""
        held, name = self._held(), _name(subresult)
        kept = held.get(name)
        if kept is None or kept.until != self.ctx.since or not _followed(kept, leaves):
            kept = held[name] = Kept(subresult, self.ctx.since)
            return kept, True
        kept.subresult = subresult  # with what it may take now
        return kept, False

    def keep_only(self, subresults: Sequence[Subresult]) -> None:
        """What the plan does not look up any more is forgotten."""
        held = self._held()
        for name in set(held) - {_name(s) for s in subresults}:
            del held[name]

    def _held(self) -> dict[str, Kept]:
        key = ("subresults", self.task, self.ctx.start)
        held: dict[str, Kept] | None = self.ctx.cache.derived(key)
        if held is None:
            held = {}
            self.ctx.cache.remember(key, held, 0)
        return held


def _name(subresult: Subresult) -> str:
    return str(replace(subresult, limit=0))


def _followed(kept: Kept, leaves: Mapping[int, Referable]) -> bool:
    """References as this epoch understands them; False if that cannot be."""
    kept.parts = [_living(part, kept.until) for part in kept.parts]
    return all(leaf.follow(kept.parts, i) for i, leaf in leaves.items())


def leave(kept: Kept, leaves: Mapping[int, Referable]) -> None:
    """References as the next epoch will understand them."""
    kept.parts = [_living(part, kept.until) for part in kept.parts]
    for i, leaf in leaves.items():
        leaf.leave(kept.parts, i)


def _living(part: Combinations, since: int) -> Combinations:
    rows = np.flatnonzero(part.ends >= since)
    return part.take(rows)
