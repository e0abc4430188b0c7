"""State shared by the relations of one step: the task, changes so far, and written packs."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from thalweg.columns.frame import Changes
from thalweg.exec.aggregate.group_state import StatePack
from thalweg.exec.context import TaskContext
from thalweg.exec.task import StepResult, StepTask
from thalweg.instants import Ints
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import QueryPlan
from thalweg.store.packs import TIME, Key, PackMeta, arrange, write_pack


class StepState:
    """`changes` are those of the relations that have run; `wakes` instants at which something
    happens without new rows; `closings`, by relation and leaf, those at which waiting rows appear;
    `streams` the streams that relations below leaves emit."""

    keeps_state = True

    def __init__(self, task: StepTask, ctx: TaskContext) -> None:
        self.task = task
        self.ctx = ctx
        self.plan = task.plan
        self.result = StepResult(task.query)
        self.changes: list[Changes] = []
        self.wakes: list[int] = []
        self.closings: dict[tuple[int, int], Ints] = {}
        self.streams: dict[tuple[int, int], Changes] = {}
        self._places = _places(task.plan)

    def packs(self, relation: int, leaf: int) -> tuple[PackMeta, ...]:
        """The packs of a leaf that is a stream or a table."""
        return self.task.packs[self.place(relation, leaf)]

    def place(self, relation: int, leaf: int) -> int:
        """The place of a leaf among those of the plan."""
        return self._places[relation, leaf]

    def stored(self, slot: str) -> tuple[StatePack, ...]:
        return self.task.state.get(slot, ())

    def tables(self, slot: str) -> list[pa.Table]:
        return [self.ctx.cache.open(s.meta.name).table for s in self.stored(slot)]

    def since(self, leaf: Leaf) -> int:
        """The first event time whose rows belong to this epoch and are visible to the query."""
        floor = self.task.floor_of(leaf.relation) if leaf.is_stored else None
        return self.ctx.since if floor is None else max(self.ctx.since, floor.now)

    def write(self, slot: str, table: pa.Table) -> PackMeta:
        name = f"{self.task.prefix}{slot}-{self.task.part}-{uuid.uuid4().hex[:12]}.arrow"
        return write_pack(self.ctx.cache.storage, name, table, self.task.seq)

    def keep(
        self,
        slot: str,
        table: pa.Table | None,
        keys: tuple[Key, ...] = (),
        sides: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """Write new state; `keys` arrange it, so that it can be probed or split otherwise."""
        if table is None or not table.num_rows:
            return
        if keys:
            ts = table.column(TIME).to_numpy()
            table = arrange(table.drop_columns([TIME]), ts, keys)
        meta = self.write(slot, table)
        written = {p: self.write(f"{slot}-{p}", t) for p, t in (sides or {}).items()}
        size = meta.bytes + sum(side.bytes for side in written.values())
        named = tuple((p, side.name) for p, side in written.items())
        self.result.state[slot] = StatePack(replace(meta, bytes=size), named)


def _places(plan: QueryPlan) -> dict[tuple[int, int], int]:
    """The places of the packs of a relation's leaf in the task's list."""
    found: dict[tuple[int, int], int] = {}
    for number, relation in enumerate(plan.relations):
        for i, leaf in enumerate(relation.leaves):
            if leaf.is_stored:
                found[number, i] = len(found)
    return found
