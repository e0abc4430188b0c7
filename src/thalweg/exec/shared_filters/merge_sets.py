"""Merge of several packs of rows with sets of members into one, each set written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.shared_filters.member_sets import WANTED, Ids, sets_of, with_sets
from thalweg.exec.shared_filters.predicate_index import Matches
from thalweg.exec.upkeep.gather_output import GatherResult
from thalweg.instants import Ints
from thalweg.store import native
from thalweg.store.hashing import hash_columns, second_hash
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import TIME, PackMeta, fresh_name, write_pack


@dataclass(frozen=True, slots=True)
class MergeSetsTask:
    """Output packs under these keys of a name, to be merged without rows older than `low`."""

    name: str
    keys: tuple[str, ...]
    packs: tuple[PackMeta, ...]
    low: int
    prefix: str


def merge_sets(
    task: MergeSetsTask, cache: PackCache, functions: Mapping[str, UserFunction]
) -> GatherResult:
    tables = [cache.open(meta.name).table for meta in task.packs]
    old = tuple(meta.name for meta in task.packs)
    sets = _together([found for table in tables for found in sets_of(table)])
    rows = pa.concat_tables([t.drop_columns([WANTED]) for t in tables]).combine_chunks()
    ts = rows.column(TIME).to_numpy()
    order = native.time_order(ts)
    order = order[ts[order] >= task.low]
    if not len(order):
        return GatherResult(task.name, task.keys, old, None)
    merged = with_sets(rows.take(pa.array(order)).combine_chunks(), sets, order)
    meta = write_pack(cache.storage, fresh_name(task.prefix, "sets"), merged)
    return GatherResult(task.name, task.keys, old, meta)


def _together(parts: Sequence[tuple[int, Ids, Ints, Ids]]) -> Matches:
    """The sets of all chunks under one numbering; equal ones become one."""
    counts = np.concatenate([np.diff(offsets) for _, _, offsets, _ in parts])
    members = np.concatenate([m for _, _, _, m in parts])
    begin = np.concatenate([[0], np.cumsum(counts)])
    before = np.cumsum([0, *(len(offsets) - 1 for _, _, offsets, _ in parts)])
    kind = np.concatenate([k + at for (_, k, _, _), at in zip(parts, before, strict=False)])
    _, first, same = np.unique(
        _identities(members, begin), axis=0, return_index=True, return_inverse=True
    )
    _, at = native.expand_ranges(begin[:-1][first], counts[first], int(counts[first].sum()))
    distinct = np.concatenate([[0], np.cumsum(counts[first])])
    return Matches(same.reshape(-1)[kind].astype(np.int32), distinct, members[at])


def _identities(members: Ids, begin: Ints) -> np.ndarray:
    """Two independent hashes of each set, whatever the order of its members, and its size."""
    column = [pa.array(members)]
    sums = []
    for hashed in (hash_columns, second_hash):
        total = np.concatenate([[np.uint64(0)], np.cumsum(hashed(column, len(members)))])
        sums.append(total[begin[1:]] - total[begin[:-1]])
    return np.stack([*sums, np.diff(begin).astype(np.uint64)], axis=1)
