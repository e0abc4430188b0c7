"""RSTREAM: a relation as a whole, at the instants at which it is due."""

from __future__ import annotations

import numpy as np

from thalweg.columns.frame import Changes
from thalweg.exec.relations.emit import arrival_instants, repeat, select_sign
from thalweg.exec.step_state import StepState
from thalweg.instants import AFTER_TIME, Ints
from thalweg.plan import state_slots
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan


def repeated(state: StepState, number: int, changes: Changes, slot: str) -> Changes:
    """RSTREAM of a relation whose content is stored in a slot."""
    start, until = state.task.start, state.ctx.until
    if start is None:
        return changes.take(np.empty(0, np.int64))
    schema = state.plan.relations[number].schema
    instants = np.unique(_due(state, number, start))
    emitted, bag = repeat(schema, state.tables(slot), changes, instants)
    state.keep(slot, bag)
    if bag is not None and bag.num_rows:
        state.wakes.append(_next_boundary(state.plan, until))
    return emitted


def stream_of(state: StepState, number: int, i: int) -> Changes:
    """The stream that the relation below a leaf emits in this epoch."""
    leaf = state.plan.relations[number].leaves[i]
    assert leaf.source is not None
    assert leaf.emits is not None
    if (number, i) not in state.streams:
        changes = state.changes[leaf.source]
        if leaf.emits is EmitKind.RSTREAM:
            found = repeated(
                state, leaf.source, changes, state_slots.slot(number, state_slots.BAG, i)
            )
        else:
            found = select_sign(changes, leaf.emits)
        state.streams[number, i] = found
    return state.streams[number, i]


def _due(state: StepState, number: int, start: int) -> Ints:
    """Instants at which RSTREAM emits: those of arrivals on the sources of a relation, of SLIDE
    boundaries and of the ends of sessions."""
    relation = state.plan.relations[number]
    if not relation.leaves:
        found = [_due(state, i, start) for i in relation.inputs]
    else:
        found = [_due_to(state, number, i, start) for i in range(len(relation.leaves))]
    return np.concatenate(found)


def _due_to(state: StepState, number: int, i: int, start: int) -> Ints:
    leaf = state.plan.relations[number].leaves[i]
    if leaf.is_table:
        return np.empty(0, np.int64)
    if (number, i) in state.closings:
        return state.closings[number, i]
    if leaf.window is not None:
        since = max(state.ctx.since, start + 1)
        boundaries = leaf.window.boundaries(since, state.ctx.until)
        if boundaries is not None:
            return boundaries
    if leaf.source is None:
        return arrival_instants(state.ctx, state.packs(number, i), state.since(leaf))
    if leaf.emits is None:
        return _due(state, leaf.source, start)
    return stream_of(state, number, i).ts


def _next_boundary(plan: QueryPlan, since: int) -> int:
    """The first instant at which windows make RSTREAM emit."""
    found = (w.boundaries(since, w.settled(since) + 1) for w in plan.windows)
    return min((int(b[0]) for b in found if b is not None and len(b)), default=AFTER_TIME)
