"""The step: one query, one epoch, one task.

`step(task, ...)` reads packs, computes what changes at the instants [since, until), writes its
output and new state as packs and returns their names with a profile. It depends on nothing but its
arguments; running it again writes the same rows under other names.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from thalweg.columns.frame import Changes
from thalweg.columns.netting import net
from thalweg.exec.context import TaskContext, rejects_table
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.relations import RUNS
from thalweg.exec.relations.emit import in_order, output_table, select_sign
from thalweg.exec.relations.relation_step import RelationInStep
from thalweg.exec.relations.rstream import repeated
from thalweg.exec.shared_filters.match_rows import wanted_rows
from thalweg.exec.step_state import StepState
from thalweg.exec.task import StepResult, StepTask
from thalweg.instants import AFTER_TIME
from thalweg.plan import state_slots
from thalweg.plan.logical import EmitKind
from thalweg.store.pack_cache import PackCache


def step(task: StepTask, cache: PackCache, functions: Mapping[str, UserFunction]) -> StepResult:
    ctx = TaskContext(
        cache, functions, task.since, task.until, task.start, dict(task.tactics), task.common
    )
    state = StepState(task, ctx)
    _write_output(state, _output(state))
    rejected = rejects_table(ctx.rejects)
    if rejected is not None:
        state.result.rejects.append(state.write("rejects", rejected))
        ctx.counts["rejected"] += rejected.num_rows
    state.result.counts = dict(ctx.counts)
    state.result.wakes_at = min((at for at in state.wakes if at < AFTER_TIME), default=None)
    state.result.observations = [
        (number, seen)
        for number, (watched, _) in enumerate(task.tactics)
        for seen in ctx.observations.get(watched, ())
    ]
    return state.result


def _output(state: StepState) -> Changes:
    """Compute the output of the answer's relation, after the relations below it."""
    plan = state.plan
    last = len(plan.relations) - 1
    for number in range(last):
        state.changes.append(net(_relation(state, number)))
    if plan.kind is EmitKind.RSTREAM:
        slot = state_slots.slot(last, state_slots.BAG)
        return in_order(plan, repeated(state, last, _relation(state, last), slot))
    changes = _relation(state, last, only_new=plan.kind is EmitKind.ISTREAM)
    if plan.needs_netting:
        changes = net(changes)
    return select_sign(changes, plan.kind)


def _relation(state: StepState, number: int, only_new: bool = False) -> Changes:
    """All changes of a relation; with `only_new`, of vanishing rows only those that netting
    needs."""
    relation = state.plan.relations[number]
    return RUNS[type(relation)](RelationInStep(state, number, only_new), relation)


def _write_output(state: StepState, changes: Changes) -> None:
    roll, counts = state.task.roll, state.ctx.counts
    if roll is None:
        table = output_table(state.plan, changes)
    else:
        table = wanted_rows(state.ctx, roll, changes, state.plan.schema)
    counts["emitted"] += len(changes)
    if state.plan.kind is EmitKind.RELATION:
        vanished = int(np.count_nonzero(changes.signs < 0))
        counts["appeared"] += len(changes) - vanished
        counts["vanished"] += vanished
    if table is not None:
        state.result.outputs.append(state.write("out", table))
