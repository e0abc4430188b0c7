"""The merge policy of packs.

Merging is tiered: neighbours of similar size become one, so the number of packs, and with it the
cost of a probe, grows with the logarithm of the stored rows. Order among packs never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from thalweg.exec.aggregate.group_state import StatePack
from thalweg.exec.upkeep.merge_packs import FoldRowsTask, FoldTask, MergeTask
from thalweg.instants import BEFORE_TIME
from thalweg.plan import state_slots
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.protocol import Relation
from thalweg.plan.state_slots import SlotRule
from thalweg.runtime.lifecycle.window_reach import needed_since
from thalweg.runtime.state.query_state import QueryState
from thalweg.runtime.state.stream_state import StreamState
from thalweg.store.packs import Key, PackMeta

T = TypeVar("T")
FAN_IN = 8
SMALLEST_TIER = 4096
MOST_UNEVEN = 4 * FAN_IN
COLD_TIER = 2
"""Packs of this tier that no window reaches are rewritten compactly, and are not merged any
further: a query over the past opens them one by one."""


def tier(rows: int) -> int:
    found = 0
    while rows >= SMALLEST_TIER * FAN_IN:
        rows //= FAN_IN
        found += 1
    return found


def runs_of_one_tier(found: Iterable[T], rows: Callable[[T], int]) -> Iterator[list[T]]:
    """Neighbours of similar size, as many as are merged at once."""
    for _, group in groupby(found, key=lambda one: tier(rows(one))):
        run = list(group)[:FAN_IN]
        if len(run) == FAN_IN:
            yield run


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
    """Neighbours of one tier within such a stretch; cold packs, and those due to become cold, are
    left out."""
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
    """Useful merges among packs that every query has processed; rows before `cold` are in no
    window."""
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
    """Packs whose sizes never line up, to be merged anyhow where there are many, or before one that
    is not merged any further."""
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
    for slot, packs in query.operators.slots.items():
        rule = state_slots.kind_of(slot).rule
        replaced = rule is SlotRule.REPLACED
        chosen = None if replaced else worth_merging([p.meta.rows for p in packs])
        if chosen is None:
            continue
        begin, end = chosen
        if rule is SlotRule.NEWEST:
            some = tuple(packs[begin:end])
            keyed = plan.relations[state_slots.place_of(slot)[0]].has_keys
            found.append(
                FoldTask(name, slot, some, begin == 0, prefix, query.progress.frontier, keyed)
            )
        elif state_slots.place_of(slot)[1] is None:
            low = query.progress.frontier if rule is SlotRule.DUE else BEFORE_TIME
            found.append(_own_rows(name, plan, slot, tuple(packs[begin:end]), low, prefix))
        else:
            relation, i = leaf_of(plan, slot)
            weighted = rule is SlotRule.SUMMED
            low = BEFORE_TIME
            if not weighted:
                low = needed_since(relation, relation.leaves[i], query)
            some = tuple(packs[begin:end])
            columns = tuple(f.name for f in relation.leaves[i].fields)
            keys = relation.probed_keys(i)
            found.append(FoldRowsTask(name, slot, some, columns, keys, weighted, low, prefix))
    return found


def _own_rows(
    name: str,
    plan: QueryPlan,
    slot: str,
    packs: tuple[StatePack, ...],
    low: int,
    prefix: str,
) -> FoldRowsTask:
    """The merge of weighted rows that a relation stores for itself."""
    kind = state_slots.kind_of(slot)
    fields, keys = plan.relations[state_slots.place_of(slot)[0]].stored(kind.name)
    columns = tuple(f.name for f in fields)
    due = kind.rule in (SlotRule.DUE, SlotRule.KEPT)
    return FoldRowsTask(name, slot, packs, columns, keys, True, low, prefix, due)


def worth_merging(rows: Sequence[int]) -> tuple[int, int] | None:
    """The newest run of one tier among packs with these numbers of rows, oldest first; sizes that
    never line up are merged anyhow."""
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


def leaf_of(plan: QueryPlan, slot: str) -> tuple[Relation, int]:
    """The relation that a slot belongs to, and which of its leaves."""
    relation, leaf = state_slots.place_of(slot)
    assert leaf is not None
    return plan.relations[relation], leaf
