"""Fetching rows for invoked queries, and how much of the work is done before.

`none`: nothing; the rows in the windows are fetched and all conditions evaluated at the invocation.
`p`: WHERE is evaluated as rows arrive, once for all queries with the same one, and rows are fetched
by the members they satisfy; windows, columns and groups are left for the invocation. `c`: the
answer is kept up to date all the time. All three give the same answer.

Reference: Chandrasekaran and Franklin, Streaming Queries over Streaming Data (VLDB 2002).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.leaves.task_share import task_ranges
from thalweg.exec.relations.emit import SIGN
from thalweg.exec.shared_filters.member_sets import by_member
from thalweg.exec.step import step
from thalweg.exec.task import StepTask
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import QueryPlan
from thalweg.store import native
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import TIME, Pack, PackMeta
from thalweg.store.storage import MemoryStorage, Storage

CACHED_BYTES = 512 << 20


@dataclass(slots=True)
class RowFetch:
    """Fetches rows and evaluates snapshots, in this process."""

    storage: Storage
    cache: PackCache = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.cache = PackCache(self.storage, CACHED_BYTES)

    def evaluate(
        self,
        plan: QueryPlan,
        tables: Sequence[pa.Table],
        functions: Mapping[str, UserFunction],
    ) -> pa.Table | None:
        """The answer of a plan over tables; None if it has no rows."""
        memory = MemoryStorage()
        packs = []
        for i, table in enumerate(tables):
            at = pa.array(np.zeros(table.num_rows, np.int64))
            if TIME in table.column_names:
                table = table.set_column(table.column_names.index(TIME), TIME, at)
            else:
                table = table.append_column(TIME, at)
            table = table.replace_schema_metadata(None)  # metadata about indexes no longer applies
            memory.write_table(f"t{i}", table.combine_chunks())
            packs.append((PackMeta(f"t{i}", table.num_rows, 0, BEFORE_TIME, AFTER_TIME),))
        ranges = task_ranges(plan, 1)[0]
        task = StepTask("invoked", plan, BEFORE_TIME, 1, 0, tuple(packs), {}, ranges)
        result = step(task, PackCache(memory), functions)
        self.counts.update(result.counts)
        found = [memory.read_table(p.name) for p in result.outputs]
        return pa.concat_tables(found).drop_columns([TIME, SIGN]) if found else None

    def rows_between(
        self, packs: Sequence[PackMeta], columns: Sequence[str], low: int, high: int
    ) -> Iterator[pa.Table]:
        """Rows of a stream with low ≤ event time < high."""
        for meta in packs:
            if meta.max_ts < low or meta.min_ts >= high:
                continue
            pack = self.cache.open(meta.name)
            rows = _between(pack, low, high)
            self.counts["rows fetched"] += len(rows)
            table = pack.table.select(list(columns))
            yield table if len(rows) == len(pack) else table.take(pa.array(rows))

    def rows_wanted(
        self, packs: Sequence[PackMeta], member: int, columns: Sequence[str], low: int, high: int
    ) -> Iterator[pa.Table]:
        """Rows of the shared results that a member wants."""
        for meta in packs:
            if meta.max_ts < low or meta.min_ts >= high:
                continue
            pack = self.cache.open(meta.name)
            rows = self._wanted(pack, member)
            if meta.min_ts < low or meta.max_ts >= high:
                times = pack.ts[rows]
                rows = rows[(times >= low) & (times < high)]
            self.counts["rows fetched"] += len(rows)
            if len(rows):
                taken = self._batch(pack, tuple(columns)).take(pa.array(rows))
                yield pa.Table.from_batches([taken])

    def _batch(self, pack: Pack, columns: tuple[str, ...]) -> pa.RecordBatch:
        """Some columns of a pack as one batch: gathering rows is faster from it than from a
        table."""
        key = ("batch", pack.name, columns)
        found = self.cache.derived(key)
        if found is None:
            found = pack.table.select(list(columns)).combine_chunks().to_batches()[0]
            self.cache.remember(key, found, int(found.nbytes))
        return found

    def _wanted(self, pack: Pack, member: int) -> Ints:
        """Rows by the member that wants them, inverted once for a pack."""
        key = ("wanted", pack.name)
        found = self.cache.derived(key)
        if found is None:
            found = by_member(pack.table)
            self.cache.remember(key, found, sum(a.nbytes for a in found))
        members, rows = found
        low, high = members.searchsorted(member), members.searchsorted(member + 1)
        return rows[low:high]  # type: ignore[no-any-return]


def _between(pack: Pack, low: int, high: int) -> Ints:
    if pack.has_time_index:
        return pack.rows_between(low, high)
    return native.rows_between(pack.ts, low, high)  # type: ignore[no-any-return]


def columns_of(leaf: Leaf) -> list[str]:
    """The columns of a stream or table that a leaf reads; where it only counts rows, their times:
    without any column there would be no rows."""
    return [leaf.bare(f.name) for f in leaf.fields] or [TIME]
