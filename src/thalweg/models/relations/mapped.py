"""SELECT over segments: new functions of time from old ones, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Changes, Frame
from thalweg.columns.vector import Vector
from thalweg.exec.context import Reject
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.models.functions.curve import START, Curve, Curves, curve_named, fields_of, start_field
from thalweg.models.functions.formulas import Rows, form_of, varies
from thalweg.models.functions.time_functions import TimeFunctions
from thalweg.models.polynomials import padded
from thalweg.models.relations.solved import beginning
from thalweg.plan.expr import Column, Expr, columns_of
from thalweg.plan.logical import Field, Named, Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.types import BIGINT, DOUBLE, TIMESTAMP


@dataclass(frozen=True, slots=True)
class Map(Node):
    """The columns of a SELECT; `curves` are the modeled columns of the input."""

    row_by_row = True
    input: Node
    columns: tuple[Named, ...]
    curves: Curves

    @property
    def made(self) -> Curves:
        """The columns that are functions of time."""
        return made_by(self.columns, self.curves)

    @property
    def schema(self) -> Schema:
        made = dict(self.made)
        fields: list[Schema] = []
        for column in self.columns:
            known = made.get(column.name)
            plain = Field(column.name, column.expr.type)  # modeled columns are those without NULL
            is_plain = known is None or known.is_instant
            fields.append((plain,) if known is None or is_plain else fields_of(known))
        return (*(f for some in fields for f in some), start_field(START))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        known = dict(self.curves)
        for column in self.columns:
            for name in columns_of(column.expr):
                yield from known[name].columns if name in known else (name,)
        yield from dict.fromkeys(c.start for c in known.values() if c.start)


def made_by(columns: tuple[Named, ...], curves: Curves) -> Curves:
    known = dict(curves)
    found = []
    for column in columns:
        if is_instant(column.expr, known):
            found.append((column.name, Curve((column.name,))))
        elif varies(column.expr, known):
            form = form_of(column.expr, known)
            curve = curve_named(column.name, form.top, START, form.bottom, is_root=form.is_root)
            found.append((column.name, curve))
    return tuple(found)


def is_instant(expr: Expr, known: Mapping[str, Curve]) -> bool:
    """Whether it is the instant itself."""
    return isinstance(expr, Column) and expr.name in known and known[expr.name].is_instant


@dataclass(frozen=True, slots=True)
class Mapped(Relation):
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    columns: tuple[Named, ...]
    curves: Curves

    @property
    def only_grows(self) -> bool:
        return True

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.ANY),)

    def shows(self, place: int, column: str) -> frozenset[str]:
        return frozenset(
            c.name for c in self.columns if columns_of(c.expr) == {column} and str(c.expr) == column
        )

    def explained(self, show: Describer) -> list[str]:
        return [f"  {named(self.columns)} of {show.inputs(self.inputs)}, as functions of time"]


def named(columns: Iterable[Named]) -> str:
    """The columns of SELECT, with what they are made of where that is more than their name."""
    texts = ((c.name, str(c.expr)) for c in columns)
    return ", ".join(
        name if text in (name, f"{text.split('.', 1)[0]}.{name}") else f"{name} = {text}"
        for name, text in texts
    )


@lowers(Map)
def _lower(drafts: Drafts, node: Map) -> int:
    below = drafts.relation(node.input)
    return drafts.append(Mapped((below,), node.schema, node.columns, node.curves))


@runs(Mapped)
def run_mapped(step: RelationStep, relation: Mapped) -> Changes:
    (changes,) = step.raw_inputs()
    known = dict(relation.curves)
    rows = Rows(changes.frame.columns, len(changes), known, step.ctx.functions)
    start = beginning(rows)
    columns: dict[str, Vector] = {}
    made = dict(made_by(relation.columns, relation.curves))
    for column in relation.columns:
        curve = made.get(column.name)
        if curve is not None and curve.is_instant:
            columns[column.name] = Vector(TIMESTAMP, start)  # of the row that is shown, its start
        elif curve is None:
            columns[column.name] = rows.plain(column.expr)
        else:
            inner = form_of(column.expr, known).inner
            columns.update(held(rows.formula(inner).about(start), curve))
    columns[START] = Vector(BIGINT, start)
    found = Changes(Frame(columns, len(changes)), changes.ts, changes.signs)
    return _without_errors(step, rows, changes, found)


def held(functions: TimeFunctions, curve: Curve) -> dict[str, Vector]:
    """The columns that hold functions."""
    found = {}
    parts = [(curve.coefficients, functions.top)]
    if curve.divisor:
        bottom = np.ones((len(functions), 1)) if functions.bottom is None else functions.bottom
        parts.append((curve.divisor, bottom))
    for names, values in parts:
        wide = padded(values, len(names))
        for i, name in enumerate(names):
            found[name] = Vector(DOUBLE, wide[:, i] + 0.0, functions.valid)
    return found


def _without_errors(step: RelationStep, rows: Rows, changes: Changes, found: Changes) -> Changes:
    bad = rows.bad()
    if not len(bad) or rows.errors is None:
        return found
    fresh = bad[changes.signs[bad] > 0]
    step.ctx.rejects.append(
        Reject("SELECT", rows.errors[fresh], changes.ts[fresh], changes.frame.take(fresh))
    )
    good = np.ones(len(changes), np.bool_)
    good[bad] = False
    return found.take(np.flatnonzero(good))
