"""Aggregate state on disk: one row per group, newest pack wins.

An epoch writes only the groups it touched. A look-up searches packs from the newest to the oldest
and stops at the first that holds the group, so cost follows the change, not the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.aggregates.accumulator import Columns, Loaded, Side
from thalweg.columns.runs import Runs
from thalweg.columns.vector import concat, from_arrow
from thalweg.exec.context import TaskContext
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.plan.types import DataType, to_arrow
from thalweg.store import native
from thalweg.store.packs import TIME, Pack, PackMeta

HASH, SECOND, ROWS, CLOSES = "__h0", "__second", "rows", "__closes"


@dataclass(frozen=True, slots=True)
class StatePack:
    """A pack of state and its side packs (by accumulator prefix)."""

    meta: PackMeta
    sides: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> list[Any]:
        return [self.meta.to_json(), [list(s) for s in self.sides]]

    @staticmethod
    def from_json(values: Sequence[Any]) -> StatePack:
        return StatePack(PackMeta.from_json(values[0]), tuple((a, b) for a, b in values[1]))

    @property
    def files(self) -> list[str]:
        return [self.meta.name, *(name for _, name in self.sides)]


def look_up(
    ctx: TaskContext,
    packs: Sequence[StatePack],
    runs: Runs,
    side_types: Mapping[str, tuple[DataType, ...]],
) -> Loaded:
    """The newest state row of every group."""
    rows = np.full(runs.groups, -1, np.int64)
    parts: list[Columns] = []
    sides: dict[str, list[Side]] = {p: [] for p in side_types}
    base = 0
    for state in reversed(packs):
        wanted = np.flatnonzero(rows < 0)
        if not len(wanted):
            break
        pack = ctx.cache.open(state.meta.name)
        groups, found = _matching(pack, runs, wanted)
        if not len(groups):
            continue
        columns = {n: pack.column(n).to_numpy()[found] for n in pack.table.column_names}
        for prefix, name in state.sides:
            _attach_side(ctx, columns, sides[prefix], prefix, name, side_types[prefix])
        rows[groups] = base + np.arange(len(groups))
        base += len(groups)
        parts.append(columns)
    return Loaded(_stacked(parts, base), rows, _merged_sides(sides))


def _matching(pack: Pack, runs: Runs, wanted: Ints) -> tuple[Ints, Ints]:
    hashes = pack.column(HASH).to_numpy().view(np.uint64)
    low = np.full(len(wanted), BEFORE_TIME, np.int64)
    high = np.full(len(wanted), AFTER_TIME, np.int64)
    zeros = np.zeros(len(hashes), np.int64)
    needle, position = native.match_pairs(runs.hashes[wanted], low, high, hashes, zeros)
    second = pack.column(SECOND).to_numpy().view(np.uint64)
    same = second[position] == runs.second[wanted[needle]]
    return wanted[needle[same]], position[same]


def _attach_side(
    ctx: TaskContext,
    columns: Columns,
    parts: list[Side],
    prefix: str,
    name: str,
    types: tuple[DataType, ...],
) -> None:
    """Lay the side rows of several packs end to end and shift the groups' pointers accordingly."""
    side = _load_side(ctx.cache.open(name).table, types)
    columns[f"{prefix}begin"] = columns[f"{prefix}begin"] + sum(len(p.tags) for p in parts)
    parts.append(side)


def _load_side(table: pa.Table, types: tuple[DataType, ...]) -> Side:
    values = tuple(from_arrow(table.column(f"v{i}"), t) for i, t in enumerate(types))
    return Side(values, table.column("tag").to_numpy())


def _stacked(parts: list[Columns], total: int) -> Columns:
    """State rows of several packs as one table; a column that a pack lacks is zero there."""
    types = {n: column.dtype for part in parts for n, column in part.items()}
    out: Columns = {}
    for name, dtype in types.items():
        column = np.zeros(total, dtype)
        at = 0
        for part in parts:
            size = len(part[HASH])
            if name in part:
                column[at : at + size] = part[name]
            at += size
        out[name] = column
    return out


def _merged_sides(sides: dict[str, list[Side]]) -> dict[str, Side]:
    return {
        prefix: Side(
            tuple(concat(column) for column in zip(*(p.values for p in parts), strict=True)),
            np.concatenate([p.tags for p in parts]),
        )
        for prefix, parts in sides.items()
        if parts
    }


def state_table(runs: Runs, rows: Ints, columns: Columns) -> pa.Table:
    """The touched groups as a pack, in hash order (runs already are)."""
    data = {
        HASH: runs.hashes.view(np.int64),
        SECOND: runs.second.view(np.int64),
        ROWS: rows,
        **columns,
        TIME: np.zeros(len(rows), np.int64),
    }
    return pa.table({n: pa.array(v) for n, v in data.items()})


def side_table(side: Side) -> pa.Table:
    columns = {f"v{i}": v.to_arrow().cast(to_arrow(v.type)) for i, v in enumerate(side.values)}
    zeros = pa.array(np.zeros(len(side.tags), np.int64))
    return pa.table({**columns, "tag": pa.array(side.tags), TIME: zeros})
