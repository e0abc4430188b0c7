"""Which tuples a modeled source absorbs: those that its segments in force are close enough to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.columns.runs import Runs
from thalweg.columns.sort_codes import row_codes
from thalweg.columns.vector import Vector, concat
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.exec.relations.protocol import RelationStep
from thalweg.instants import AFTER_TIME, Ints
from thalweg.models.functions.curve import curve_named
from thalweg.models.polynomials import Floats
from thalweg.models.relations.state import alive_by_key
from thalweg.models.relations.tuples import Attribute, Tuples, partner
from thalweg.models.validation import Bound, Segments, no_segments, validated
from thalweg.plan.expr import Column
from thalweg.plan.functions import cast
from thalweg.plan.logical import Schema
from thalweg.plan.types import DOUBLE


class Source(Protocol):
    """The modeled source."""

    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def attributes(self) -> tuple[Attribute, ...]: ...
    @property
    def plain(self) -> Schema: ...
    @property
    def horizon(self) -> int | None: ...
    @property
    def schema(self) -> Schema: ...


@dataclass(frozen=True, slots=True)
class Values:
    """The least and the greatest value of each attribute among the tuples of a key at an instant,
    and how many of these count for nothing, because they are too far apart: then the last counts.
    Of an attribute without a bound any value will do."""

    least: Floats
    greatest: Floats
    conflicts: int


def values_of(attributes: Sequence[Attribute], arrived: Frame, runs: Runs, order: Ints) -> Values:
    """Of tuples in the order of keys and instants (`runs`)."""
    first = np.flatnonzero(np.append(True, runs.run[1:] != runs.run[:-1]))[: runs.runs]
    last = np.append(first[1:] - 1, len(order) - 1)[: runs.runs]
    least, greatest = np.zeros((2, len(first), len(attributes)))
    newest = np.zeros_like(least)
    apart = np.zeros(len(first), np.bool_)
    for i, attribute in enumerate(attributes):
        if attribute.bound is not None and len(first):
            values = _own_values(attribute, arrived)[order]
            low, high = (f.reduceat(values, first) for f in (np.fmin, np.fmax))
            apart |= ~(high - low <= 2 * _allowed(attribute.bound, low, high))
            least[:, i], greatest[:, i], newest[:, i] = low, high, values[last]
    least[apart], greatest[apart] = newest[apart], newest[apart]
    return Values(least, greatest, int((last - first)[apart].sum()))


def _allowed(bound: Bound, low: Floats, high: Floats) -> Floats:
    within = bound.within or 0.0
    if not bound.relative:
        return np.full(len(low), within)
    smallest: Floats = np.minimum(np.abs(low), np.abs(high)) * within / 100
    return smallest


def _own_values(attribute: Attribute, frame: Frame) -> Floats:
    given = frame.columns[attribute.name]
    as_double = cast(Column(given.type, True, attribute.name), DOUBLE)
    value = evaluate(as_double, frame.columns, frame.length)
    return np.where(value.usable, value.data, np.nan)


def unabsorbed(step: RelationStep, source: Source, tuples: Tuples, values: Values) -> Tuples:
    """The tuples that the segments in force do not absorb."""
    tuples = _with_midpoints(source, tuples, values)
    key = np.cumsum(tuples.first) - 1
    firsts = tuples.rows.take(np.flatnonzero(tuples.first))
    alive = alive_by_key(step, source.schema, source.key, firsts).expanded()
    place = partner(source.key, firsts, alive)
    content = _content(source, tuples.rows, alive)
    # values of tuples at one instant are all held against the segment: the least and the greatest
    tied = np.atleast_1d((values.least < values.greatest).any(axis=1))
    which = np.repeat(np.arange(len(tied)), 1 + tied)
    second = np.append(False, which[1:] == which[:-1])[: len(which)]
    held = np.where(second[:, np.newaxis], values.greatest[which], values.least[which])
    held[~tuples.good[which]] = np.nan
    found = validated(
        key[which],
        tuples.ts[which],
        held,
        [_coefficients(a, tuples.rows)[which] for a in source.attributes],
        content[: tuples.rows.length][which],
        [a.bound or Bound(None) for a in source.attributes],
        source.horizon,
        _in_force(source, alive, content[tuples.rows.length :], place),
    )
    counts = step.ctx.counts
    counts["tuples absorbed"] += found.absorbed - int(np.count_nonzero(second & ~found.begins))
    counts["violations"] += found.violations
    counts["conflicts"] += values.conflicts
    begins, ends = np.zeros((2, len(tied)), np.bool_)
    begins[which[found.begins]] = True
    ends[which[found.ends]] = True
    kept = np.flatnonzero(begins | ends)
    group = key[kept]
    last = np.append(group[1:] != group[:-1], True)[: len(kept)]
    return Tuples(tuples.rows.take(kept), tuples.ts[kept], begins[kept], last)


def _with_midpoints(source: Source, tuples: Tuples, values: Values) -> Tuples:
    """Where tuples of a key at an instant have several values, a segment that begins with its own
    value begins half way between them."""
    columns = dict(tuples.rows.columns)
    for i, attribute in enumerate(source.attributes):
        low, high = values.least[:, i], values.greatest[:, i]
        base = np.asarray(columns[attribute.name].data)
        own = (low < high) & (low <= base) & (base <= high)
        if attribute.bound is not None and own.any():
            middle = np.where(own, low + (high - low) / 2, base)
            columns[attribute.name] = Vector(DOUBLE, middle)
    return Tuples(Frame(columns, tuples.rows.length), tuples.ts, tuples.good, tuples.last)


def _coefficients(attribute: Attribute, rows: Frame) -> Floats:
    names = curve_named(attribute.name, len(attribute.coefficients) - 1, "").coefficients
    return np.stack([np.asarray(rows.columns[n].data) for n in names], axis=1)


def _content(source: Source, rows: Frame, alive: Frame) -> Ints:
    """Codes of the plain columns of both, one after another."""
    both = [concat([rows.columns[f.name], alive.columns[f.name]]) for f in source.plain]
    return row_codes(both, rows.length + alive.length)


def _in_force(source: Source, alive: Frame, content: Ints, place: Ints) -> Segments:
    """The segment of each key, at its place among those that are alive (-1: there is none)."""
    there = place >= 0
    none = no_segments(len(place), [len(a.coefficients) - 1 for a in source.attributes])
    if not alive.length:
        return none
    at = np.where(there, place, 0)
    start = np.asarray(alive.columns[source.schema[-1].name].data)[at]
    horizon = source.horizon
    until = np.full(len(at), AFTER_TIME, np.int64) if horizon is None else start + horizon
    coefficients = tuple(_coefficients(a, alive)[at] for a in source.attributes)
    return Segments(there, start, until, content[at], coefficients)
