"""SAMPLE: rows of segments at the instants of a grid; and SELECT at single instants.

The grid is anchored in 1970, so that neither cuts nor queries move it. Rows that are there for a
single instant, because an equation holds then, come at that instant. What has changed is added to
the rows as they stand; these are read only in epochs with a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from thalweg.columns.frame import Changes, Frame, concat_changes, concat_frames
from thalweg.columns.vector import Mask, Vector
from thalweg.exec.context import Reject
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.exec.relations.emit import expanded
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import BEFORE_TIME, Ints, format_duration
from thalweg.models.functions.conditions import replaced
from thalweg.models.functions.curve import Curves
from thalweg.models.functions.formulas import Rows, derivatives_in
from thalweg.models.functions.time_functions import both
from thalweg.models.relations.mapped import named
from thalweg.models.relations.solved import POINT
from thalweg.models.relations.state import ALIVE, all_alive, keep_alive
from thalweg.plan.expr import Column, Expr, columns_of, walk
from thalweg.plan.logical import Named, Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.types import DOUBLE, TIMESTAMP


@dataclass(frozen=True, slots=True)
class Sample(Node):
    """Every row of the input, at each multiple of any of the periods at which it is there."""

    row_by_row = True
    input: Node
    periods: tuple[int, ...]

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Sampled(Relation):
    slots = (ALIVE,)
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    periods: tuple[int, ...]

    @property
    def only_grows(self) -> bool:
        return True

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def explained(self, show: Describer) -> list[str]:
        periods = " and of ".join(map(format_duration, self.periods))
        return [f"  samples of {show.inputs(self.inputs)} at the multiples of {periods} since 1970"]


@lowers(Sample)
def _lower(drafts: Drafts, node: Sample) -> int:
    return drafts.append(Sampled((drafts.relation(node.input),), node.schema, node.periods))


@runs(Sampled)
def run_sampled(step: RelationStep, relation: Sampled) -> Changes:
    (changes,) = step.inputs()
    mark = changes.frame.columns.get(POINT)
    if mark is None:
        return _gridded(step, relation, changes)
    points = np.asarray(mark.data)
    alone = changes.take(np.flatnonzero(points & (changes.signs > 0)))
    others = changes.take(np.flatnonzero(~points))
    return concat_changes([_gridded(step, relation, others), alone], relation.schema)


def _gridded(step: RelationStep, relation: Sampled, changes: Changes) -> Changes:
    instants = _instants(step, relation.periods)
    keep_alive(step, relation.schema, changes, ())
    if len(changes) or step.stored(ALIVE):
        step.wake(min(-(-step.ctx.until // p) * p for p in relation.periods))
    if not len(instants):
        return changes.take(np.empty(0, np.int64))
    before = all_alive(step, relation.schema)
    frame = concat_frames([before.frame, changes.frame], relation.schema)
    ts = np.concatenate([np.full(before.frame.length, BEFORE_TIME), changes.ts])
    weights = np.concatenate([before.weights, changes.signs.astype(np.int64)])
    found, _ = expanded(frame, ts, weights, instants)
    return found


def _instants(step: RelationStep, periods: tuple[int, ...]) -> Ints:
    """The instants of the grids in this epoch, from the query's first instant on."""
    start = step.ctx.start
    if start is None:
        return np.empty(0, np.int64)
    since = max(step.ctx.since, start)
    grids = [np.arange(-(-since // p) * p, step.ctx.until, p, dtype=np.int64) for p in periods]
    return grids[0] if len(grids) == 1 else np.unique(np.concatenate(grids))


# -- SELECT at single instants ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evaluate(Node):
    """The columns of a SELECT over rows that are there at single instants, or of interest at those
    in a column: modeled columns are numbers then, and any expression may use them."""

    row_by_row = True
    input: Node
    columns: tuple[Named, ...]
    curves: Curves
    at: str = ""

    @property
    def schema(self) -> Schema:
        return tuple(c.field() for c in self.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        known = dict(self.curves)
        for column in self.columns:
            for name in columns_of(column.expr):
                yield from known[name].columns if name in known else (name,)


@dataclass(frozen=True, slots=True)
class Evaluated(Relation):
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    columns: tuple[Named, ...]
    curves: Curves
    at: str = ""
    called: str | None = None

    @property
    def only_grows(self) -> bool:
        return True

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.ANY),)

    def shows(self, place: int, column: str) -> frozenset[str]:
        return frozenset(c.name for c in self.columns if str(c.expr) == column)

    def explained(self, show: Describer) -> list[str]:
        at = self.at or "the instant of each row"
        return [f"  {named(self.columns)} of {show.inputs(self.inputs)}, at {at}"]


@lowers(Evaluate)
def _lower_evaluate(drafts: Drafts, node: Evaluate) -> int:
    below = drafts.relation(node.input)
    called = "predictions" if node.at else "RSTREAM" if isinstance(node.input, Sample) else None
    return drafts.append(
        Evaluated((below,), node.schema, node.columns, node.curves, node.at, called)
    )


@runs(Evaluated)
def run_evaluated(step: RelationStep, relation: Evaluated) -> Changes:
    (changes,) = step.raw_inputs()
    if relation.at:
        at, known = (
            changes.frame.columns[relation.at].data,
            changes.frame.columns[relation.at].valid,
        )
    else:  # a row is there for one tick
        at, known = np.where(changes.signs > 0, changes.ts, changes.ts - 1), None
    columns = valued(step, changes.frame, relation.curves, at, known)
    named, derived = without_derivatives(relation.columns)
    rows = Rows(changes.frame.columns, len(changes), dict(relation.curves), step.ctx.functions)
    for name, call in derived.items():
        derivative = rows.formula(call)
        columns[name] = Vector(DOUBLE, derivative.at(at), both(derivative.valid, known))
    found = {c.name: evaluate(c.expr, columns, len(changes), step.ctx.functions) for c in named}
    good = np.ones(len(changes), np.bool_)
    for name, value in found.items():
        if value.errors is None:
            continue
        bad = np.flatnonzero((value.errors != 0) & good)
        good[bad] = False
        bad = bad[changes.signs[bad] > 0]
        rejected = Reject(name, value.errors[bad], changes.ts[bad], changes.frame.take(bad))
        step.ctx.rejects.append(rejected)
    whole = Changes(Frame(found, len(changes)), changes.ts, changes.signs)
    return whole if good.all() else whole.take(np.flatnonzero(good))


def without_derivatives(
    columns: tuple[Named, ...],
) -> tuple[tuple[Named, ...], dict[str, Expr]]:
    """Columns in which derivatives are columns, and what these are."""
    calls = dict.fromkeys(e for c in columns for e in derivatives_in(c.expr))
    for call in sorted(calls, key=lambda e: -sum(1 for _ in walk(e))):  # outer ones first
        column = Column(DOUBLE, True, str(call))
        columns = tuple(replace(c, expr=replaced(c.expr, call, column)) for c in columns)
    return columns, {str(call): call for call in calls}


def valued(
    step: RelationStep, frame: Frame, curves: Curves, at: Ints, known: Mask | None
) -> dict[str, Vector]:
    """The columns of rows, modeled ones by their values at an instant of each row, if it is
    known."""
    columns = dict(frame.columns)
    rows = Rows(frame.columns, frame.length, dict(curves), step.ctx.functions)
    for name, curve in curves:
        if curve.is_instant:
            columns[name] = Vector(TIMESTAMP, at, known)
        elif curve.start in frame.columns:
            columns[name] = Vector(DOUBLE, rows.at(curve, at), both(columns[name].valid, known))
    return columns
