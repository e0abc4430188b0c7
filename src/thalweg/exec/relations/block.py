"""A block: its leaves joined, then grouped or projected."""

from __future__ import annotations

import numpy as np

from thalweg.columns.frame import Changes, concat_changes
from thalweg.columns.instant_set import InstantSet
from thalweg.exec.aggregate.group_by import aggregate
from thalweg.exec.joins.cache.cache_files import Keeper
from thalweg.exec.joins.nway_join import Joined
from thalweg.exec.relations.emit import projected, revised
from thalweg.exec.relations.protocol import runs
from thalweg.exec.relations.relation_step import RelationInStep
from thalweg.plan import state_slots
from thalweg.plan.leaf import Leaf
from thalweg.plan.relations.block import Block


@runs(Block)
def run_block(step: RelationInStep, block: Block) -> Changes:
    task, number = step.state.task, step.number
    keeper = Keeper(
        step.ctx, (task.query, number, task.ranges, task.part, task.parts), not task.floors
    )
    joined = Joined(step.ctx, number, block, step.leaves(block), keeper)
    changes = (
        _plain(step, block, joined) if block.grouping is None else _grouped(step, block, joined)
    )
    joined.settle()
    return changes


def _plain(step: RelationInStep, block: Block, joined: Joined) -> Changes:
    appear = projected(step.ctx, block, joined.arrivals(), note=True)
    if step.only_new and not step.state.plan.needs_netting:
        return appear
    at = InstantSet(appear.ts) if step.only_new else None
    vanish = projected(step.ctx, block, joined.departures(at), note=False)
    return concat_changes([appear, vanish], block.schema)


def _grouped(step: RelationInStep, block: Block, joined: Joined) -> Changes:
    assert block.grouping is not None
    needs_ends = any(a.call.kind.wants_ends for a in block.grouping.aggregates)
    known = needs_ends and all(_has_ends(leaf) for leaf in block.leaves)
    appear = joined.arrivals(want_ends=known)
    vanish = joined.departures()
    if known:
        if appear.ends is None:
            appear.ends = np.empty(0, np.int64)
        vanish.ends = np.zeros(len(vanish), np.int64)
    changes = concat_changes([appear, vanish], joined.schema)
    if known and changes.ends is None:
        changes.ends = np.zeros(len(changes), np.int64)
    start = step.state.task.start if step.ctx.begins else None
    found = aggregate(step.ctx, block.grouping, changes, step.stored(state_slots.GROUPS), start)
    slot = state_slots.slot(step.number, state_slots.GROUPS)
    step.state.keep(slot, found.state, sides=found.sides)
    skip_old = step.only_new and not step.state.plan.needs_netting
    return revised(step.ctx, block, found.revisions, skip_old)


def _has_ends(leaf: Leaf) -> bool:
    """Whether a row's end is known when it appears."""
    stays = leaf.keeps_rows or leaf.changes
    return not stays and (leaf.source is None or leaf.emits is not None)
