"""One query, one epoch, one task: the step.

`step(task, ...)` reads packs, computes what changes at the instants [since, until), writes its
output and new state as packs and returns their names with a profile. It depends on nothing but
its arguments; running it again writes the same rows under other names.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from thalweg.exec.aggregate import aggregate
from thalweg.exec.context import TaskContext, rejects_table
from thalweg.exec.emit import (
    emission_instants,
    output_table,
    projected,
    repeat,
    revised,
    select_sign,
)
from thalweg.exec.expressions import UserFunction
from thalweg.exec.frame import Changes, concat_changes
from thalweg.exec.groupstate import StatePack
from thalweg.exec.leaf import InstantSet, LeafReader, Share, TimeLeaf
from thalweg.exec.mjoin import Joined
from thalweg.exec.netting import net
from thalweg.exec.rowleaf import RowLeaf
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan, RoutingKind
from thalweg.store.packs import FULL_RANGE, Key, PackCache, PackMeta, arrange, write_pack


@dataclass(frozen=True, slots=True)
class StepTask:
    """Everything a step needs to know.

    `packs` are per leaf; `state` maps slots (`groups`, `bag`, `leaf0`, ...) to packs, oldest
    first. `start` is the query's first instant, None while there is none.
    """

    query: str
    plan: QueryPlan
    since: int
    until: int
    start: int | None
    packs: tuple[tuple[PackMeta, ...], ...]
    state: Mapping[str, tuple[StatePack, ...]]
    low: int = FULL_RANGE[0]
    high: int = FULL_RANGE[1]
    part: int = 0
    parts: int = 1
    prefix: str = ""
    seq: int = 0


@dataclass(slots=True)
class StepResult:
    """What a step wrote and counted. `state` lists new packs per slot; slots in `replaced` drop
    what this task's share held before. `error` is set when the query's own code failed."""

    query: str
    outputs: list[PackMeta] = field(default_factory=list)
    rejects: list[PackMeta] = field(default_factory=list)
    state: dict[str, StatePack] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    error: str | None = None


def step(task: StepTask, cache: PackCache, functions: Mapping[str, UserFunction]) -> StepResult:
    ctx = TaskContext(cache, functions, task.since, task.until)
    run = _Step(task, ctx)
    changes = run.output_changes()
    run.write_output(changes)
    rejected = rejects_table(ctx.rejects)
    if rejected is not None:
        run.result.rejects.append(run.write("rejects", rejected))
        ctx.counts["rejected"] += rejected.num_rows
    run.result.counts = dict(ctx.counts)
    return run.result


class _Step:
    def __init__(self, task: StepTask, ctx: TaskContext) -> None:
        self.task = task
        self.ctx = ctx
        self.plan = task.plan
        self.result = StepResult(task.query)
        self.leaves = [self._leaf(i) for i in range(len(self.plan.leaves))]
        self.joined = Joined(ctx, self.plan, self.leaves)

    def _leaf(self, i: int) -> LeafReader:
        leaf, task = self.plan.leaves[i], self.task
        share = self._share(i)
        if leaf.is_row_window:
            slot = f"leaf{i}"
            stored = [s.meta for s in task.state.get(slot, ())]
            rows = RowLeaf(self.ctx, leaf, i, task.packs[i], share, stored)
            self._keep(slot, rows.state(), share.key)
            return rows
        return TimeLeaf(self.ctx, leaf, i, task.packs[i], share)

    def _share(self, i: int) -> Share:
        key: Key = self.plan.routing.columns[i]
        if self.plan.leaves[i].is_table:
            return Share(())
        if self.plan.routing.kind is RoutingKind.KEYS:
            return Share(key, self.task.low, self.task.high)
        if self.plan.routing.kind is RoutingKind.ANY:
            return Share((), part=self.task.part, parts=self.task.parts)
        return Share(())

    # -- the relation's changes --------------------------------------------------------------

    def output_changes(self) -> Changes:
        plan = self.plan
        changes = self._grouped() if plan.grouping is not None else self._plain()
        if plan.kind is EmitKind.RSTREAM:
            return self._repeated(changes)
        if plan.needs_netting:
            changes = net(changes)
        return select_sign(changes, plan.kind)

    def _plain(self) -> Changes:
        ctx, plan = self.ctx, self.plan
        appear = projected(ctx, plan, self.joined.arrivals(), note=True)
        if plan.kind is EmitKind.ISTREAM:
            if not plan.needs_netting:
                return appear
            at = InstantSet(appear.ts)
            vanish = projected(ctx, plan, self.joined.departures(at), note=False)
        else:
            vanish = projected(ctx, plan, self.joined.departures(), note=False)
        return concat_changes([appear, vanish], plan.schema)

    def _grouped(self) -> Changes:
        plan, task = self.plan, self.task
        assert plan.grouping is not None
        needs_ends = any(a.call.function in ("min", "max") for a in plan.grouping.aggregates)
        known = needs_ends and not any(leaf.is_row_window for leaf in plan.leaves)
        appear = self.joined.arrivals(want_ends=known)
        vanish = self.joined.departures()
        if known:
            if appear.ends is None:
                appear.ends = np.empty(0, np.int64)
            vanish.ends = np.zeros(len(vanish), np.int64)
        changes = concat_changes([appear, vanish], self.joined.schema)
        if known and changes.ends is None:
            changes.ends = np.zeros(len(changes), np.int64)
        begins = task.start is not None and task.since <= task.start < task.until
        found = aggregate(
            self.ctx,
            plan.grouping,
            changes,
            task.state.get("groups", ()),
            task.start if begins else None,
        )
        self._keep("groups", found.state, None, found.sides)
        return revised(self.ctx, plan, found.revisions)

    def _repeated(self, changes: Changes) -> Changes:
        task = self.task
        if task.start is None:
            return changes.take(np.empty(0, np.int64))
        stored = [self.ctx.cache.open(s.meta.name).table for s in task.state.get("bag", ())]
        instants = emission_instants(self.ctx, self.plan, task.packs, task.start)
        emitted, bag = repeat(self.plan, stored, changes, instants)
        self._keep("bag", bag.table, None)
        return emitted

    # -- writing -----------------------------------------------------------------------------

    def write_output(self, changes: Changes) -> None:
        table = output_table(self.plan, changes)
        self.ctx.counts["emitted"] += len(changes)
        if table is not None:
            self.result.outputs.append(self.write("out", table))

    def write(self, slot: str, table: pa.Table) -> PackMeta:
        name = f"{self.task.prefix}{slot}-{self.task.part}-{uuid.uuid4().hex[:12]}.arrow"
        return write_pack(self.ctx.cache.storage, name, table, self.task.seq)

    def _keep(
        self,
        slot: str,
        table: pa.Table | None,
        key: Key | None,
        sides: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """Write new state; `key` arranges it so that another split of tasks can slice it."""
        if table is None or not table.num_rows:
            return
        if key:
            ts = table.column("__ts").to_numpy()
            table = arrange(table.drop_columns(["__ts"]), ts, [key])
        meta = self.write(slot, table)
        written = tuple((p, self.write(f"{slot}-{p}", t).name) for p, t in (sides or {}).items())
        self.result.state[slot] = StatePack(meta, written)
