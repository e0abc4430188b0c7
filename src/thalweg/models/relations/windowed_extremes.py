"""What the largest (or smallest) value of a window may be: functions whose envelope it is.

Of a function f that is there on [b, u), the largest value within (t - w, t] is one of: f(t) itself,
the head, while it is there; f(t - w), the tail, w later; and the peaks in between, each of which
holds for w from its instant on: f(b) unless f rises there, local maxima, and f(u) if f rises up to
there. What has appeared says all of these but the last; what vanishes takes back those behind its
end. So again nothing is looked up, and a change costs the same whatever the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Changes, Frame, concat_changes
from thalweg.columns.netting import net
from thalweg.columns.vector import Mask, Vector
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import AFTER_TIME, Ints, format_duration
from thalweg.models.comparisons import solved
from thalweg.models.functions.curve import Curve
from thalweg.models.polynomials import Floats, derivative, value_at
from thalweg.models.relations.enveloped import END
from thalweg.models.relations.state import DUE, scheduled
from thalweg.models.spans import Spans
from thalweg.plan.logical import Field, Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.types import BIGINT, DOUBLE


@dataclass(frozen=True, slots=True)
class WindowExtremes(Node):
    """The functions whose envelope is the largest (`upper`) or smallest value of `curve` within the
    last `window`."""

    input: Node
    curve: Curve
    window: int
    upper: bool

    @property
    def schema(self) -> Schema:
        return (*self.input.schema, Field(END, BIGINT, False))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        yield from (f.name for f in self.input.schema)


@dataclass(frozen=True, slots=True)
class WindowedExtremes(Relation):
    slots = (DUE,)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    curve: Curve
    window: int
    upper: bool

    @property
    def only_grows(self) -> bool:
        return False

    @property
    def lasts(self) -> int:
        return self.window

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def shows(self, place: int, column: str) -> frozenset[str]:
        changed = {*self.curve.columns, END}
        return frozenset((column,)) & ({f.name for f in self.schema} - changed)

    def explained(self, show: Describer) -> list[str]:
        which = "peaks" if self.upper else "dips"
        return [
            f"  candidates of {show.inputs(self.inputs)}: its value now, the one "
            f"{format_duration(self.window)} before, and its {which} in between"
        ]


@lowers(WindowExtremes)
def _lower(drafts: Drafts, node: WindowExtremes) -> int:
    below = drafts.relation(node.input)
    return drafts.append(
        WindowedExtremes((below,), node.schema, node.curve, node.window, node.upper)
    )


@runs(WindowedExtremes)
def run_windowed_extremes(step: RelationStep, relation: WindowedExtremes) -> Changes:
    (changes,) = step.raw_inputs()
    found = list(_Functions(relation, changes).changes()) if len(changes) else []
    return net(scheduled(step, relation.schema, concat_changes(found, relation.schema)))


class _Functions:
    """Functions that appear and vanish."""

    def __init__(self, relation: WindowedExtremes, changes: Changes) -> None:
        self.relation = relation
        self.given = changes
        columns, curve = changes.frame.columns, relation.curve
        vectors = [np.asarray(columns[n].data) for n in curve.coefficients]
        self.coefficients: Floats = np.stack(vectors, axis=1)
        self.start: Ints = np.asarray(columns[curve.start].data)

    def changes_of(
        self, rows: Ints, coefficients: Floats, start: Ints, end: Ints, ts: Ints, signs: Ints
    ) -> Changes:
        curve = self.relation.curve
        frame = self.given.frame.take(rows)
        columns = {
            name: Vector(DOUBLE, coefficients[:, j] + 0.0)
            for j, name in enumerate(curve.coefficients)
        }
        columns[curve.start] = Vector(BIGINT, start)
        columns[END] = Vector(BIGINT, end)
        return Changes(Frame({**frame.columns, **columns}, len(rows)), ts, signs.astype(np.int8))

    def changes(self) -> Iterator[Changes]:
        ts, window = self.given.ts, self.relation.window
        signs = self.given.signs.astype(np.int64)
        rows = np.arange(len(ts))
        endless = np.full(len(ts), AFTER_TIME, np.int64)
        yield self.changes_of(rows, self.coefficients, self.start, endless, ts, signs)
        yield self.changes_of(
            rows, self.coefficients, self.start + window, endless, ts + window, signs
        )
        rising = self._rising()
        ahead = np.flatnonzero((rising.end < AFTER_TIME) & (rising.end > ts[rising.row]))
        tops = rising.take(ahead)
        yield from self._constants(tops.row, tops.end, signs[tops.row])
        begins = np.flatnonzero((signs > 0) & ~self._within(rising, ts))
        ends = np.flatnonzero((signs < 0) & self._within(rising, ts - 1))
        seen = np.concatenate([begins, ends])
        yield from self._constants(seen, ts[seen], np.ones(len(seen), np.int64))

    def _rising(self) -> Spans:
        """When functions rise, or fall if the smallest is wanted."""
        slope = derivative(self.coefficients)
        until = np.full(len(slope), AFTER_TIME, np.int64)
        return solved(slope, self.start, self.start, until, ">" if self.relation.upper else "<")

    def _within(self, spans: Spans, at: Ints) -> Mask:
        found = np.zeros(len(at), np.bool_)
        inside = (spans.start <= at[spans.row]) & (at[spans.row] < spans.end)
        found[spans.row[inside]] = True
        return found

    def _constants(self, rows: Ints, at: Ints, signs: Ints) -> Iterator[Changes]:
        """Values that functions have at instants, for the length of the window."""
        values = np.zeros((len(rows), self.coefficients.shape[1]))
        values[:, 0] = value_at(self.coefficients[rows], self.start[rows], at)
        until = at + self.relation.window
        yield self.changes_of(rows, values, at, until, at, signs)
        yield self.changes_of(rows, values, at, until, until, -signs)
