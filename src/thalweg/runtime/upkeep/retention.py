"""How long packs live and when they are merged.

Merging is tiered: neighbours of similar size become one, so the number of packs, and with it the
cost of a probe, grows with the logarithm of what is kept. Order among packs never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, takewhile

from thalweg.exec import slots, windows
from thalweg.exec.frame import AFTER_TIME, BEFORE_TIME
from thalweg.exec.upkeep import FoldRowsTask, FoldTask, MergeTask
from thalweg.plan.catalog import Catalog
from thalweg.plan.logical import TimeWindow
from thalweg.plan.physical import Block, Leaf, QueryPlan, Reading, Sequenced
from thalweg.runtime.state.engine_state import ASLEEP, EngineState, QueryState, StreamState
from thalweg.store.packs import Key, PackMeta

FAN_IN = 8
SMALLEST_TIER = 4096
MOST_UNEVEN = 4 * FAN_IN
COLD_TIER = 2
"""Packs of this tier that no window reaches are written once more, to take little room, and are not
merged any further: a query over the past opens them one by one."""


def low_water(
    stream: str, catalog: Catalog, plans: Mapping[str, QueryPlan], state: EngineState
) -> int:
    """Rows of the stream before this event time are out of everybody's reach: in no window, and
    not retained."""
    return retained_since(stream, catalog, state, reached(stream, plans, state)[0])


def retained_since(stream: str, catalog: Catalog, state: EngineState, lowest: int) -> int:
    """From where on rows are kept, if windows reach back to `lowest`."""
    own = state.streams[stream]
    retain = catalog.streams[stream].retain
    if retain is not None and own.max_ts > BEFORE_TIME:
        lowest = min(lowest, own.max_ts - retain)
    rows = catalog.streams[stream].retain_rows
    return lowest if rows is None else min(lowest, _newest_since(own.packs, rows))


def reached(stream: str, plans: Mapping[str, QueryPlan], state: EngineState) -> tuple[int, int]:
    """Rows of the stream before this event time are in no window; they may be retained. The same
    without queries that go through the past."""
    lowest = of_others = state.streams[stream].watermark
    for name, plan in plans.items():
        if stream not in plan.streams:
            continue
        query = state.queries[name]
        for reading, leaf in plan.stored_leaves:
            if leaf.relation == stream:
                since = needed_since(reading, leaf, query)
                if stream in query.evicted:  # the next step lets these rows go
                    since = min(since, query.evicted[stream][0])
                lowest = min(lowest, since)
                if not query.behind:
                    of_others = min(of_others, since)
    return lowest, of_others


def _newest_since(packs: Sequence[PackMeta], rows: int) -> int:
    """The first time among the newest packs that have so many rows."""
    found = AFTER_TIME
    for pack in sorted(packs, key=lambda p: -p.max_ts):
        if rows <= 0:
            break
        found = min(found, pack.min_ts)
        rows -= pack.rows
    return found if rows <= 0 else BEFORE_TIME


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


def _runs(packs: list[PackMeta], barriers: set[int], cold: int) -> list[list[PackMeta]]:
    """Neighbours of one tier within such a stretch; what is cold, or is going to be, is left as it
    is."""
    return [
        list(group)
        for stretch in _split(packs, barriers)
        for (_, stays), group in groupby(stretch, key=lambda p: (tier(p.rows), _stays(p, cold)))
        if not stays
    ]


def _stays(pack: PackMeta, cold: int) -> bool:
    return pack.is_cold or (pack.max_ts < cold and tier(pack.rows) >= COLD_TIER)


def merge_tasks(
    name: str,
    stream: StreamState,
    low: int,
    released: int,
    barriers: set[int],
    columns: tuple[str, ...],
    keys: tuple[Key, ...],
    prefix: str,
    traced: bool,
    cold: int,
) -> list[MergeTask]:
    """Merges worth doing now, among packs that every query has gone through; rows before `cold`
    are in no window."""
    settled = []
    for pack in stream.packs:
        if pack.max_ts >= released:
            break
        settled.append(pack)
    runs = [run[:FAN_IN] for run in _runs(settled, barriers, cold) if len(run) >= FAN_IN]
    if not runs:
        runs = _uneven(settled, barriers, cold)
    merges = [MergeTask(name, tuple(run), low, columns, keys, prefix, traced) for run in runs]
    unwritten = next((p for p in settled if _stays(p, cold) and not p.is_cold), None)
    if unwritten is not None:
        merges.append(MergeTask(name, (unwritten,), low, columns, keys, prefix, cold=True))
    return merges


def _uneven(settled: list[PackMeta], barriers: set[int], cold: int) -> list[list[PackMeta]]:
    """Sizes that never line up must not keep packs apart for ever: not where there are many, and
    not before one that stays as it is."""
    found = []
    for stays, group in groupby(settled, key=lambda p: _stays(p, cold)):
        stretch = [] if stays else list(group)
        ends_here = bool(stretch) and stretch[-1] is settled[-1]
        if len(stretch) > (MOST_UNEVEN if ends_here else FAN_IN):
            found += [r[-FAN_IN:] for r in _split(stretch, barriers)[-1:] if len(r) >= FAN_IN]
    return found


def fold_tasks(
    name: str, plan: QueryPlan, query: QueryState, prefix: str
) -> list[FoldTask | FoldRowsTask]:
    """At most one fold per slot of state that steps add to."""
    found: list[FoldTask | FoldRowsTask] = []
    for slot, packs in query.slots.items():
        chosen = None if slots.is_replaced(slot) else worth_merging([p.meta.rows for p in packs])
        if chosen is None:
            continue
        begin, end = chosen
        if slots.kind_of(slot) in (slots.GROUPS, slots.COUNTS):
            some = tuple(packs[begin:end])
            keyed = _has_keys(plan, slot)
            found.append(FoldTask(name, slot, some, begin == 0, prefix, query.frontier, keyed))
        else:
            block, i = _place(plan, slot)
            weighted = slots.kind_of(slot) == slots.ROWS
            low = BEFORE_TIME
            if not weighted:
                low = needed_since(block, block.leaves[i], query)
            some = tuple(packs[begin:end])
            columns = tuple(f.name for f in block.leaves[i].fields)
            targets = [p.target for p in block.leaf_probes if p.leaf == i]
            keys = tuple(dict.fromkeys(targets))
            found.append(FoldRowsTask(name, slot, some, columns, keys, weighted, low, prefix))
    return found


def _has_keys(plan: QueryPlan, slot: str) -> bool:
    relation = plan.relations[slots.place_of(slot)[0]]
    return not isinstance(relation, Block) or bool(relation.grouping and relation.grouping.keys)


def worth_merging(rows: Sequence[int]) -> tuple[int, int] | None:
    """Of packs with so many rows, oldest first, the newest run of one tier; sizes that never line
    up are merged anyhow."""
    if len(rows) < 2 * FAN_IN:
        return None
    sizes = [tier(n) for n in rows]
    end = len(rows)
    while end > 0:
        begin = end - 1
        while begin > 0 and sizes[begin - 1] == sizes[end - 1]:
            begin -= 1
        if end - begin >= FAN_IN:
            return begin, end
        end = begin
    return None if len(rows) <= MOST_UNEVEN else (len(rows) - FAN_IN, len(rows))


def _place(plan: QueryPlan, slot: str) -> tuple[Block, int]:
    """The block that a slot belongs to, and which of its leaves."""
    relation, leaf = slots.place_of(slot)
    block = plan.relations[relation]
    assert isinstance(block, Block)
    assert leaf is not None
    return block, leaf


def needed_since(reading: Reading, leaf: Leaf, query: QueryState) -> int:
    """Rows of a leaf before this event time are out of the query's reach."""
    frontier = query.frontier
    if not isinstance(leaf.window, TimeWindow) or isinstance(reading, Sequenced):
        return frontier
    if query.mode in ASLEEP:  # its rows are fetched at an invocation; others may lean on it
        return _held_since(leaf.window, frontier)
    floor = query.floors.get(leaf.relation, BEFORE_TIME)
    if leaf.window.is_endless:
        changing = sum(not other.is_table and not other.is_static for other in reading.leaves)
        since = BEFORE_TIME if leaf.window.since is None else leaf.window.since
        return max(min(since, frontier), floor) if changing > 1 else frontier
    return max(windows.reached_from(leaf.window, frontier), floor)


def _held_since(window: TimeWindow, frontier: int) -> int:
    if not window.is_endless:
        return windows.reached_from(window, frontier)
    return BEFORE_TIME if window.since is None else window.since


def forget_emitted(plan: QueryPlan, query: QueryState) -> list[str]:
    """Take packs of subqueries' streams that have left their windows out of the state."""
    gone: list[str] = []
    for slot, packs in query.slots.items():
        if slots.kind_of(slot) == slots.STREAM:
            block, i = _place(plan, slot)
            low = needed_since(block, block.leaves[i], query)
            gone += [f for p in packs if p.meta.max_ts < low for f in p.files]
            query.slots[slot] = [p for p in packs if p.meta.max_ts >= low]
    return gone


def epochs_before(clocks: Mapping[str, int], limit: int) -> set[str]:
    """Epochs with output that were committed before an instant of the clock."""
    return set(takewhile(lambda epoch: clocks[epoch] < limit, clocks))
