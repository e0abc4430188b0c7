"""Maintenance of packs: taking late rows out, merging small packs, merging group states.

None of this changes a row that can still be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from thalweg.exec.aggregate.group_state import CLOSES, HASH, ROWS, SECOND, StatePack
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.leaves.subrelation import WEIGHT, summed
from thalweg.instants import BEFORE_TIME
from thalweg.store import native
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import TIME, WAS, Key, PackMeta, arrange, fresh_name, write_pack
from thalweg.store.storage import COLD


@dataclass(frozen=True, slots=True)
class CleanTask:
    """Split a pack into the rows that are in time and the late ones."""

    stream: str
    pack: PackMeta
    bound: int
    columns: tuple[str, ...]
    keys: tuple[Key, ...]
    prefix: str


@dataclass(slots=True)
class CleanResult:
    stream: str
    old: str
    kept: PackMeta | None
    late: PackMeta


def clean(task: CleanTask, cache: PackCache, functions: Mapping[str, UserFunction]) -> CleanResult:
    pack = cache.open(task.pack.name)
    late = pack.ts < task.bound
    table = pack.table.select(list(task.columns))
    kept = None
    if not late.all():
        rows = np.flatnonzero(~late)
        arranged = arrange(table.take(pa.array(rows)), pack.ts[rows], task.keys)
        kept = write_pack(
            cache.storage, fresh_name(task.prefix, "log"), arranged, task.pack.seq, cut=True
        )
    rows = np.flatnonzero(late)
    rejected = table.take(pa.array(rows))
    rejected = rejected.append_column("__reason", pa.array(["late"] * len(rows)))
    rejected = rejected.append_column(TIME, pa.array(pack.ts[rows]))
    meta = write_pack(cache.storage, fresh_name(task.prefix, "late"), rejected, task.pack.seq)
    return CleanResult(task.stream, task.pack.name, kept, meta)


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Merge neighbouring packs of a stream into one, without rows older than `low`. With `traced`
    the old place of each row is written down, for state that refers to rows. A `cold` pack is in no
    window: it is written compactly, with its first index alone, and in pieces of time that are fast
    to read."""

    stream: str
    packs: tuple[PackMeta, ...]
    low: int
    columns: tuple[str, ...]
    keys: tuple[Key, ...]
    prefix: str
    traced: bool = False
    cold: bool = False


@dataclass(slots=True)
class MergeResult:
    stream: str
    old: tuple[str, ...]
    merged: tuple[PackMeta, ...]


COLD_ROWS = 1 << 17
"""The largest number of rows of a cold piece."""


def merge(task: MergeTask, cache: PackCache, functions: Mapping[str, UserFunction]) -> MergeResult:
    tables, times = [], []
    sizes: list[tuple[str, int]] = []
    for meta in task.packs:
        pack = cache.open(meta.name)
        table, ts = pack.table.select(list(task.columns)), pack.ts
        if task.traced:
            first = sum(n for _, n in sizes)
            was = np.arange(first, first + len(ts), dtype=np.int32)
            table = table.append_column(WAS, pa.array(was))
            sizes.append((meta.name, len(ts)))
        if meta.min_ts < task.low:
            rows = np.flatnonzero(ts >= task.low)
            table, ts = table.take(pa.array(rows)), ts[rows]
        tables.append(table)
        times.append(ts)
    whole = pa.concat_tables(tables).combine_chunks()
    old = tuple(p.name for p in task.packs)
    ts = np.concatenate(times)
    if task.cold:
        return MergeResult(task.stream, old, tuple(_pieces(task, cache, whole, ts)))
    if not whole.num_rows:
        return MergeResult(task.stream, old, ())
    arranged = arrange(whole, ts, task.keys, sizes)
    name = fresh_name(task.prefix, "merged")
    merged = write_pack(cache.storage, name, arranged, task.packs[-1].seq, cut=True)
    return MergeResult(task.stream, old, (merged,))


def _pieces(
    task: MergeTask, cache: PackCache, whole: pa.Table, ts: np.ndarray
) -> Iterator[PackMeta]:
    """Cold rows, in the order of time."""
    order = native.time_order(ts)
    for first in range(0, len(order), COLD_ROWS):
        rows = order[first : first + COLD_ROWS]
        arranged = arrange(whole.take(pa.array(rows)), ts[rows], task.keys[:1])
        name = fresh_name(task.prefix, "cold", COLD)
        yield write_pack(cache.storage, name, arranged, task.packs[-1].seq, cut=True)


@dataclass(frozen=True, slots=True)
class FoldTask:
    """Merge several packs of group state, oldest first, into one: the newest row of each group.

    `oldest` says that nothing older exists, so that groups that are gone can be forgotten; the one
    group of an aggregate without keys is never gone. Groups that closed before the `frontier` are
    not looked up again.
    """

    query: str
    slot: str
    packs: tuple[StatePack, ...]
    oldest: bool
    prefix: str
    frontier: int = BEFORE_TIME
    has_keys: bool = True


