"""The rows of windows over the order of a stream, stored once for several queries.

A store holds, of the rows before an instant, those that the widest window would hold then. Every
other window over the same partitions holds a subset: its own view is given by its lifetimes
(`exec/leaves/ordered_window.py`), so that no operator depends on whether rows are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from thalweg.exec.aggregate.group_state import StatePack
from thalweg.exec.context import TaskContext
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.leaves.ordered_window import KeptLeaf
from thalweg.exec.leaves.task_share import Share
from thalweg.plan.leaf import Leaf
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import TIME, Key, PackMeta, arrange, fresh_name, write_pack


@dataclass(frozen=True, slots=True)
class KeepTask:
    """Advance a store from one instant to another: `stored` are its rows, `packs` those of the
    stream. `keys` are those by which its rows will be looked up."""

    store: str
    leaf: Leaf
    stored: tuple[PackMeta, ...]
    packs: tuple[PackMeta, ...]
    since: int
    until: int
    keys: tuple[Key, ...]
    prefix: str


@dataclass(slots=True)
class KeepResult:
    """The content of a store at the instant `until`, for windows of at most the given `reach`."""

    store: str
    until: int
    reach: int
    pack: StatePack | None


def keep(task: KeepTask, cache: PackCache, functions: Mapping[str, UserFunction]) -> KeepResult:
    ctx = TaskContext(cache, functions, task.since, task.until)
    bare = replace(task.leaf, fields=(), post_filters=())
    table = KeptLeaf(ctx, bare, 0, task.packs, Share(), task.stored).state()
    reach = bare.ordered_window.reach
    if table is None or not table.num_rows:
        return KeepResult(task.store, task.until, reach, None)
    ts = table.column(TIME).to_numpy()
    arranged = arrange(table.drop_columns([TIME]), ts, task.keys)
    meta = write_pack(cache.storage, fresh_name(task.prefix, "window"), arranged)
    return KeepResult(task.store, task.until, reach, StatePack(meta))
