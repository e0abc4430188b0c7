"""Several functions of each group, side by side: those of groups that have all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from thalweg.aggregates.accumulator import Columns, Loaded, running_counts
from thalweg.columns.frame import Changes, Frame, concat_changes, concat_frames
from thalweg.columns.netting import net
from thalweg.columns.runs import Runs, sort_into_runs
from thalweg.columns.vector import Mask, Vector
from thalweg.exec.aggregate.group_by import normalized, shifted
from thalweg.exec.aggregate.group_state import look_up, state_table
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import Ints
from thalweg.models.functions.curve import START, Curves
from thalweg.models.relations.groups import by_words, grouped_need
from thalweg.plan.logical import Field, Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation
from thalweg.plan.state_slots import SlotKind, SlotRule
from thalweg.plan.types import BIGINT, DOUBLE

PARTS = SlotKind("parts", SlotRule.NEWEST, "functions by group")


def start_of(part: int) -> str:
    """The column of a part's reference instant."""
    return f"{START}{part}"


@dataclass(frozen=True, slots=True)
class Combine(Node):
    """The columns of the parts, each of which has at most one row for each group at an instant."""

    parts: tuple[Node, ...]
    keys: tuple[str, ...]
    curves: tuple[Curves, ...]

    @property
    def made(self) -> Curves:
        """The modeled columns, by the starts that they have here."""
        return tuple(
            (name, replace(curve, start=start_of(i)))
            for i, curves in enumerate(self.curves)
            for name, curve in curves
        )

    @property
    def schema(self) -> Schema:
        found = [f for f in self.parts[0].schema if f.name in self.keys]
        for i, part in enumerate(self.parts):
            found += [_renamed(f, i) for f in part.schema if f.name not in self.keys]
        return tuple(found)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, inputs: tuple[Node, ...]) -> Combine:
        return replace(self, parts=inputs)

    def reads(self) -> Iterator[str]:
        for part in self.parts:
            yield from (f.name for f in part.schema)


def _renamed(one: Field, part: int) -> Field:
    return replace(one, name=start_of(part)) if one.name == START else one


@dataclass(frozen=True, slots=True)
class Combined(Relation):
    slots = (PARTS,)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    keys: tuple[str, ...]

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return tuple(grouped_need(self.keys) for _ in self.inputs)

    def shows(self, place: int, column: str) -> frozenset[str]:
        return frozenset((column,)) & frozenset(self.keys)

    def explained(self, show: Describer) -> list[str]:
        return [f"  {show.inputs(self.inputs)} side by side{by_words(self.keys)}"]


@lowers(Combine)
def _lower(drafts: Drafts, node: Combine) -> int:
    below = tuple(drafts.relation(part) for part in node.parts)
    return drafts.append(Combined(below, node.schema, node.keys))


# -- running ---------------------------------------------------------------------------------------


@runs(Combined)
def run_combined(step: RelationStep, relation: Combined) -> Changes:
    sides = step.raw_inputs()
    if not any(map(len, sides)):
        return concat_changes([], relation.schema)
    keys = tuple(f for f in relation.schema if f.name in relation.keys)
    frame = concat_frames([s.frame.select(relation.keys) for s in sides], keys)
    ts = np.concatenate([s.ts for s in sides])
    frame = Frame(frame.columns, len(ts))
    runs_ = sort_into_runs([normalized(frame.columns[k]) for k in relation.keys], ts)
    loaded = look_up(step.ctx, step.stored(PARTS), runs_, {})
    there = np.ones(runs_.groups + runs_.runs, np.bool_)
    columns: dict[str, Vector] = {}
    saved: Columns = {}
    rows = np.zeros(len(there), np.int64)
    first = 0
    for i, side in enumerate(sides):
        place = np.full(len(ts), -1, np.int64)
        place[first : first + len(side)] = np.arange(len(side))
        first += len(side)
        own = _Part(side, place[runs_.order], runs_, loaded, f"n{i}")
        columns |= own.columns(relation, i, saved)
        saved[f"n{i}"] = own.counts[runs_.last_versions]
        there &= own.counts > 0
        rows += own.counts
    step.keep(PARTS, state_table(runs_, rows[runs_.last_versions], saved))
    group = np.concatenate([np.arange(runs_.groups), runs_.group_of_run])
    versions = frame.take(runs_.example[group]).merged(columns)
    return net(_replaced(versions, there, runs_))


def _replaced(versions: Frame, there: Mask, runs_: Runs) -> Changes:
    """Each version takes the place of the one before it."""
    before = shifted(np.arange(len(there)), runs_.heads, runs_.groups)
    gone, new = np.flatnonzero(there[before]), np.flatnonzero(there[runs_.groups :])
    return Changes(
        versions.take(np.concatenate([before[gone], new + runs_.groups])),
        runs_.instants[np.concatenate([gone, new])],
        np.repeat([-1, 1], [len(gone), len(new)]).astype(np.int8),
    )


class _Part:
    """One function of each group, in all versions: as stored, then after each run. `place` is the
    row of each change in the order of runs, -1 if it is one of another part."""

    def __init__(self, side: Changes, place: Ints, runs_: Runs, loaded: Loaded, name: str) -> None:
        self._side, self._loaded, self._groups = side, loaded, runs_.groups
        own = np.flatnonzero(place >= 0)
        weight = np.zeros(len(place), np.int64)
        weight[own] = side.signs[place[own]]
        self.counts = running_counts(weight, runs_, loaded.ints(name))
        fresh = own[weight[own] > 0]
        setter = np.full(runs_.runs, -1, np.int64)
        setter[runs_.run[fresh]] = place[fresh]
        # the newest row of the group up to each run; before it, what is stored
        newest = np.maximum.accumulate(np.where(setter >= 0, np.arange(runs_.runs), -1))
        known = newest >= runs_.heads[runs_.group_of_run]
        self._row = np.where(known, setter[newest], -1)
        self._stored = np.concatenate([np.arange(runs_.groups), runs_.group_of_run])
        self._last = runs_.last_versions

    def columns(self, relation: Combined, part: int, saved: Columns) -> dict[str, Vector]:
        """The values of all versions; those that are to be stored are `saved`."""
        found = {}
        for one in self._side.frame.columns:
            if one in relation.keys:
                continue
            name = start_of(part) if one == START else one
            vector = self._values(one, name)
            found[name] = vector
            values = np.asarray(vector.data)[self._last]
            if vector.valid is not None:
                values = np.where(vector.valid[self._last], values, np.nan)
            saved[f"v{name}"] = values
        return found

    def _values(self, column: str, name: str) -> Vector:
        given = self._side.frame.columns[column]
        known = np.flatnonzero(self._row >= 0)
        rows = self._row[known]
        if given.type == BIGINT:
            ints = self._loaded.ints(f"v{name}")[self._stored]
            ints[self._groups + known] = np.asarray(given.data)[rows]
            return Vector(BIGINT, ints)
        values = self._loaded.floats(f"v{name}")[self._stored]
        data = np.asarray(given.data)[rows]
        if given.valid is not None:
            data = np.where(given.valid[rows], data, np.nan)
        values[self._groups + known] = data
        valid = ~np.isnan(values)
        return Vector(DOUBLE, np.where(valid, values, 0.0), None if valid.all() else valid)
