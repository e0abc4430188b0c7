"""What a query keeps, in the four parts of Babu and Widom's architecture for continuous queries.

*Stream* are answers that are final, *Store* answers that may still leave, *Scratch* what is kept
because later answers may need it, *Throw* what has come and is kept no longer. All are numbers of
rows, counted, not estimated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.exec.aggregate.group_state import HASH, SECOND, StatePack
from thalweg.plan import state_slots
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.block import blocks_of
from thalweg.runtime.lifecycle.window_reach import needed_by_stream
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import QueryState
from thalweg.store.packs import TIME, PackMeta
from thalweg.store.storage import Storage


@dataclass(frozen=True, slots=True)
class Components:
    stream: int
    store: int
    scratch: int
    throw: int


def components(
    plan: QueryPlan, query: QueryState, state: EngineState, storage: Storage
) -> Components:
    kept, pending = _window_rows(plan, query, state, storage)
    shared = [
        p for key in query.operators.shared_slots.values() for p in state.window_stores[key].packs
    ]
    scratch = kept + _slot_rows(query, storage) + sum(p.meta.rows for p in shared)
    came = sum(state.streams[s].rows for s in _streams(plan)) - sum(
        query.history.rows_before.values()
    )
    emitted, answers = query.operators.counts.get("emitted", 0), _answers(query)
    if plan.kind is not EmitKind.RELATION:
        passed_on = emitted if _passes_rows_on(plan) else 0
        return Components(emitted, 0, scratch, max(came - pending - kept - passed_on, 0))
    final = _final(plan, query, answers)
    passed_on = answers if _passes_rows_on(plan) else 0
    return Components(final, answers - final, scratch, max(came - pending - kept - passed_on, 0))


def _answers(query: QueryState) -> int:
    return query.operators.counts.get("appeared", 0) - query.operators.counts.get("vanished", 0)


def _final(plan: QueryPlan, query: QueryState, answers: int) -> int:
    """How many rows of the answer can never leave it."""
    if all(r.only_grows for r in plan.relations):
        return answers
    block = plan.only_block
    if block is None or block.having or block.grouping is None or block.grouping.closing is None:
        return 0
    return min(query.operators.counts.get("closed", 0), answers)


def _passes_rows_on(plan: QueryPlan) -> bool:
    """Whether each answer is one row of the input."""
    block = dict(blocks_of(plan.relations)).get(len(plan.relations) - 1)
    return block is not None and block.grouping is None and len(block.leaves) == 1


def _streams(plan: QueryPlan) -> list[str]:
    return list(dict.fromkeys(plan.leaves[i].relation for i in plan.stream_leaves))


def _window_rows(
    plan: QueryPlan, query: QueryState, state: EngineState, storage: Storage
) -> tuple[int, int]:
    """Rows of its streams that the query may still look at, and rows it has not come to yet."""
    frontier = query.progress.frontier
    since = dict.fromkeys(_streams(plan), frontier)
    since |= {s: min(low, frontier) for s, low in needed_by_stream(plan, query).items()}
    kept = pending = 0
    for stream, low in since.items():
        for pack in state.seen_by(query, stream):
            kept += _between(pack, low, query.progress.frontier, storage)
            pending += _between(pack, query.progress.frontier, pack.max_ts + 1, storage)
    return kept, pending


def _between(pack: PackMeta, low: int, high: int, storage: Storage) -> int:
    if pack.max_ts < low or pack.min_ts >= high or low >= high:
        return 0
    if low <= pack.min_ts and pack.max_ts < high:
        return pack.rows
    ts = storage.read_table(pack.name).column(TIME).to_numpy()
    return int(np.count_nonzero((ts >= low) & (ts < high)))


def _slot_rows(query: QueryState, storage: Storage) -> int:
    """Rows of state; one row per group is the answer itself, what lies beside it is not."""
    total = 0
    for name, packs in query.operators.slots.items():
        if state_slots.kind_of(name) == state_slots.GROUPS:
            total += _beside_groups(packs, storage)
        elif state_slots.kind_of(name) == state_slots.COUNTS:
            total += max(sum(p.meta.rows for p in packs) - _answers(query), 0)
        else:
            total += sum(p.meta.rows for p in packs)
    return total


def _beside_groups(packs: Sequence[StatePack], storage: Storage) -> int:
    """Values that groups hold on to beyond the one they show."""
    if not any(p.sides for p in packs):
        return 0
    seen: set[tuple[int, int]] = set()
    total = 0
    for pack in reversed(packs):
        table = storage.read_table(pack.meta.name)
        ids = list(zip(*(table.column(c).to_pylist() for c in (HASH, SECOND)), strict=True))
        fresh = np.array([i not in seen for i in ids], np.bool_)
        seen.update(ids)
        for prefix, _ in pack.sides:
            held = table.column(f"{prefix}count").to_numpy()[fresh]
            total += int(np.maximum(held - 1, 0).sum())
    return total