@dataclass(slots=True)
class FoldResult:
    query: str
    slot: str
    old: tuple[str, ...]
    folded: StatePack | None


def fold(task: FoldTask, cache: PackCache, functions: Mapping[str, UserFunction]) -> FoldResult:
    tables = [cache.open(p.meta.name).table for p in task.packs]
    columns, owner = _stacked(tables)
    keep = _newest(columns, owner)
    if task.oldest and task.has_keys:
        keep = keep[columns[ROWS][keep] != 0]
    if CLOSES in columns:
        keep = keep[columns[CLOSES][keep] > task.frontier]
    old = tuple(p.meta.name for p in task.packs)
    if not len(keep):
        return FoldResult(task.query, task.slot, old, None)
    sides, beside = [], 0
    for prefix in dict.fromkeys(p for pack in task.packs for p, _ in pack.sides):
        side, begin = _side(task, cache, prefix, columns, owner, keep)
        columns[f"{prefix}begin"][keep] = begin
        name = fresh_name(task.prefix, f"{task.slot}-{prefix}")
        beside += write_pack(cache.storage, name, side).bytes
        sides.append((prefix, name))
    table = pa.table({n: pa.array(v[keep]) for n, v in columns.items()})
    meta = write_pack(cache.storage, fresh_name(task.prefix, task.slot), table)
    meta = replace(meta, bytes=meta.bytes + beside)
    return FoldResult(task.query, task.slot, old, StatePack(meta, tuple(sides)))


@dataclass(frozen=True, slots=True)
class FoldRowsTask:
    """Merge several packs of rows into one, those older than `low` left out: weighted rows are
    added up, and if they are `due`, those of each instant by themselves."""

    query: str
    slot: str
    packs: tuple[StatePack, ...]
    columns: tuple[str, ...]
    keys: tuple[Key, ...]
    weighted: bool
    low: int
    prefix: str
    due: bool = False


def fold_rows(
    task: FoldRowsTask, cache: PackCache, functions: Mapping[str, UserFunction]
) -> FoldResult:
    names = [*task.columns, *([WEIGHT] if task.weighted else []), TIME]
    tables = [cache.open(p.meta.name).table.select(names) for p in task.packs]
    whole = pa.concat_tables(tables).combine_chunks()
    if task.due or not task.weighted:
        whole = _since(whole, task.low)
    if task.weighted:
        whole = summed(whole, [*task.columns, TIME] if task.due else task.columns)
    old = tuple(p.meta.name for p in task.packs)
    if not whole.num_rows:
        return FoldResult(task.query, task.slot, old, None)
    ts = whole.column(TIME).to_numpy()
    arranged = arrange(whole.drop_columns([TIME]), ts, task.keys)
    seq = task.packs[-1].meta.seq
    meta = write_pack(cache.storage, fresh_name(task.prefix, task.slot), arranged, seq)
    return FoldResult(task.query, task.slot, old, StatePack(meta))


def _since(table: pa.Table, low: int) -> pa.Table:
    return table.take(pa.array(np.flatnonzero(table.column(TIME).to_numpy() >= low)))


def _stacked(tables: Sequence[pa.Table]) -> tuple[dict[str, np.ndarray], np.ndarray]:
    columns = {
        f.name: np.concatenate([_column(t, f) for t in tables])
        for f in pa.unify_schemas([t.schema for t in tables])
    }
    owner = np.repeat(np.arange(len(tables)), [t.num_rows for t in tables])
    return columns, owner


def _column(table: pa.Table, field: pa.Field) -> np.ndarray:
    """A column of state; zeros of its type where a pack lacks it."""
    if field.name in table.column_names:
        return np.asarray(table.column(field.name).to_numpy())
    return np.zeros(table.num_rows, field.type.to_pandas_dtype())


def _newest(columns: Mapping[str, np.ndarray], owner: np.ndarray) -> np.ndarray:
    """Rows to keep, in hash order."""
    first, second = columns[HASH].view(np.uint64), columns[SECOND].view(np.uint64)
    order = np.lexsort((owner, second, first))
    last = np.ones(len(order), np.bool_)
    same = (first[order][1:] == first[order][:-1]) & (second[order][1:] == second[order][:-1])
    last[:-1] = ~same
    return order[last]


def _side(
    task: FoldTask,
    cache: PackCache,
    prefix: str,
    columns: Mapping[str, np.ndarray],
    owner: np.ndarray,
    keep: np.ndarray,
) -> tuple[pa.Table, np.ndarray]:
    """The side rows of the kept groups, laid end to end."""
    tables = [cache.open(dict(p.sides)[prefix]).table for p in task.packs]
    starts = np.concatenate([[0], np.cumsum([t.num_rows for t in tables])])
    begin = columns[f"{prefix}begin"][keep] + starts[owner[keep]]
    count = columns[f"{prefix}count"][keep]
    offsets = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64)
    rows = np.repeat(begin - offsets, count) + np.arange(int(count.sum()))
    whole = pa.concat_tables(tables).combine_chunks()
    return whole.take(pa.array(rows)), offsets
