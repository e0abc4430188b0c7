"""DISTINCT, EXCEPT, INTERSECT and tests for a partner: rows by their counts.

Rows of equal content are one group; its state is their count in each input. A rule turns the counts
into the row's multiplicity, and changes of it from one run to the next are emitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.aggregates.accumulator import running_counts
from thalweg.columns.frame import Changes, Frame, concat_changes
from thalweg.columns.runs import sort_into_runs
from thalweg.exec.aggregate.group_by import normalized, shifted
from thalweg.exec.aggregate.group_state import StatePack, look_up, state_table
from thalweg.exec.context import TaskContext
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import Ints
from thalweg.plan.logical import CountRule, Schema
from thalweg.plan.relations.set_operations import Counted
from thalweg.plan.state_slots import COUNTS

Rule = Callable[[Sequence[Ints]], Ints]

RULES: dict[CountRule, Rule] = {
    CountRule.DISTINCT: lambda c: (c[0] > 0).astype(np.int64),
    CountRule.EXCEPT: lambda c: ((c[0] > 0) & (c[1] == 0)).astype(np.int64),
    CountRule.EXCEPT_ALL: lambda c: np.maximum(c[0] - c[1], 0),
    CountRule.INTERSECT: lambda c: ((c[0] > 0) & (c[1] > 0)).astype(np.int64),
    CountRule.INTERSECT_ALL: lambda c: np.minimum(c[0], c[1]),
    CountRule.SEMI: lambda c: np.where(c[1] > 0, c[0], 0),
    CountRule.ANTI: lambda c: np.where(c[1] == 0, c[0], 0),
}


@dataclass(slots=True)
class CountResult:
    changes: Changes
    state: pa.Table | None


def count(
    ctx: TaskContext,
    rule: CountRule,
    inputs: Sequence[Changes],
    schema: Schema,
    packs: Sequence[StatePack],
) -> CountResult:
    """Changes of the counted relation from changes of the inputs (columns named as in `schema`)."""
    side = np.repeat(np.arange(len(inputs)), [len(c) for c in inputs])
    changes = concat_changes(inputs, schema)
    columns = {n: normalized(v) for n, v in changes.frame.columns.items()}
    runs = sort_into_runs(list(columns.values()), changes.ts)
    if not runs.groups:
        return CountResult(changes, None)
    loaded = look_up(ctx, packs, runs, {})
    counts = [
        running_counts(
            np.where(side == s, changes.signs, np.int8(0))[runs.order], runs, loaded.ints(f"c{s}")
        )
        for s in range(len(inputs))
    ]
    there = RULES[rule](counts)
    delta = there[runs.groups :] - shifted(there, runs.heads, runs.groups)
    changed = np.repeat(np.flatnonzero(delta), np.abs(delta[delta != 0]))
    rows = runs.example[runs.group_of_run[changed]]
    frame = Frame(columns, len(changes)).take(rows)
    signs = np.sign(delta[changed]).astype(np.int8)
    last = runs.last_versions
    kept = {f"c{s}": c[last] for s, c in enumerate(counts)}
    state = state_table(runs, np.sum(list(kept.values()), axis=0), kept)
    return CountResult(Changes(frame, runs.instants[changed], signs), state)


@runs(Counted)
def run_counted(step: RelationStep, relation: Counted) -> Changes:
    found = count(step.ctx, relation.rule, step.inputs(), relation.schema, step.stored(COUNTS))
    step.keep(COUNTS, found.state)
    return found.changes
