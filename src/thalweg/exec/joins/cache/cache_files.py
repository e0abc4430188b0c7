"""Storage of cached subresults between epochs: in the memory of the process that runs the task and,
where another process may run it next, in a file on the host.

Only what the immediately preceding epoch left is used; otherwise (a host that never had the task,
an epoch that is run again, another plan) the cache starts empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from thalweg.columns.frame import Changes, Frame
from thalweg.exec.context import TaskContext
from thalweg.exec.joins.cache.join_cache import Kept
from thalweg.exec.leaves.row_combinations import Array, Combinations
from thalweg.exec.leaves.row_references import packs_of, renumbered
from thalweg.instants import Ints
from thalweg.plan.pipeline import Subresult
from thalweg.store.packs import Key


class Referable(Protocol):
    """A leaf whose rows can be referred to, within an epoch and across epochs."""

    refers_to_packs: bool

    def at(self, references: Ints, columns: frozenset[str]) -> Frame: ...
    def standing(self, instant: int) -> Changes: ...
    def has_null_keys(self, key: Key) -> bool: ...
    def follow(self, parts: Sequence[Combinations], member: int) -> bool: ...
    def leave(self, parts: Sequence[Combinations], member: int) -> None: ...
    def after(self, references: Ints) -> Ints: ...


@dataclass(slots=True)
class Keeper:
    """Opens and stores the subresults of one relation of one task, which `task` identifies. Not
    `usable` where rows may be evicted before their time."""

    ctx: TaskContext
    task: tuple[object, ...]
    usable: bool

    def opened(self, subresult: Subresult, leaves: Mapping[int, Referable]) -> tuple[Kept, bool]:
        """The stored subresult, or a new one, and whether it is new."""
        held, name = self._held(), _name(subresult)
        kept = held.get(name)
        if kept is None or kept.until != self.ctx.since:
            kept = self._elsewhere(subresult, leaves)
        if kept is None or not _followed(kept, leaves):
            kept = held[name] = Kept(subresult, self.ctx.since)
            return kept, True
        held[name] = kept
        kept.subresult = subresult  # with its present memory limit
        return kept, False

    def keep_only(self, subresults: Sequence[Subresult]) -> None:
        """Forget subresults that the plan does not look up any more."""
        held = self._held()
        for name in set(held) - {_name(s) for s in subresults}:
            del held[name]
            if not held and self.ctx.cache.files is not None:
                self.ctx.cache.files.remove(self._file)

    def share(self, leaves: Mapping[int, Referable]) -> None:
        """Store the present content for the process that runs the task next."""
        files, held = self.ctx.cache.files, self._held()
        if files is None:
            return
        facts: dict[str, dict[str, int]] = {}
        arrays: list[Array] = []
        for name, kept in held.items():
            facts[name], more = kept.exported()
            arrays += more
        files.write(self._file, {"kept": facts, "packs": self._packs(held, leaves)}, arrays)

    @property
    def _file(self) -> str:
        return repr((self.task, self.ctx.start))

    def _packs(self, held: Mapping[str, Kept], leaves: Mapping[int, Referable]) -> dict[int, str]:
        """The packs that are referred to: their numbers are valid in this process only."""
        numbers = {
            number
            for kept in held.values()
            for part in kept.parts
            for i, references in part.references.items()
            if leaves[i].refers_to_packs
            for number in packs_of(references)
        }
        return {number: self.ctx.cache.name_of(number) for number in numbers}

    def _elsewhere(self, subresult: Subresult, leaves: Mapping[int, Referable]) -> Kept | None:
        """The content that another process on this host stored after the last epoch."""
        files = self.ctx.cache.files
        read = None if files is None else files.read(self._file)
        if read is None:
            return None
        facts, arrays = read
        first = 0
        for name, mine in facts["kept"].items():
            last = first + mine["arrays"]
            if name == _name(subresult) and mine["until"] == self.ctx.since:
                kept = Kept.restored(subresult, mine, iter(arrays[first:last]))
                self._renumber(kept, facts["packs"], leaves)
                return kept
            first = last
        return None

    def _renumber(
        self, kept: Kept, packs: Mapping[str, str], leaves: Mapping[int, Referable]
    ) -> None:
        numbers = {int(n): self.ctx.cache.number_of(name) for n, name in packs.items()}
        for part in kept.parts:
            for i, leaf in leaves.items():
                if leaf.refers_to_packs:
                    part.references[i] = renumbered(part.references[i], numbers)

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
    """Translate references to this epoch's; False if that is impossible."""
    kept.parts = [_living(part, kept.until) for part in kept.parts]
    return all(leaf.follow(kept.parts, i) for i, leaf in leaves.items())


def leave(kept: Kept, leaves: Mapping[int, Referable]) -> None:
    """Translate references to those valid in the next epoch."""
    kept.parts = [_living(part, kept.until) for part in kept.parts]
    for i, leaf in leaves.items():
        leaf.leave(kept.parts, i)


def _living(part: Combinations, since: int) -> Combinations:
    rows = np.flatnonzero(part.ends >= since)
    return part.take(rows)
