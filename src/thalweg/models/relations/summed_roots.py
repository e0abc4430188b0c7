"""Means and integrals of square roots over windows that slide, by groups: at their boundaries.

The integral of a root is no polynomial, so none can be added up that is good for all instants: at
each boundary the rows that are there are integrated, in closed form. With F(t) what a row covers
from its start to t, one that is there on [u, v) adds F(b) at a boundary b while it is there, -F(u)
from u on and F(v) from v on; w later the same is taken away, F(b - w) while it was there at b - w.
So again no row is looked up. Each F depends on the row's content and the instant alone, and their
sum is exact and rounded once: it does not depend on the order or the history of what was added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from thalweg.aggregates.accumulator import Columns, running_counts
from thalweg.aggregates.sums import (
    limb_columns,
    limb_span,
    special_columns,
    stored_limbs,
    stored_specials,
)
from thalweg.columns.frame import Changes, Frame, concat_changes, concat_frames
from thalweg.columns.netting import net
from thalweg.columns.runs import sort_into_runs
from thalweg.columns.vector import Mask, Vector
from thalweg.exec.aggregate.group_by import normalized
from thalweg.exec.aggregate.group_state import ROWS, look_up, state_table
from thalweg.exec.relations.emit import expanded
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import BEFORE_TIME, Ints, format_duration
from thalweg.models.functions.curve import START, Curve, Curves, curve_named, fields_of, start_field
from thalweg.models.polynomials import SECOND, Floats, offset, padded
from thalweg.models.relations.groups import Grouped, by_words, grouped_need, window_words
from thalweg.models.relations.state import ALIVE, DUE, all_alive, keep_alive, scheduled
from thalweg.models.relations.summed import BEGINS, SUMS, Total
from thalweg.models.root_integrals import root_integrals
from thalweg.numeric import exact
from thalweg.plan.logical import Field, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation
from thalweg.plan.types import BIGINT, DOUBLE

PART = "__part"
HEAD, TAIL, COVERED = 1, -1, 0
"""Why a row is kept: it is there, it was there a window ago, or was there in between."""


@dataclass(frozen=True, slots=True)
class SumRoots(Grouped):
    """One row per group with any row in the window, from a boundary to the next: its totals
    (`integral` or `mean`) there, as constants."""

    totals: tuple[Total, ...]

    @property
    def made(self) -> Curves:
        return tuple((t.name, curve_named(t.name, 0, START)) for t in self.totals)

    @property
    def schema(self) -> Schema:
        known = {f.name: f for f in self.input.schema}
        made = (Field(f.name, DOUBLE, True) for _, c in self.made for f in fields_of(c))
        return (*(known[k] for k in self.keys), *made, start_field(START))

    def reads(self) -> Iterator[str]:
        yield from self.keys
        known = dict(self.curves)
        for total in self.totals:
            yield from known[total.argument].columns


@dataclass(frozen=True, slots=True)
class SummedRoots(Relation):
    slots = (SUMS, ALIVE, DUE, BEGINS)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    functions: Schema
    """The columns of the input that are read."""
    keys: tuple[str, ...]
    curves: Curves
    made: Curves
    totals: tuple[Total, ...]
    window: int
    slide: int

    @property
    def only_grows(self) -> bool:
        return False

    @property
    def lasts(self) -> int:
        return self.window + self.slide

    @property
    def kept(self) -> Schema:
        """The columns of the rows that are kept, and why they are."""
        return (*self.functions, Field(PART, BIGINT, False))

    def needs(self) -> tuple[Need, ...]:
        return (grouped_need(self.keys),)

    def shows(self, place: int, column: str) -> frozenset[str]:
        return frozenset((column,)) & frozenset(self.keys)

    def stored(self, slot: str) -> tuple[Schema, tuple[tuple[str, ...], ...]]:
        kinds = {ALIVE.name: self.kept, DUE.name: self.functions}
        return kinds.get(slot, self.schema), ()

    def explained(self, show: Describer) -> list[str]:
        words = {"mean": "mean over time", "integral": "integral"}
        totals = (f"{t.name} (the {words[t.kind]} of a square root)" for t in self.totals)
        return [
            f"  {', '.join(totals)} of {show.inputs(self.inputs)}{by_words(self.keys)}"
            f"{window_words(self.window)}",
            f"    in closed form at the multiples of {format_duration(self.slide)} since 1970; "
            "each answer holds until the next",
        ]


@lowers(SumRoots)
def _lower(drafts: Drafts, node: SumRoots) -> int:
    below = drafts.relation(node.input)
    assert node.window is not None
    assert node.slide is not None
    read = frozenset(node.reads())
    functions = tuple(f for f in node.input.schema if f.name in read)
    return drafts.append(
        SummedRoots(
            (below,), node.schema, functions, node.keys, node.curves, node.made, node.totals,
            node.window, node.slide,
        )
    )  # fmt: skip


# -- running ---------------------------------------------------------------------------------------


@runs(SummedRoots)
def run_summed_roots(step: RelationStep, relation: SummedRoots) -> Changes:
    (given,) = step.raw_inputs()
    frame = given.frame.select([f.name for f in relation.functions])
    changes = Changes(frame, given.ts, given.signs)
    due = scheduled(step, relation.functions, replace(changes, ts=given.ts + relation.window))
    kept = _kept(relation, changes, due)
    boundaries = _boundaries(step, relation, kept)
    there = _there(step, relation, kept, boundaries)
    keep_alive(step, relation.kept, kept, ())
    if len(kept) or step.stored(ALIVE):
        step.wake(-(-step.ctx.until // relation.slide) * relation.slide)
    found: list[Changes] = []
    if len(changes) + len(due) + len(there):
        groups = _Groups(step, relation, changes, due, there)
        found = groups.changes()
        step.keep(SUMS, groups.state())
    return net(scheduled(step, relation.schema, concat_changes(found, relation.schema), BEGINS))


def _kept(relation: SummedRoots, changes: Changes, due: Changes) -> Changes:
    """What is added to the rows that are kept: those there, those of a window ago, and the groups
    that have any."""
    came = changes.take(np.flatnonzero(changes.signs > 0))
    left = due.take(np.flatnonzero(due.signs < 0))
    parts = [(changes, HEAD), (due, TAIL), (_blank(relation, came), COVERED),
             (_blank(relation, left), COVERED)]  # fmt: skip
    return concat_changes([_marked(c, part) for c, part in parts], relation.kept)


def _marked(changes: Changes, part: int) -> Changes:
    mark = {PART: Vector(BIGINT, np.full(len(changes), part))}
    return Changes(changes.frame.merged(mark), changes.ts, changes.signs)


def _blank(relation: SummedRoots, changes: Changes) -> Changes:
    """Rows of which nothing is known but their group."""
    columns = {
        f.name: changes.frame.columns[f.name]
        if f.name in relation.keys
        else Vector(f.type, np.zeros(len(changes), np.int64 if f.type == BIGINT else np.float64))
        for f in relation.functions
    }
    return Changes(Frame(columns, len(changes)), changes.ts, changes.signs)


def _boundaries(step: RelationStep, relation: SummedRoots, kept: Changes) -> Ints:
    """Those of this epoch at which there may be anything."""
    since, slide = step.ctx.since, relation.slide
    if not step.stored(ALIVE):
        if not len(kept):
            return np.empty(0, np.int64)
        since = max(since, int(kept.ts.min()))
    return np.arange(-(-since // slide) * slide, step.ctx.until, slide, dtype=np.int64)


def _there(step: RelationStep, relation: SummedRoots, kept: Changes, boundaries: Ints) -> Changes:
    """The rows that are kept at each boundary; a group that has any is there once."""
    if not len(boundaries):
        return kept.take(np.empty(0, np.int64))
    before = all_alive(step, relation.kept)
    frame = concat_frames([before.frame, kept.frame], relation.kept)
    ts = np.concatenate([np.full(before.frame.length, BEFORE_TIME), kept.ts])
    weights = np.concatenate([before.weights, kept.signs.astype(np.int64)])
    is_group = np.asarray(frame.columns[PART].data) == COVERED
    found = []
    for rows, distinct in ((np.flatnonzero(~is_group), False), (np.flatnonzero(is_group), True)):
        part = frame.take(rows), ts[rows], weights[rows]
        found.append(expanded(*part, boundaries, distinct=distinct)[0])
    return concat_changes(found, relation.kept)


class _Groups:
    """The groups with changes or boundaries. Rows at a boundary are added to the sums of their
    group there, and taken away again before anything else."""

    def __init__(
        self, step: RelationStep, relation: SummedRoots, changes: Changes, due: Changes,
        there: Changes,
    ) -> None:  # fmt: skip
        self._relation = relation
        part = np.asarray(there.frame.columns[PART].data)
        own = there.frame.select([f.name for f in relation.functions])
        self._frame = concat_frames([changes.frame, due.frame, own], relation.functions)
        first, rows = len(changes) + len(due), self._frame.length
        # the row of each addition; those of a boundary come twice, once to be taken away
        self._row = np.concatenate([np.arange(rows), np.arange(first, rows)])
        until = there.ts - np.where(part == TAIL, relation.window, 0)
        self._at = np.concatenate([changes.ts, due.ts - relation.window, until])
        signs, gone = changes.signs.astype(np.int64), due.signs.astype(np.int64)
        self._signs = np.concatenate([-signs, gone, part, -part])
        # twice the instant: what is added at a boundary is gone by the odd number after it
        times = np.concatenate([changes.ts * 2, due.ts * 2, there.ts * 2, there.ts * 2 + 1])
        keys = [normalized(self._frame.columns[k]).take(self._row) for k in relation.keys]
        self._runs = sort_into_runs(keys, times)
        self._loaded = look_up(step.ctx, step.stored(SUMS), self._runs, {})
        at_boundary = (self._runs.order >= first) & (self._runs.order < first + len(there))
        self._boundaries = np.unique(self._runs.run[at_boundary])
        members = np.zeros(len(times), np.int64)
        members[:first] = np.concatenate([np.maximum(signs, 0), np.minimum(gone, 0)])
        self._rows = self._running(members, ROWS)
        self._saved: Columns = {}
        step.ctx.counts["roots integrated"] += rows

    def changes(self) -> list[Changes]:
        """A row for each group at each boundary, until the next."""
        relation, runs_ = self._relation, self._runs
        made = dict(relation.made)
        columns = {
            made[total.name].coefficients[0]: self._total(total, f"p{i}")
            for i, total in enumerate(relation.totals)
        }
        covered = self._covered(np.ones(len(self._at), np.bool_), "covered")
        there = self._boundaries[covered[self._boundaries] > 0]
        columns = {name: vector.take(there) for name, vector in columns.items()}
        ts = runs_.instants[there] // 2
        columns[START] = Vector(BIGINT, ts)
        example = self._row[runs_.example[runs_.group_of_run[there]]]
        keys = self._frame.select(relation.keys).take(example)
        found, ones = keys.merged(columns), np.ones(len(there), np.int8)
        return [Changes(found, ts, ones), Changes(found, ts + relation.slide, -ones)]

    def state(self) -> pa.Table:
        """The sums after the last boundary and change of each group."""
        return state_table(self._runs, self._rows[self._runs.last_versions], self._saved)

    def _total(self, total: Total, prefix: str) -> Vector:
        """After each run."""
        coefficients, start, used = self._root(dict(self._relation.curves)[total.argument])
        integrals = root_integrals(coefficients, offset(start, self._at))
        weights = np.where(used[self._row], self._signs, 0)
        whole = self._sums(integrals[self._row], weights, prefix)
        covered = self._covered(used, f"{prefix}covered")
        there = covered > 0
        if total.kind == "mean":
            whole = whole / np.where(there, covered / SECOND, 1.0)
        return Vector(DOUBLE, np.where(there, whole, 0.0), None if there.all() else there)

    def _root(self, curve: Curve) -> tuple[Floats, Ints, Mask]:
        """What each row has under its root, since when, and which rows count: not those without a
        value."""
        columns = self._frame.columns
        values = np.stack([np.asarray(columns[n].data, np.float64) for n in curve.coefficients], 1)
        used: Mask = np.logical_and.reduce(np.isfinite(values), axis=1)
        valid = columns[curve.coefficients[0]].valid
        if valid is not None:
            used = used & valid
        values = padded(np.where(used[:, np.newaxis], values, 0.0), 3)
        return np.ascontiguousarray(values), np.asarray(columns[curve.start].data), used

    def _sums(self, values: Floats, weights: Ints, prefix: str) -> Floats:
        """Exact sums of each group after each run, rounded once."""
        runs_, name = self._runs, f"{prefix}l"
        weights = weights[runs_.order]
        touched = exact.double_limb_range(values, runs_.order, weights)
        low, width = limb_span(self._loaded, name, touched)
        limbs = stored_limbs(self._loaded, name, low, width)
        special = stored_specials(self._loaded, prefix)
        found = np.empty(runs_.runs)
        exact.running_doubles(
            values, runs_.order, weights, runs_.run, runs_.group_of_run, limbs, special, low, found
        )
        self._saved |= limb_columns(limbs, name, low) | special_columns(special, prefix)
        return found

    def _covered(self, used: Mask, name: str) -> Ints:
        """The microseconds that the rows of each group cover after each run."""
        start = np.asarray(self._frame.columns[START].data)
        passed = np.where(used, self._at - start, 0)
        versions = self._running(self._signs * passed[self._row], name)
        self._saved[name] = versions[self._runs.last_versions]
        return versions[self._runs.groups :]

    def _running(self, weights: Ints, name: str) -> Ints:
        return running_counts(weights[self._runs.order], self._runs, self._loaded.ints(name))
