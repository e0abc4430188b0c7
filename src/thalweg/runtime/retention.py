"""How long packs live and when they are merged.

Merging is tiered: neighbours of similar size become one, so the number of packs, and with it the
cost of a probe, grows with the logarithm of what is kept. Order among packs never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from thalweg.exec import windows
from thalweg.exec.frame import BEFORE_TIME
from thalweg.exec.upkeep import FoldTask, MergeTask
from thalweg.plan.catalog import Catalog
from thalweg.plan.logical import TimeWindow
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state import EngineState, QueryState, StreamState
from thalweg.store.packs import Key, PackMeta

FAN_IN = 8
SMALLEST_TIER = 4096
MOST_UNEVEN = 4 * FAN_IN


def low_water(
    stream: str, catalog: Catalog, plans: Mapping[str, QueryPlan], state: EngineState
) -> int:
    """Rows of the stream before this event time are out of everybody's reach."""
    own = state.streams[stream]
    lowest = own.watermark
    for name, plan in plans.items():
        for i in plan.stream_leaves:
            if plan.leaves[i].relation == stream:
                lowest = min(lowest, _demand(plan, i, state.queries[name].frontier))
    retain = catalog.streams[stream].retain
    if retain is not None and own.max_ts > BEFORE_TIME:
        lowest = min(lowest, own.max_ts - retain)
    return lowest


def _demand(plan: QueryPlan, i: int, frontier: int) -> int:
    window = plan.leaves[i].window
    if not isinstance(window, TimeWindow):
        return frontier
    if window.range is None:
        return BEFORE_TIME if len(plan.stream_leaves) > 1 else frontier
    back = windows.horizon(window)
    return frontier if back is None or frontier == BEFORE_TIME else frontier - back


def tier(rows: int) -> int:
    found = 0
    while rows >= SMALLEST_TIER * FAN_IN:
        rows //= FAN_IN
        found += 1
    return found


def _split(packs: list[PackMeta], barriers: set[int]) -> list[list[PackMeta]]:
    """Stretches of packs that no query's beginning separates."""
    runs: list[list[PackMeta]] = []
    for pack in packs:
        if runs and not any(runs[-1][-1].seq < b <= pack.seq for b in barriers):
            runs[-1].append(pack)
        else:
            runs.append([pack])
    return runs


def _runs(packs: list[PackMeta], barriers: set[int]) -> list[list[PackMeta]]:
    """Neighbours of one tier within such a stretch."""
    return [
        list(group)
        for stretch in _split(packs, barriers)
        for _, group in groupby(stretch, key=lambda p: tier(p.rows))
    ]


def merge_tasks(
    name: str,
    stream: StreamState,
    low: int,
    released: int,
    barriers: set[int],
    columns: tuple[str, ...],
    keys: tuple[Key, ...],
    prefix: str,
) -> list[MergeTask]:
    """Merges worth doing now, among packs that every query has gone through."""
    settled = []
    for pack in stream.packs:
        if pack.max_ts >= released:
            break
        settled.append(pack)
    runs = [run[:FAN_IN] for run in _runs(settled, barriers) if len(run) >= FAN_IN]
    if not runs and len(settled) > MOST_UNEVEN:
        # sizes that never line up must not keep packs apart for ever
        runs = [r[-FAN_IN:] for r in _split(settled, barriers)[-1:] if len(r) >= FAN_IN]
    return [MergeTask(name, tuple(run), low, columns, keys, prefix) for run in runs]


def fold_tasks(name: str, query: QueryState, prefix: str) -> list[FoldTask]:
    packs = query.slots.get("groups", [])
    if len(packs) < 2 * FAN_IN:
        return []
    sizes = [tier(p.meta.rows) for p in packs]
    end = len(packs)
    while end > 0:
        begin = end - 1
        while begin > 0 and sizes[begin - 1] == sizes[end - 1]:
            begin -= 1
        if end - begin >= FAN_IN:
            return [FoldTask(name, "groups", tuple(packs[begin:end]), begin == 0, prefix)]
        end = begin
    if len(packs) <= MOST_UNEVEN:
        return []
    begin = len(packs) - FAN_IN
    return [FoldTask(name, "groups", tuple(packs[begin:]), begin == 0, prefix)]
