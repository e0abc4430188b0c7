"""Changes sorted into groups and runs.

A *run* is all changes of one group at one instant. Groups are identified by two independent hashes
of the normalised key (one, where it is injective).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.columns.vector import Vector
from thalweg.instants import Ints
from thalweg.store import native
from thalweg.store.hashing import Hashes, hash_columns, is_injective, second_hash


@dataclass(slots=True)
class Runs:
    """Changes in (group, instant) order.

    `order` sorts them; `run` numbers each sorted change's run; per run `group_of_run` and
    `instants`; per group its first run (`heads`), its hashes and one change that represents it
    (`example`).
    """

    order: Ints
    run: Ints
    group_of_run: Ints
    instants: Ints
    heads: Ints
    hashes: Hashes
    second: Hashes
    example: Ints

    @property
    def groups(self) -> int:
        return len(self.hashes)

    @property
    def runs(self) -> int:
        return len(self.instants)

    @property
    def last_versions(self) -> Ints:
        """The place of each group's last version, stored states preceding the runs."""
        return self.groups + np.append(self.heads[1:] - 1, self.runs - 1)


def key_hashes(keys: list[Vector], length: int) -> tuple[Hashes, Hashes]:
    """The two hashes of each row's key; the second is empty where the first is injective."""
    arrays = [k.to_arrow() for k in keys]
    first = hash_columns(arrays, length)
    if not arrays:
        return first, _NONE
    if is_injective([a.type for a in arrays]):
        valid = keys[0].valid
        return first, _NONE if valid is None else (~valid).astype(np.uint64)
    return first, second_hash(arrays, length)


_NONE: Hashes = np.empty(0, np.uint64)


def sort_into_runs(keys: list[Vector], ts: Ints) -> Runs:
    first, second = key_hashes(keys, len(ts))
    order = native.key_time_order(first, ts)
    run, group_of_run, instants, starts, heads, collides = native.split_runs(
        first, second, ts, order
    )
    if collides:
        order = np.lexsort((ts, second, first))
        run, group_of_run, instants, starts, heads, _ = native.split_runs(first, second, ts, order)
    example = order[starts]
    other = second[example] if len(second) else np.zeros(len(example), np.uint64)
    return Runs(order, run, group_of_run, instants, heads, first[example], other, example)
