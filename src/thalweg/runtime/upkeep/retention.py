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
from thalweg.runtime.upkeep.compaction import leaf_of, passed
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


def forget_passed(plan: QueryPlan, query: QueryState, retain: int) -> list[str]:
    """Drop packs from the state: of subqueries' streams that have left their windows, of changes
    that were due, and of rows older than results are kept."""
    gone: list[str] = []
    changed = {}
    for slot, packs in query.operators.slots.items():
        low = _passed(plan, query, slot, retain)
        if low is not None:
            gone += [f for p in packs if p.meta.max_ts < low for f in p.files]
            changed[slot] = tuple(p for p in packs if p.meta.max_ts >= low)
    if gone:
        query.operators = replace(query.operators, slots={**query.operators.slots, **changed})
    return gone


def _passed(plan: QueryPlan, query: QueryState, slot: str, retain: int) -> int | None:
    """The instant before which rows of a slot are of no use, if there is such an instant."""
    rule = state_slots.kind_of(slot).rule
    if rule in (SlotRule.DUE, SlotRule.KEPT):
        return passed(query, rule, retain)
    if rule is not SlotRule.SINCE:
        return None
    relation, i = leaf_of(plan, slot)
    return needed_since(relation, relation.leaves[i], query)
