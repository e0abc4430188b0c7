"""Retention of the rows of streams, and of streams that subqueries emit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from thalweg.instants import AFTER_TIME, BEFORE_TIME
from thalweg.plan import state_slots
from thalweg.plan.catalog import Catalog
from thalweg.plan.physical import QueryPlan
from thalweg.plan.state_slots import SlotRule
from thalweg.runtime.lifecycle.window_reach import needed_since
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import QueryState
from thalweg.runtime.upkeep.compaction import leaf_of
from thalweg.store.packs import PackMeta


def retained_since(stream: str, catalog: Catalog, state: EngineState, lowest: int) -> int:
    """The instant from which on rows are kept, if windows reach back to `lowest`."""
    own = state.streams[stream]
    retain = catalog.streams[stream].retain
    if retain is not None and own.max_ts > BEFORE_TIME:
        lowest = min(lowest, own.max_ts - retain)
    rows = catalog.streams[stream].retain_rows
    return lowest if rows is None else min(lowest, _newest_since(own.packs, rows))


def _newest_since(packs: Sequence[PackMeta], rows: int) -> int:
    """The first time among the newest packs that have so many rows."""
    found = AFTER_TIME
    for pack in sorted(packs, key=lambda p: -p.max_ts):
        if rows <= 0:
            break
        found = min(found, pack.min_ts)
        rows -= pack.rows
    return found if rows <= 0 else BEFORE_TIME


def forget_passed(plan: QueryPlan, query: QueryState) -> list[str]:
    """Drop packs from the state: of subqueries' streams that have left their windows, of changes
    that were due, and of rows that are kept no longer than results."""
    gone: list[str] = []
    changed = {}
    for slot, packs in query.operators.slots.items():
        kept = tuple(p for p in packs if not _is_passed(plan, query, slot, p.meta))
        if len(kept) < len(packs):
            gone += [f for p in packs if p not in kept for f in p.files]
            changed[slot] = kept
    if gone:
        query.operators = replace(query.operators, slots={**query.operators.slots, **changed})
    return gone


def _is_passed(plan: QueryPlan, query: QueryState, slot: str, pack: PackMeta) -> bool:
    rule = state_slots.kind_of(slot).rule
    if rule is SlotRule.KEPT:
        return pack.seq <= query.output.forgotten
    if rule is SlotRule.DUE:
        return pack.max_ts < query.progress.frontier
    if rule is not SlotRule.SINCE:
        return False
    relation, i = leaf_of(plan, slot)
    return pack.max_ts < needed_since(relation, relation.leaves[i], query)
