"""A stream under MODEL (FIT attr DEGREE n WITHIN e): polynomials through its tuples.

Tuples are fitted cell by cell of a grid of event time, so that epochs, which end at the grid's
lines, cut nothing. A piece is valid from its first tuple, or from the cell's start if the key had a
piece until then, to the next piece, at most to the end of its cell, or beyond it for as long as FOR
says. Where a plain column changes a new piece begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, concat_changes
from thalweg.columns.netting import net
from thalweg.columns.runs import sort_into_runs
from thalweg.columns.sort_codes import order_codes
from thalweg.columns.vector import Mask, Vector, from_arrow
from thalweg.exec.aggregate.group_by import normalized
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.exec.leaves.order_lifetimes import in_stream_order
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import AFTER_TIME, Ints, format_duration
from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import Pieces, fitted
from thalweg.models.functions.curve import START, Curve, Curves, curve_named, fields_of, start_field
from thalweg.models.polynomials import Floats
from thalweg.models.relations.state import (
    ALIVE,
    DUE,
    SEGMENTS,
    alive_by_key,
    keep_alive,
    keep_segments,
    scheduled,
)
from thalweg.models.relations.tuples import bare_names, partner
from thalweg.models.validation import Bound
from thalweg.plan.expr import Column
from thalweg.plan.functions import cast
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import Node, Schema, Window
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import (
    Describer,
    Need,
    Relation,
    Reorder,
    Together,
    reordered_leaf,
)
from thalweg.plan.types import BIGINT, DOUBLE
from thalweg.store.packs import TIME
from thalweg.windows.range import NOW


@dataclass(frozen=True, slots=True)
class FittedAttribute:
    """A column of the stream, and how it is fitted."""

    name: str
    fit: Fit

    @property
    def bound(self) -> Bound:
        return Bound(self.fit.within, self.fit.relative)

    def __str__(self) -> str:
        name, fit = self.name.split(".", 1)[1], self.fit
        shape = {0: "values that hold", 1: "straight lines"}.get(
            fit.degree, f"polynomials of degree {fit.degree}"
        )
        if not fit.within:
            return f"{name} by {shape} through each row"
        size = f"{fit.within:g}{' % of its size' if fit.relative else ''}"
        method = "" if fit.method is None else f", by {fit.method}"
        return f"{name} by {shape}, at most {size} from each row (WITHIN){method}"


@dataclass(frozen=True, slots=True)
class FitModel(Node):
    """Rows are pieces: the `plain` columns, the coefficients of each attribute, and the instant
    from which on time is counted."""

    input: Node
    alias: str
    key: tuple[str, ...]
    attributes: tuple[FittedAttribute, ...]
    plain: Schema
    every: int
    horizon: int = 0

    @property
    def start(self) -> str:
        return f"{self.alias}.{START}"

    def curve(self, attribute: FittedAttribute) -> Curve:
        return curve_named(attribute.name, attribute.fit.degree, self.start)

    @property
    def curves(self) -> Curves:
        return tuple((a.name, self.curve(a)) for a in self.attributes)

    @property
    def schema(self) -> Schema:
        curves = (f for a in self.attributes for f in fields_of(self.curve(a)))
        return (*self.plain, *curves, start_field(self.start))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def bounded_by(self) -> str | None:
        return f"{self.alias}: a segment of each {bare_names(self.alias, self.key)}"

    def reads(self) -> Iterator[str]:
        yield from self.key
        yield from (f.name for f in self.plain)
        yield from (a.name for a in self.attributes)


@dataclass(frozen=True, slots=True)
class Fitted(Relation):
    slots = (DUE, ALIVE, SEGMENTS)
    sees_rows_once = True
    is_netted = True
    leaf: Leaf = field()
    key: tuple[str, ...] = field()
    attributes: tuple[FittedAttribute, ...] = field()
    plain: Schema = field()
    every: int = field()
    horizon: int = field()
    schema: Schema = field()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self.leaf,)

    @property
    def inputs(self) -> tuple[int, ...]:
        return () if self.leaf.source is None else (self.leaf.source,)

    @property
    def grain(self) -> int:
        return self.every

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.KEYS, frozenset(self.key)),)

    def reordered(self, order: Reorder) -> Fitted:
        return replace(self, leaf=reordered_leaf(self.leaf, order))

    def stored(self, slot: str) -> tuple[Schema, tuple[tuple[str, ...], ...]]:
        return self.schema, (self.key,) if slot == ALIVE.name else ()

    def explained(self, show: Describer) -> list[str]:
        fits, by = "; ".join(map(str, self.attributes)), bare_names(self.leaf.alias, self.key)
        grid = format_duration(self.every)
        beyond = f", and {format_duration(self.horizon)} beyond its end" if self.horizon else ""
        return [
            f"  fit of {self.leaf.alias}: {fits}, for each {by}",
            f"    within cells of {grid} (EVERY){beyond}: answers lag by at most {grid}",
            *show.leaf(self.leaf),
        ]


@lowers(FitModel)
def _lower(drafts: Drafts, node: FitModel) -> int:
    leaf = drafts.leaf(Window(node.input, NOW), (), 1, whole=True)
    return drafts.append(
        Fitted(
            leaf, node.key, node.attributes, node.plain, node.every, node.horizon, node.schema
        )
    )  # fmt: skip


# -- running ---------------------------------------------------------------------------------------


@runs(Fitted)
def run_fitted(step: RelationStep, relation: Fitted) -> Changes:
    assert step.ctx.until % relation.every == 0, "an epoch ends within a cell of FIT"
    tables = [t for t in step.arriving(0) if t.num_rows]
    found = [] if not tables else _pieces(step, relation, tables)
    changes = net(scheduled(step, relation.schema, concat_changes(found, relation.schema)))
    keep_alive(step, relation.schema, changes, (relation.key,))
    keep_segments(step, relation.schema, changes)
    return changes


@dataclass(frozen=True, slots=True)
class _Tuples:
    """Arriving tuples by key, time and the stream's order. A stretch is a run of tuples of a key
    with the same plain columns; `entity` numbers keys, `stretch` stretches."""

    rows: Frame
    ts: Ints
    entity: Ints
    stretch: Ints

    @property
    def firsts(self) -> Ints:
        """The first tuple of each key."""
        return np.flatnonzero(_changes(self.entity))


def _changes(codes: Ints | Mask) -> Mask:
    found = np.ones(len(codes), np.bool_)
    found[1:] = codes[1:] != codes[:-1]
    return found


def _pieces(step: RelationStep, relation: Fitted, tables: Sequence[pa.Table]) -> list[Changes]:
    tuples = _tuples(relation, pa.concat_tables(tables))
    firsts = tuples.rows.take(tuples.firsts)
    alive = alive_by_key(step, relation.schema, relation.key, firsts).expanded()
    place = partner(relation.key, alive, firsts)
    known = np.flatnonzero(place >= 0)
    alive, place = alive.take(known), place[known]
    carried = _carried(relation, tuples, alive, place)
    fits = [a.fit for a in relation.attributes]
    pieces = fitted(
        tuples.stretch, tuples.ts, _values(relation, tuples.rows), fits, relation.every,
        carried, relation.horizon,
    )  # fmt: skip
    counts = step.ctx.counts
    counts["tuples modeled"] += len(tuples.ts)
    counts["pieces fitted"] += len(pieces)
    counts["conflicts"] += pieces.conflicts
    start, end = pieces.start, np.minimum(pieces.end, _next_of_key(tuples, pieces))
    rows = _rows(relation, tuples, pieces)
    there = np.flatnonzero(start < end)
    found = [
        Changes(rows.take(there), at[there], np.full(len(there), sign, np.int8))
        for at, sign in ((start, 1), (end, -1))
    ]
    if relation.horizon and alive.length:
        found += _cut(relation, tuples, pieces, alive, place)
    return found


def _next_of_key(tuples: _Tuples, pieces: Pieces) -> Ints:
    """For each piece the instant at which another one of its key begins, or a stretch begins
    without a value."""
    entity = np.concatenate([tuples.entity[pieces.row], _entity_of(tuples, pieces.gap_key)])
    at = np.concatenate([pieces.start, pieces.gap_start])
    order = np.lexsort((at, entity))
    following = np.full(len(order), AFTER_TIME, np.int64)
    same = entity[order[1:]] == entity[order[:-1]]
    following[order[:-1][same]] = at[order[1:][same]]
    return following[: len(pieces)]


def _tuples(relation: Fitted, table: pa.Table) -> _Tuples:
    leaf = relation.leaf
    ts = table.column(TIME).to_numpy()
    columns = {f.name: from_arrow(table.column(leaf.bare(f.name)), f.type) for f in leaf.fields}
    runs_ = sort_into_runs([normalized(columns[k]) for k in relation.key], ts)
    order = in_stream_order(runs_, table, [*leaf.order_by, *leaf.stream_columns])
    entity = runs_.group_of_run[runs_.run]
    rows = Frame(columns, table.num_rows).take(order)
    begins = _changes(entity)
    for field_ in relation.plain:
        if field_.name not in relation.key:  # those of the key are the entity's
            begins |= _unlike(rows.columns[field_.name])
    return _Tuples(rows, ts[order], entity, np.cumsum(begins) - 1)


def _unlike(column: Vector) -> Mask:
    """Where a value differs from the one before it (NULL and NaN are like themselves)."""
    codes = order_codes([column])[0]
    if column.valid is None:
        return _changes(codes)
    return _changes(np.where(column.valid, codes, 0)) | _changes(column.valid)


def _values(relation: Fitted, rows: Frame) -> Floats:
    """The values to be fitted; NaN where there is none."""
    columns = []
    for attribute in relation.attributes:
        given = rows.columns[attribute.name]
        as_double = cast(Column(given.type, True, attribute.name), DOUBLE)
        value = evaluate(as_double, rows.columns, rows.length)
        columns.append(np.where(value.usable, value.data, np.nan))
    return np.stack(columns, axis=1)


def _carried(relation: Fitted, tuples: _Tuples, alive: Frame, place: Ints) -> Mask:
    """Of each stretch, whether its key has a piece that reaches the cell of its first tuple: one of
    an earlier epoch, or, where the stretch begins a cell, the stretch before it."""
    every = relation.every
    first = np.flatnonzero(_changes(tuples.stretch))
    cell = tuples.ts[first] // every
    found = np.zeros(len(first), np.bool_)
    found[1:] = (tuples.entity[first[1:]] == tuples.entity[first[1:] - 1]) & (
        tuples.ts[first[1:] - 1] // every == cell[1:] - 1
    )
    if alive.length:
        starts = np.asarray(alive.columns[relation.schema[-1].name].data)
        begins = np.flatnonzero(_changes(tuples.entity[first]))
        reached = starts // every + 1 == cell[begins[place]]
        found[begins[place[reached]]] = True
    return found


def _rows(relation: Fitted, tuples: _Tuples, pieces: Pieces) -> Frame:
    plain = tuples.rows.take(pieces.row)
    columns = {f.name: plain.columns[f.name] for f in relation.plain}
    for attribute, values in zip(relation.attributes, pieces.coefficients, strict=True):
        names = curve_named(attribute.name, attribute.fit.degree, "").coefficients
        for i, name in enumerate(names):
            columns[name] = Vector(DOUBLE, values[:, i] + 0.0)
    columns[relation.schema[-1].name] = Vector(BIGINT, pieces.start)
    return Frame(columns, len(pieces))


def _cut(
    relation: Fitted, tuples: _Tuples, pieces: Pieces, alive: Frame, place: Ints
) -> Iterator[Changes]:
    """Pieces that a horizon kept alive end where the next piece of their key begins, or a tuple
    without a value."""
    entity = np.concatenate([tuples.entity[pieces.row], _entity_of(tuples, pieces.gap_key)])
    at = np.concatenate([pieces.start, pieces.gap_start])
    next_at = np.full(int(tuples.entity[-1]) + 1, np.iinfo(np.int64).max)
    np.minimum.at(next_at, entity, at)
    starts = np.asarray(alive.columns[relation.schema[-1].name].data)
    due = (starts // relation.every + 1) * relation.every + relation.horizon
    cut = next_at[tuples.entity[tuples.firsts][place]]
    early = np.flatnonzero(cut < due)
    rows = alive.take(early)
    yield Changes(rows, cut[early], np.full(len(early), -1, np.int8))
    yield Changes(rows, due[early], np.ones(len(early), np.int8))


def _entity_of(tuples: _Tuples, stretches: Ints) -> Ints:
    first = np.flatnonzero(_changes(tuples.stretch))
    return tuples.entity[first[stretches]]
