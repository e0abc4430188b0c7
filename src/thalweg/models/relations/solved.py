"""Rows of segments at the instants at which a condition over functions of time holds.

The roots of the condition's equations part time into spans, as functions of a row's content alone:
so a row that appears brings the beginnings and ends of its spans from then on, and one that
vanishes takes them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from thalweg.columns.frame import Changes, concat_changes, empty_frame
from thalweg.columns.sort_codes import numbered_rows
from thalweg.columns.vector import Vector
from thalweg.exec.context import Reject
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.models.functions.conditions import Compare, Condition, Holds, comparisons_in, holding
from thalweg.models.functions.curve import Curves
from thalweg.models.functions.formulas import Rows
from thalweg.models.relations.endings import Ending, ends_of
from thalweg.models.relations.state import DUE, scheduled
from thalweg.models.spans import Both, Not, Spans, combined, within
from thalweg.plan.expr import Expr, columns_of
from thalweg.plan.logical import Field, Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.types import BOOLEAN

MAYBE = "__maybe"
MAYBE_FIELD = Field(MAYBE, BOOLEAN, False)
POINT = "__point"
POINT_FIELD = Field(POINT, BOOLEAN, False)


@dataclass(frozen=True, slots=True)
class Solve(Node):
    """The rows of the input while the condition holds; `curves` are its modeled columns. Where a
    narrower condition says when it is `sure` to hold, a column tells of each row whether it is
    not; another one may mark points, where it holds for a single instant."""

    row_by_row = True
    input: Node
    condition: Condition
    curves: Curves
    sure: Condition | None = None
    marks_points: bool = False
    endings: tuple[Ending, ...] = ()
    text: str = field(compare=False, default="")

    @property
    def schema(self) -> Schema:
        marks = (MAYBE_FIELD,) if self.sure is not None else ()
        return (*self.input.schema, *marks, *((POINT_FIELD,) if self.marks_points else ()))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        known = dict(self.curves)
        conditions = [self.condition] if self.sure is None else [self.condition, self.sure]
        for expr in (e for c in conditions for e in _expressions(c)):
            for name in columns_of(expr):
                yield from known[name].columns if name in known else (name,)


def _expressions(condition: Condition) -> Iterator[Expr]:
    for leaf in comparisons_in(condition):
        if isinstance(leaf, Compare):
            yield leaf.left
            yield leaf.right
        else:
            yield leaf.expr if isinstance(leaf, Holds) else leaf.bound


@dataclass(frozen=True, slots=True)
class Solved(Relation):
    slots = (DUE,)
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    condition: Condition = field()
    curves: Curves = field()
    sure: Condition | None = None
    marks_points: bool = False
    endings: tuple[Ending, ...] = ()
    text: str = field(compare=False, default="")
    """The condition as it is written."""

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def explained(self, show: Describer) -> list[str]:
        rows, written = f"  rows of {show.inputs(self.inputs)}", self.text or str(self.condition)
        if self.sure is None:
            return [f"{rows} while {written}, solved for time to the microsecond"]
        return [f"{rows} while {written} may hold, given the bounds of ERROR", *unsure(self)]


def unsure(solved: Solved | Any) -> list[str]:
    """What is solved where rows may be certain or not."""
    return [
        f"    may hold while {solved.condition}",
        f"    holds for certain while {solved.sure}; the rest has {MAYBE} = true",
    ]


@lowers(Solve)
def _lower(drafts: Drafts, node: Solve) -> int:
    below = drafts.relation(node.input)
    return drafts.append(
        Solved(
            (below,), node.schema, node.condition, node.curves, node.sure, node.marks_points,
            node.endings, node.text,
        )
    )  # fmt: skip


@runs(Solved)
def run_solved(step: RelationStep, relation: Solved) -> Changes:
    (changes,) = step.raw_inputs()
    found = Changes(empty_frame(relation.schema), changes.ts, changes.signs)
    if len(changes):
        found = _held(step, relation, changes)
    return scheduled(step, relation.schema, found)


def _held(step: RelationStep, relation: Solved, changes: Changes) -> Changes:
    """The changes of rows while the condition holds; of rows that appear and vanish in one epoch
    the equations are solved once."""
    numbers, first = numbered_rows(list(changes.frame.columns.values()), len(changes))
    frame = changes.frame.take(first)
    rows = Rows(frame.columns, len(first), dict(relation.curves), step.ctx.functions)
    since, until = beginning(rows), ends_of(frame, relation.endings)
    spans, equations = holding(relation.condition, rows, since, until)
    if relation.sure is None:
        found = _within(relation, changes, spans.of_each(numbers), {})
    else:
        sure, more = holding(relation.sure, rows, since, until)
        equations += more
        found = _parted(relation, changes, spans.of_each(numbers), sure.of_each(numbers))
    step.ctx.counts["equations solved"] += equations
    _note_errors(step, relation, rows, changes, numbers)
    return found


def _parted(relation: Solved, changes: Changes, possible: Spans, sure: Spans) -> Changes:
    """Rows while they are sure, and apart from these while they are only possible."""
    certain, maybe = parted(possible, sure, len(changes))
    parts = []
    for spans, is_maybe in ((certain, False), (maybe, True)):
        parts.append(_within(relation, changes, spans, {MAYBE: is_maybe}))
    return concat_changes(parts, relation.schema)


def parted(possible: Spans, sure: Spans, rows: int) -> tuple[Spans, Spans]:
    """The instants of possible spans that are sure, and the others."""
    since = np.full(rows, BEFORE_TIME, np.int64)
    universe = within(since, np.full(rows, AFTER_TIME, np.int64))
    both = [possible, sure]
    return combined(Both(0, 1), both, universe), combined(Both(0, Not(1)), both, universe)


def _within(relation: Solved, changes: Changes, spans: Spans, marks: Mapping[str, bool]) -> Changes:
    """The changes of rows that live within spans, with marks."""
    found, row = bounded(changes, spans)
    columns = {name: Vector(BOOLEAN, np.full(len(found), mark)) for name, mark in marks.items()}
    if relation.marks_points:
        cut = ends_of(found.frame, relation.endings)
        point = (spans.end[row] - spans.start[row] == 1) & (spans.end[row] < cut)
        columns[POINT] = Vector(BOOLEAN, point)
    return replace(found, frame=found.frame.merged(columns))


def beginning(rows: Rows) -> Ints:
    """The instant since which all functions of a row are known: that of its newest segment. It is a
    property of the content, whatever instant the row appears or vanishes at."""
    starts = dict.fromkeys(c.start for c in rows.curves.values() if c.start in rows.columns)
    found = np.full(rows.length, BEFORE_TIME, np.int64)
    for name in starts:
        found = np.maximum(found, np.asarray(rows.columns[name].data))
    return found


def bounded(changes: Changes, spans: Spans) -> tuple[Changes, Ints]:
    """The changes of rows that live only within spans, and the span of each."""
    lasting = np.flatnonzero(spans.end > changes.ts[spans.row])
    ending = lasting[spans.end[lasting] < AFTER_TIME]
    begins = np.maximum(spans.start[lasting], changes.ts[spans.row[lasting]])
    span = np.concatenate([lasting, ending])
    row = spans.row[span]
    signs = changes.signs[row].copy()
    signs[len(lasting) :] *= -1
    ts = np.concatenate([begins, spans.end[ending]])
    return Changes(changes.frame.take(row), ts, signs), span


def _note_errors(
    step: RelationStep, relation: Solved, rows: Rows, changes: Changes, numbers: Ints
) -> None:
    bad = np.flatnonzero(np.isin(numbers, rows.bad()) & (changes.signs > 0))
    if len(bad) and rows.errors is not None:
        errors, frame = rows.errors[numbers[bad]], changes.frame.take(bad)
        step.ctx.rejects.append(Reject(str(relation.condition), errors, changes.ts[bad], frame))
