"""Distribution of rows: the share of each leaf that a task of a query reads."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from thalweg.instants import Ints
from thalweg.plan.grid_routing import shape
from thalweg.plan.physical import QueryPlan, RoutingKind
from thalweg.store.hashing import hash_columns
from thalweg.store.packs import FULL_RANGE, Key, KeyIndex, Pack, hash_ranges

Range = tuple[int, int]
Ranges = tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """Rows whose hashes of some keys lie in ranges, or every n-th slice.

    Except in a grid, rows that meet have the key in common. In a grid they may not, so rows outside
    are left out whatever key they are looked up by. Several tasks of a grid may read a row: one
    `reports` its errors.
    """

    ranges: tuple[tuple[Key, Range], ...] = ()
    part: int = 0
    parts: int = 1
    grid: bool = False
    reports: bool = True

    @property
    def key(self) -> Key:
        return self.ranges[0][0] if self.ranges else ()

    def index(self, pack: Pack, key: Key) -> KeyIndex:
        """The rows of a pack within the share, by key and time."""
        index = pack.index(key)
        for own, (low, high) in self.ranges:
            if own == key:
                index = index.within(low, high)
        for own, within in self.ranges if self.grid else ():
            if own != key:
                index = _restricted(index, pack, own, within)
        return index

    def slice(self, pack: Pack) -> tuple[Ints, Ints]:
        """Rows and times of the n-th part."""
        low, high = (len(pack) * p // self.parts for p in (self.part, self.part + 1))
        return np.arange(low, high), pack.ts[low:high]


def _restricted(index: KeyIndex, pack: Pack, key: Key, within: Range) -> KeyIndex:
    hashes = hash_columns([pack.column(c) for c in key], len(pack))
    inside = (hashes >= np.uint64(within[0])) & (hashes <= np.uint64(within[1]))
    if index.rows is None:
        rows = np.flatnonzero(inside)
        return KeyIndex(index.hashes[rows], index.ts[rows], rows)
    kept = np.flatnonzero(inside[index.rows])
    return KeyIndex(index.hashes[kept], index.ts[kept], index.rows[kept])


def task_ranges(plan: QueryPlan, tasks: int) -> list[Ranges]:
    """Per task of a query the hashes it reads along each axis."""
    routing = plan.routing
    if routing.kind is RoutingKind.SINGLE:
        return [()]
    if routing.kind is RoutingKind.CUBE:
        return list(product(*map(hash_ranges, shape(routing, plan.stream_leaves, tasks))))
    return [(one,) for one in hash_ranges(tasks)]


def share_of(plan: QueryPlan, place: int, ranges: Ranges, part: int, parts: int) -> Share:
    """The share of one of the plan's leaves that a task reads."""
    routing = plan.routing
    whole = plan.leaves[place].is_table and not routing.keys_of(place)
    if whole or routing.kind is RoutingKind.SINGLE:
        return Share()
    if routing.kind is RoutingKind.ANY:
        return Share(part=part, parts=parts)
    axes = [(axis[place], within) for axis, within in zip(routing.axes, ranges, strict=True)]
    if routing.kind is RoutingKind.KEYS:
        return Share(tuple((key, within) for key, within in axes if key))
    first = all(key or not within[0] for key, within in axes)
    split = tuple((key, within) for key, within in axes if key and within != FULL_RANGE)
    return Share(split, grid=True, reports=first)
