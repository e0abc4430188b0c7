"""A stream under MODEL (attr = polynomial): the newest tuple of each key, as a function of time.

A tuple's segment begins at its event time and lasts until the next tuple of its key, with FOR d at
most so long. A tuple in which a coefficient is NULL, NaN or infinite ends the segment before it and
begins none. Of tuples of a key at one instant the last in the stream's order counts. With ERROR a
tuple within the bounds of the segment in force, whose plain columns are the same, is absorbed: it
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, concat_changes
from thalweg.columns.netting import net
from thalweg.columns.runs import sort_into_runs
from thalweg.columns.vector import Mask, Vector, from_arrow
from thalweg.exec.aggregate.group_by import normalized
from thalweg.exec.context import Reject
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.exec.leaves.order_lifetimes import in_stream_order
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import AFTER_TIME, Ints, format_duration
from thalweg.models.functions.curve import START, Curve, Curves, curve_named, fields_of, start_field
from thalweg.models.relations.absorption import unabsorbed, values_of
from thalweg.models.relations.state import (
    ALIVE,
    DUE,
    SEGMENTS,
    alive_by_key,
    keep_alive,
    keep_segments,
    scheduled,
)
from thalweg.models.relations.tuples import (
    Attribute,
    Tuples,
    bare_names,
    partner,
    without_alias,
)
from thalweg.plan.expr import columns_of
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
class Modeled(Node):
    """Rows are segments: the `plain` columns, the coefficients of each attribute, and the instant
    from which on time is counted."""

    input: Node
    alias: str
    key: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    plain: Schema
    horizon: int | None

    @property
    def start(self) -> str:
        return f"{self.alias}.{START}"

    def curve(self, attribute: Attribute) -> Curve:
        return curve_named(attribute.name, len(attribute.coefficients) - 1, self.start)

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
        for attribute in self.attributes:
            if attribute.bound is not None:
                yield attribute.name
            for coefficient in attribute.coefficients:
                yield from columns_of(coefficient)


@dataclass(frozen=True, slots=True)
class ModeledRelation(Relation):
    slots = (DUE, ALIVE, SEGMENTS)
    sees_rows_once = True
    is_netted = True
    leaf: Leaf = field()
    key: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    plain: Schema
    horizon: int | None
    schema: Schema = field()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self.leaf,)

    @property
    def inputs(self) -> tuple[int, ...]:
        return () if self.leaf.source is None else (self.leaf.source,)

    @property
    def only_grows(self) -> bool:
        return False

    @property
    def lasts(self) -> int:
        return self.horizon or 0

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.KEYS, frozenset(self.key)),)

    def reordered(self, order: Reorder) -> ModeledRelation:
        return replace(self, leaf=reordered_leaf(self.leaf, order))

    def stored(self, slot: str) -> tuple[Schema, tuple[tuple[str, ...], ...]]:
        return self.schema, (self.key,) if slot == ALIVE.name else ()

    def explained(self, show: Describer) -> list[str]:
        alias = self.leaf.alias
        models = ", ".join(without_alias(alias, str(a)) for a in self.attributes)
        by, moves = (
            bare_names(alias, self.key),
            any(len(a.coefficients) > 1 for a in self.attributes),
        )
        lasts = "" if self.horizon is None else f", for {format_duration(self.horizon)} at most"
        time = ", t in seconds since that row" if moves else ""
        return [
            f"  model of {alias}: {models}, from each row of {by} to its next{lasts}{time}",
            *(f"    {words}" for a in self.attributes for words in _absorbed(alias, a)),
            *show.leaf(self.leaf),
        ]


def _absorbed(alias: str, attribute: Attribute) -> Iterator[str]:
    """Which rows change nothing."""
    bound, name = attribute.bound, bare_names(alias, (attribute.name,))
    if bound is None or bound.within is None:
        return
    size = f"{bound.within:g}{' % of its size' if bound.relative else ''}"
    yield f"a row whose {name} is within {size} of the model changes nothing (ERROR)"


@lowers(Modeled)
def _lower(drafts: Drafts, node: Modeled) -> int:
    leaf = drafts.leaf(Window(node.input, NOW), (), 1, whole=True)
    return drafts.append(
        ModeledRelation(leaf, node.key, node.attributes, node.plain, node.horizon, node.schema)
    )


# -- running ---------------------------------------------------------------------------------------


@runs(ModeledRelation)
def run_modeled(step: RelationStep, relation: ModeledRelation) -> Changes:
    tables = [t for t in step.arriving(0) if t.num_rows]
    found = [] if not tables else _segments(step, relation, tables)
    changes = net(scheduled(step, relation.schema, concat_changes(found, relation.schema)))
    keep_alive(step, relation.schema, changes, (relation.key,))
    keep_segments(step, relation.schema, changes)
    return changes


def _segments(
    step: RelationStep, relation: ModeledRelation, tables: Sequence[pa.Table]
) -> list[Changes]:
    """Each tuple's segment, and the ends of those that lived before."""
    tuples = _tuples(step, relation, pa.concat_tables(tables).combine_chunks())
    good = np.flatnonzero(tuples.good)
    following = np.where(tuples.last, AFTER_TIME, np.append(tuples.ts[1:], 0))
    ends = following[good]
    if relation.horizon is not None:
        ends = np.minimum(ends, tuples.ts[good] + relation.horizon)
    rows = tuples.rows.take(good)
    closed = np.flatnonzero(ends < AFTER_TIME)
    return [
        Changes(rows, tuples.ts[good], np.ones(len(good), np.int8)),
        Changes(rows.take(closed), ends[closed], np.full(len(closed), -1, np.int8)),
        *_superseded(step, relation, tuples),
    ]


