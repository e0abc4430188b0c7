"""Rows of segments at the instants at which a condition over functions of time holds.

The roots of the condition's equations part time into spans, as functions of a row's content alone:
so a row that appears brings the beginnings and ends of its spans from then on, and one that
vanishes takes them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Changes
from thalweg.exec.context import Reject
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.models.functions.conditions import Compare, Condition, Holds, comparisons_in, holding
from thalweg.models.functions.curve import Curves
from thalweg.models.functions.formulas import Rows
from thalweg.models.relations.state import DUE, scheduled
from thalweg.plan.expr import Expr, columns_of
from thalweg.plan.logical import Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together


@dataclass(frozen=True, slots=True)
class Solve(Node):
    """The rows of the input while the condition holds; `curves` are its modeled columns."""

    input: Node
    condition: Condition
    curves: Curves

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        known = dict(self.curves)
        for expr in _expressions(self.condition):
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
    condition: Condition
    curves: Curves

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def explained(self, show: Describer) -> list[str]:
        return [f"  rows of {show.inputs(self.inputs)} while {self.condition}, solved for time"]


@lowers(Solve)
def _lower(drafts: Drafts, node: Solve) -> int:
    below = drafts.relation(node.input)
    return drafts.append(Solved((below,), node.schema, node.condition, node.curves))


@runs(Solved)
def run_solved(step: RelationStep, relation: Solved) -> Changes:
    (changes,) = step.inputs()
    found = changes
    if len(changes):
        rows = Rows(changes.frame.columns, len(changes), dict(relation.curves), step.ctx.functions)
        spans, equations = holding(relation.condition, rows, beginning(rows, changes.ts))
        step.ctx.counts["equations solved"] += equations
        _note_errors(step, relation, rows, changes)
        found = bounded(changes, spans.row, spans.start, spans.end)
    return scheduled(step, relation.schema, found)


def beginning(rows: Rows, ts: Ints) -> Ints:
    """The instant since which all functions of a row are known: that of its newest segment. It is a
    property of the content, whatever instant the row appears or vanishes at."""
    starts = dict.fromkeys(c.start for c in rows.curves.values() if c.start in rows.columns)
    found = np.full(rows.length, BEFORE_TIME, np.int64)
    for name in starts:
        found = np.maximum(found, np.asarray(rows.columns[name].data))
    return found


def bounded(changes: Changes, row: Ints, start: Ints, end: Ints) -> Changes:
    """The changes of rows that live only within spans."""
    lasting = np.flatnonzero(end > changes.ts[row])
    row, start, end = row[lasting], start[lasting], end[lasting]
    ending = np.flatnonzero(end < AFTER_TIME)
    rows = np.concatenate([row, row[ending]])
    ts = np.concatenate([np.maximum(start, changes.ts[row]), end[ending]])
    signs = np.concatenate([changes.signs[row], -changes.signs[row[ending]]])
    return Changes(changes.frame.take(rows), ts, signs)


def _note_errors(step: RelationStep, relation: Solved, rows: Rows, changes: Changes) -> None:
    bad = rows.bad()
    bad = bad[changes.signs[bad] > 0]
    if len(bad) and rows.errors is not None:
        reject = Reject(
            str(relation.condition), rows.errors[bad], changes.ts[bad], changes.frame.take(bad)
        )
        step.ctx.rejects.append(reject)
