"""Compaction of packs that epochs write one by one: output, each row with its epoch, and
rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import TIME, PackMeta, fresh_name, write_pack

EPOCH = "__epoch"
LAST_EPOCH = 1 << 62


@dataclass(frozen=True, slots=True)
class GatherTask:
    """Packs by epoch, in the order of epochs; packs compacted before are parts as well."""

    name: str
    keys: tuple[str, ...]
    parts: tuple[tuple[int, tuple[PackMeta, ...]], ...]
    prefix: str

    @property
    def packs(self) -> tuple[PackMeta, ...]:
        return tuple(pack for _, packs in self.parts for pack in packs)


@dataclass(slots=True)
class GatherResult:
    """One pack that replaces others, None if none of their rows are left; these were output under
    the given keys."""

    name: str
    keys: tuple[str, ...]
    old: tuple[str, ...]
    merged: PackMeta | None


def gather(
    task: GatherTask, cache: PackCache, functions: Mapping[str, UserFunction]
) -> GatherResult:
    # read past the cache: these packs are about to go
    tables = [_with_epoch(rows_of(cache.storage, packs), epoch) for epoch, packs in task.parts]
    # a function may have been registered again with another type
    whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    meta = write_pack(cache.storage, fresh_name(task.prefix, "out"), whole)
    return GatherResult(task.name, task.keys, tuple(p.name for p in task.packs), meta)


class Readable(Protocol):
    """A reader of packs."""

    def read_table(self, name: str) -> pa.Table: ...


def rows_of(storage: Readable, packs: Sequence[PackMeta]) -> pa.Table:
    """Output under one key as it was written: epoch by epoch, and in the order of time."""
    tables = [storage.read_table(p.name) for p in packs]
    if EPOCH not in tables[0].column_names:
        return pa.concat_tables(tables).sort_by([(TIME, "ascending")])
    (table,) = tables
    return table


def of_epochs(table: pa.Table, first: int, last: int = LAST_EPOCH) -> pa.Table:
    """Rows of the output of these epochs, if they have been compacted with others."""
    if EPOCH not in table.column_names:
        return table
    epochs = table.column(EPOCH)
    wanted = pc.and_(pc.greater_equal(epochs, first), pc.less_equal(epochs, last))
    return table if pc.all(wanted).as_py() else table.filter(wanted)


def _with_epoch(table: pa.Table, epoch: int) -> pa.Table:
    if EPOCH in table.column_names:
        return table
    return table.append_column(EPOCH, pa.array(np.full(table.num_rows, epoch, np.int64)))


@dataclass(frozen=True, slots=True)
class GatherRejectsTask:
    """Rejects of a stream, or of a query, from consecutive epochs."""

    owner: str
    of_stream: bool
    packs: tuple[PackMeta, ...]
    prefix: str


@dataclass(slots=True)
class RejectsResult:
    owner: str
    of_stream: bool
    old: tuple[str, ...]
    merged: PackMeta


def gather_rejects(
    task: GatherRejectsTask, cache: PackCache, functions: Mapping[str, UserFunction]
) -> RejectsResult:
    tables = [cache.storage.read_table(p.name) for p in task.packs]
    whole = pa.concat_tables(tables, promote_options="default").combine_chunks()
    meta = write_pack(cache.storage, fresh_name(task.prefix, "rejects"), whole)
    return RejectsResult(task.owner, task.of_stream, tuple(p.name for p in task.packs), meta)