def _superseded(step: RelationStep, relation: ModeledRelation, tuples: Tuples) -> Iterator[Changes]:
    """The segments that lived before the epoch end where a tuple of their key arrives."""
    first = np.flatnonzero(tuples.first)
    firsts = tuples.rows.take(first)
    alive = alive_by_key(step, relation.schema, relation.key, firsts).expanded()
    if not alive.length:
        return
    at = partner(relation.key, alive, firsts)
    there = np.flatnonzero(at >= 0)  # rows of other keys may have the same hash
    alive, ends = alive.take(there), tuples.ts[first][at[there]]
    if relation.horizon is not None:
        due = np.asarray(alive.columns[relation.schema[-1].name].data) + relation.horizon
        early = np.flatnonzero(ends < due)
        alive, ends = alive.take(early), ends[early]
        yield Changes(alive, due[early], np.ones(len(early), np.int8))
    yield Changes(alive, ends, np.full(len(ends), -1, np.int8))


def _tuples(step: RelationStep, relation: ModeledRelation, table: pa.Table) -> Tuples:
    leaf = relation.leaf
    ts = table.column(TIME).to_numpy()
    columns = {f.name: from_arrow(table.column(leaf.bare(f.name)), f.type) for f in leaf.fields}
    runs_ = sort_into_runs([normalized(columns[k]) for k in relation.key], ts)
    order = in_stream_order(runs_, table, [*leaf.order_by, *leaf.stream_columns])
    newest = np.append(runs_.run[1:] != runs_.run[:-1], True)  # of a key at an instant
    rows = order[newest]
    group = runs_.group_of_run
    last = np.append(group[1:] != group[:-1], True)
    arrived = Frame(columns, table.num_rows)
    frame = arrived.take(rows)
    found, good = _modeled(step, relation, frame, ts[rows])
    step.ctx.counts["tuples modeled"] += len(rows)
    tuples = Tuples(found, ts[rows], good, last)
    if all(a.bound is None for a in relation.attributes):
        return tuples
    return unabsorbed(step, relation, tuples, values_of(relation.attributes, arrived, runs_, order))


def _modeled(
    step: RelationStep, relation: ModeledRelation, frame: Frame, ts: Ints
) -> tuple[Frame, Mask]:
    """The rows of segments, and which tuples have all coefficients."""
    good = np.ones(frame.length, np.bool_)
    columns = {f.name: frame.columns[f.name] for f in relation.plain}
    for attribute in relation.attributes:
        names = curve_named(attribute.name, len(attribute.coefficients) - 1, "").coefficients
        for name, coefficient in zip(names, attribute.coefficients, strict=True):
            value = evaluate(coefficient, frame.columns, frame.length, step.ctx.functions)
            _note_errors(step, attribute, value, ts, frame)
            usable = value.usable & np.isfinite(value.data)
            good &= usable
            columns[name] = Vector(DOUBLE, np.where(usable, value.data, 0.0) + 0.0)
    columns[relation.schema[-1].name] = Vector(BIGINT, ts)
    return Frame(columns, frame.length), good


def _note_errors(
    step: RelationStep, attribute: Attribute, value: Vector, ts: Ints, frame: Frame
) -> None:
    if value.errors is not None and value.errors.any():
        bad = np.flatnonzero(value.errors)
        step.ctx.rejects.append(Reject(str(attribute), value.errors[bad], ts[bad], frame.take(bad)))
