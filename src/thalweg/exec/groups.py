"""Sorting changes into groups and runs.

A *run* is all changes of one group at one instant. Groups are identified by two independent
hashes of the normalised key (one, where it is injective).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.exec.frame import Ints
from thalweg.exec.vector import Vector
from thalweg.store import native
from thalweg.store.hashing import Hashes, hash_columns, is_injective, second_hash


@dataclass(slots=True)
class Runs:
    """Changes in (group, instant) order.

    `order` sorts them; `run` numbers each sorted change's run; per run `group_of_run` and
    `instants`; per group its hashes and one change that represents it (`example`).
    """

    order: Ints
    run: Ints
    group_of_run: Ints
    instants: Ints
    hashes: Hashes
    second: Hashes
    example: Ints

    @property
    def groups(self) -> int:
        return len(self.hashes)

    @property
    def runs(self) -> int:
        return len(self.instants)


def key_hashes(keys: list[Vector], length: int) -> tuple[Hashes, Hashes]:
    """The two hashes of each row's key."""
    arrays = [k.to_arrow() for k in keys]
    first = hash_columns(arrays, length)
    if not arrays:
        return first, np.zeros(length, np.uint64)
    if is_injective([a.type for a in arrays]):
        valid = keys[0].valid
        return first, np.zeros(length, np.uint64) if valid is None else (~valid).astype(np.uint64)
    return first, second_hash(arrays, length)


def sort_into_runs(keys: list[Vector], ts: Ints) -> Runs:
    n = len(ts)
    first, second = key_hashes(keys, n)
    order = native.key_time_order(first, ts)
    h, s, t = first[order], second[order], ts[order]
    if _collides(h, s):
        order = np.lexsort((ts, second, first))
        h, s, t = first[order], second[order], ts[order]
    new_group = np.ones(n, np.bool_)
    new_group[1:] = (h[1:] != h[:-1]) | (s[1:] != s[:-1])
    new_run = new_group.copy()
    new_run[1:] |= t[1:] != t[:-1]
    starts = np.flatnonzero(new_run)
    heads = np.flatnonzero(new_group)
    group = np.cumsum(new_group) - 1
    return Runs(
        order, np.cumsum(new_run) - 1, group[starts], t[starts], h[heads], s[heads], order[heads]
    )


def _collides(first: Hashes, second: Hashes) -> bool:
    """Whether rows of one first hash differ in the second."""
    return bool(((first[1:] == first[:-1]) & (second[1:] != second[:-1])).any())
