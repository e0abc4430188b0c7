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
from thalweg.models.functions.curve import START, Curve, Curves
from thalweg.models.functions.formulas import Rows
from thalweg.models.functions.time_functions import TimeFunctions
from thalweg.models.polynomials import Floats
from thalweg.plan.logical import Field, Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.state_slots import SlotKind, SlotRule
from thalweg.plan.types import DOUBLE, TIMESTAMP, StructType, array_of, struct_of

MODEL = "__model"
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
        for name, curve in self.curves:
            values = pa.array(_values_at(rows.column(MODEL), name, curve, instant))
            rows = rows.set_column(rows.column_names.index(name), name, values)
        return rows


def _values_at(models: pa.ChunkedArray, name: str, curve: Curve, instant: int) -> Floats:
    structs = models.combine_chunks()
    starts = structs.field("start").cast(pa.int64()).to_numpy()

    def part(field: str, width: int) -> Floats:
        lists = structs.field(field)
        values = lists.flatten().to_numpy().reshape(-1, width)
        found = np.full((len(lists), width), np.nan)
        found[lists.is_valid().to_numpy(zero_copy_only=False)] = values
        return found

    shown = f"{name}_squared" if curve.is_root else name
    bottom = part(f"{shown}_divisor", len(curve.divisor)) if curve.divisor else None
    functions = TimeFunctions(part(shown, len(curve.coefficients)), starts, bottom)
    values = functions.at(np.full(len(starts), instant))
    return np.sqrt(np.maximum(values, 0.0)) if curve.is_root else values


def shown_schema(schema: Schema, curves: Curves) -> Schema:
    hidden = {n for _, c in curves for n in c.hidden} | {START}
    plain = tuple(f for f in schema if f.name not in hidden)
    parts = [("start", TIMESTAMP)]
    for name, curve in curves:
        shown = f"{name}_squared" if curve.is_root else name
        parts.append((shown, array_of(DOUBLE)))
        if curve.divisor:
            parts.append((f"{shown}_divisor", array_of(DOUBLE)))
    return (*plain, Field(MODEL, struct_of(*parts), False))


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
    columns = {f.name: frame.columns[f.name] for f in relation.schema[:-1]}
    for name, curve in relation.curves:
        columns[name] = Vector(DOUBLE, rows.at(curve, since), columns[name].valid)
    columns[MODEL] = _model(relation, frame)
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


def _model(relation: Shown, frame: Frame) -> Vector:
    """Reference instants and coefficients."""
    parts = [pa.array(np.asarray(frame.columns[START].data), pa.timestamp("us", "UTC"))]
    for _, curve in relation.curves:
        parts.append(_arrays(frame, curve.coefficients))
        if curve.divisor:
            parts.append(_arrays(frame, curve.divisor))
    dtype = relation.schema[-1].type
    assert isinstance(dtype, StructType)
    names = [name for name, _ in dtype.fields]
    return Vector(dtype, pa.StructArray.from_arrays(parts, names))


def _arrays(frame: Frame, names: tuple[str, ...]) -> pa.Array:
    values = np.stack([np.asarray(frame.columns[n].data) for n in names], axis=1)
    offsets = np.arange(0, values.size + 1, len(names), dtype=np.int32)
    arrays = pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))
    valid = frame.columns[names[0]].valid
    if valid is None:
        return arrays
    rows = np.arange(frame.length)
    return arrays.take(pa.array(rows, mask=~valid))
