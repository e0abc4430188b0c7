"""Segments as rows of the answer: the value of each modeled column at the row's start, and
`__model`, which has the functions themselves.

A row that vanishes is the row that appeared: its start is remembered with its content.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from thalweg.aggregates.accumulator import running_counts
from thalweg.columns.frame import Changes, Frame
from thalweg.columns.runs import sort_into_runs
from thalweg.columns.vector import Vector
from thalweg.exec.aggregate.group_by import normalized
from thalweg.exec.aggregate.group_state import look_up, state_table
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import Ints
from thalweg.models.functions.curve import START, Curves
from thalweg.models.functions.formulas import Rows
from thalweg.models.relations.model_column import MODEL, model_field, models_of, values_at
from thalweg.plan.logical import Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.state_slots import SlotKind, SlotRule
from thalweg.plan.types import DOUBLE, TIMESTAMP

STARTS = SlotKind("starts", SlotRule.NEWEST, "since when rows are there")


@dataclass(frozen=True, slots=True)
class Show(Node):
    """The answer: plain columns as they are, modeled ones by their values and by `__model`."""

    input: Node
    curves: Curves

    @property
    def schema(self) -> Schema:
        return shown_schema(self.input.schema, self.curves)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        yield from (f.name for f in self.input.schema)

    def recorded(self) -> Node | None:
        """Segments are kept as they are; square roots have no form in which they could be."""
        return None if any(c.is_root for _, c in self.curves) else self.input

    def answered(self, rows: pa.Table, instant: int) -> pa.Table:
        """Modeled columns have their values at the instant asked for."""
        return values_at(rows, self.curves, instant)


def shown_schema(schema: Schema, curves: Curves) -> Schema:
    hidden = {n for _, c in curves for n in c.hidden} | {START}
    plain = tuple(f for f in schema if f.name not in hidden)
    return (*plain, *model_field(curves))


@dataclass(frozen=True, slots=True)
class Shown(Relation):
    slots = (STARTS,)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    curves: Curves
    content: tuple[str, ...]
    """The columns of the input, by which a row that vanishes is known."""

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def explained(self, show: Describer) -> list[str]:
        names = ", ".join(name for name, _ in self.curves)
        return [
            f"  segments of {show.inputs(self.inputs)} as rows",
            f"    {names}: the value where the row begins; {MODEL}: the start and the coefficients",
        ]


@lowers(Show)
def _lower(drafts: Drafts, node: Show) -> int:
    below = drafts.relation(node.input)
    content = tuple(f.name for f in node.input.schema)
    return drafts.append(Shown((below,), node.schema, node.curves, content))


@runs(Shown)
def run_shown(step: RelationStep, relation: Shown) -> Changes:
    (changes,) = step.raw_inputs()
    if step.only_new:
        changes = changes.take(np.flatnonzero(changes.signs > 0))
        since = changes.ts
    else:
        since = _since(step, relation, changes)
    frame = changes.frame
    rows = Rows(frame.columns, len(changes), dict(relation.curves), step.ctx.functions)
    columns = {f.name: frame.columns[f.name] for f in relation.schema if f.name != MODEL}
    for name, curve in relation.curves:
        if curve.is_instant:
            columns[name] = Vector(TIMESTAMP, since)
        else:
            columns[name] = Vector(DOUBLE, rows.at(curve, since), columns[name].valid)
    if relation.schema[-1].name == MODEL:
        columns[MODEL] = models_of(frame, relation.curves, relation.schema[-1].type)
    return replace(changes, frame=Frame(columns, len(changes)))


def _since(step: RelationStep, relation: Shown, changes: Changes) -> Ints:
    """The instant since which each row is there, or was until it vanished."""
    columns = [normalized(changes.frame.columns[c]) for c in relation.content]
    runs_ = sort_into_runs(columns, changes.ts)
    if not runs_.groups:
        return changes.ts
    loaded = look_up(step.ctx, step.stored(STARTS), runs_, {})
    counts = running_counts(changes.signs[runs_.order], runs_, loaded.ints("count"))
    before, after = counts[: runs_.groups], counts[runs_.groups :]
    previous = np.empty(runs_.runs, np.int64)
    previous[1:] = after[:-1]
    previous[runs_.heads] = before
    fresh = previous <= 0
    # the newest fresh run of the group up to each run; before it, what is stored
    place = np.maximum.accumulate(np.where(fresh, np.arange(runs_.runs), -1))
    own = place >= runs_.heads[runs_.group_of_run]
    stored = loaded.ints("since")[runs_.group_of_run]
    since = np.where(own, runs_.instants[place], stored)
    last = runs_.last_versions
    table = state_table(
        runs_, counts[last], {"count": counts[last], "since": since[last - runs_.groups]}
    )
    step.keep(STARTS, table)
    found = np.empty(len(changes), np.int64)
    found[runs_.order] = since[runs_.run]
    return found
