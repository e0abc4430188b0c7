"""Answers of many plans over the same rows, all at once and without state.

A relation that several plans have in common, by its own value and those of its inputs, is computed
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from thalweg.columns.frame import Changes
from thalweg.columns.netting import net
from thalweg.exec.context import TaskContext
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.leaves.task_share import task_ranges
from thalweg.exec.relations import RUNS
from thalweg.exec.relations.emit import in_order, output_table, select_sign
from thalweg.exec.relations.relation_step import RelationInStep
from thalweg.exec.relations.rstream import repeated
from thalweg.exec.step_state import StepState
from thalweg.exec.task import StepTask
from thalweg.instants import BEFORE_TIME
from thalweg.plan import state_slots
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.protocol import Relation
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import Key, PackMeta


class _Once(StepState):
    """State of a step after which there is none: nothing is kept."""

    keeps_state = False

    def keep(
        self,
        slot: str,
        table: pa.Table | None,
        keys: tuple[Key, ...] = (),
        sides: Mapping[str, pa.Table] | None = None,
    ) -> None:
        return


def _waits(relation: Relation) -> bool:
    """Whether it also says at which instants rows appear that have waited, so that each plan must
    run it."""
    return any(leaf.keeps_rows and leaf.ordered_window.waits for leaf in relation.leaves)


@dataclass
class EvaluateOnce:
    """Evaluates plans over the rows of packs in the instants before `until`; `start` is the first
    instant."""

    cache: PackCache
    functions: Mapping[str, UserFunction]
    start: int
    _ids: dict[Any, int] = field(default_factory=dict)
    _known: dict[int, Changes] = field(default_factory=dict)
    computed: int = 0
    """How many relations were computed; the others were known."""
    largest: int = 0
    """How many changes the largest one has of those that the last plan computed."""
    rejected: int = 0
    """How many rows erred in what was computed."""

    def answer(
        self, plan: QueryPlan, packs: Sequence[tuple[PackMeta, ...]], until: int
    ) -> pa.Table | None:
        """What the plan emits, with `__ts` (µs), and `__sign` for relations."""
        ranges = task_ranges(plan, 1)[0]
        task = StepTask("sweep", plan, BEFORE_TIME, until, self.start, tuple(packs), {}, ranges)
        context = TaskContext(self.cache, self.functions, BEFORE_TIME, until, self.start)
        state = _Once(task, context)
        ids: list[int] = []
        self.largest = 0
        last = len(plan.relations) - 1
        for number, relation in enumerate(plan.relations):
            only_new = number == last and plan.kind is EmitKind.ISTREAM
            key = (relation, tuple(ids[i] for i in relation.inputs), until, only_new)
            ids.append(self._ids.setdefault(key, len(self._ids)))
            if ids[-1] not in self._known or _waits(relation):
                step = RelationInStep(state, number, only_new)
                found = RUNS[type(relation)](step, relation)
                self._known[ids[-1]] = found if number == last else net(found)
                self.computed += 1
                self.largest = max(self.largest, len(found))
            state.changes.append(self._known[ids[-1]])
        emitted = self._emitted(state, plan, state.changes[last])
        self.rejected += sum(len(r.ts) for r in context.rejects)
        return output_table(plan, emitted)

    def _emitted(self, state: StepState, plan: QueryPlan, changes: Changes) -> Changes:
        last = len(plan.relations) - 1
        if plan.kind is EmitKind.RSTREAM:
            slot = state_slots.slot(last, state_slots.BAG)
            return in_order(plan, repeated(state, last, changes, slot))
        return select_sign(net(changes) if plan.needs_netting else changes, plan.kind)
