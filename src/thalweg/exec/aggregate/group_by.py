"""GROUP BY: from changes of rows to revisions of group rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.aggregates import accumulator
from thalweg.aggregates.accumulator import Accumulator, Arguments, Columns, Loaded, sign_runs
from thalweg.columns.frame import Changes, Frame
from thalweg.columns.netting import same_rows
from thalweg.columns.runs import Runs, sort_into_runs
from thalweg.columns.vector import Mask, Vector, concat, nulls
from thalweg.exec.aggregate.group_state import (
    CLOSES,
    ROWS,
    StatePack,
    look_up,
    side_table,
    state_table,
)
from thalweg.exec.context import Reject, TaskContext
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.instants import AFTER_TIME, Ints
from thalweg.plan.relations.block import Grouping
from thalweg.plan.types import DATE


@dataclass(slots=True)
class Revisions:
    """Per (group, instant): whether the group has a row after it (`has`), whether it had one before
    (`had`), and whether the two are the same.

    `versions` are the aggregates' values: first of the groups' stored states, then of every run.
    """

    new: Frame
    had: Mask
    has: Mask
    unchanged: Mask
    ts: Ints
    heads: Ints
    versions: dict[str, Vector]

    def old(self) -> Frame:
        """The groups' rows before."""
        before = {
            name: _before(versions, self.heads, len(self.heads))
            for name, versions in self.versions.items()
        }
        return self.new.merged(before)


@dataclass(slots=True)
class GroupResult:
    revisions: Revisions
    state: pa.Table | None
    sides: dict[str, pa.Table]


def aggregate(
    ctx: TaskContext,
    grouping: Grouping,
    changes: Changes,
    packs: Sequence[StatePack],
    start: int | None,
) -> GroupResult:
    """Apply the changes; `start` is the instant at which a global aggregate begins to exist, when
    it lies in this epoch."""
    keys, arguments, changes = _evaluated(ctx, grouping, changes)
    weight, ts, ends = changes.signs, changes.ts, changes.ends
    if not grouping.keys and start is not None:
        # an event without weight makes the one group appear even over an empty input
        weight, ts = np.append(weight, np.int8(0)), np.append(ts, start)
        ends = None if ends is None else np.append(ends, start)
        arguments = [tuple(concat([v, nulls(v.type, 1)]) for v in own) for own in arguments]
    runs = sort_into_runs(keys, ts)
    accumulators = [accumulator(a.call, f"a{i}") for i, a in enumerate(grouping.aggregates)]
    types = {f"a{i}": a.side_types for i, a in enumerate(accumulators) if a.side_types}
    loaded = look_up(ctx, packs, runs, types)
    signed = sign_runs(weight, ends, runs, loaded, ROWS)
    for one, own in zip(accumulators, arguments, strict=True):
        one.advance(own, signed, loaded)
    revisions = _revisions(grouping, keys, runs, accumulators, signed.members, loaded)
    found = _saved(runs, accumulators, signed.members, revisions)
    appeared = int(np.count_nonzero(revisions.has & ~revisions.had))
    ctx.counts["groups"] += appeared - int(np.count_nonzero(revisions.had & ~revisions.has))
    if grouping.closing is not None and found.state is not None:
        closes = _closing_instants(grouping, keys, runs)
        _count_openings(ctx, closes, loaded)
        found.state = found.state.append_column(CLOSES, pa.array(closes))
    return found


def _closing_instants(grouping: Grouping, keys: list[Vector], runs: Runs) -> Ints:
    """The instant at which each group is complete; a group without time (NULL) never is."""
    assert grouping.closing is not None
    place = [k.name for k in grouping.keys].index(grouping.closing.key)
    values = keys[place].take(runs.example)
    micros = np.asarray(values.data).astype(np.int64)
    if values.type == DATE:
        micros = micros * _DAY
    closes = micros + grouping.closing.period
    return closes if values.valid is None else np.where(values.valid, closes, AFTER_TIME)


def _count_openings(ctx: TaskContext, closes: Ints, loaded: Loaded) -> None:
    """New groups by the instant at which they close."""
    instants, counts = np.unique(closes[loaded.rows < 0], return_counts=True)
    for instant, count in zip(instants.tolist(), counts.tolist(), strict=True):
        ctx.counts[f"{OPENS}{instant}"] += count


OPENS = "opens:"
_DAY = 86_400_000_000


def _evaluated(
    ctx: TaskContext, grouping: Grouping, changes: Changes
) -> tuple[list[Vector], list[Arguments], Changes]:
    """Keys and arguments per change; rows on which evaluating one of them fails are rejected."""
    frame = changes.frame
    named = [(k.name, k.expr) for k in grouping.keys]
    named += [(str(e), e) for a in grouping.aggregates for e in a.call.arguments]
    found = [evaluate(e, frame.columns, frame.length, ctx.functions) for _, e in named]
    bad = _first_errors(found, frame.length)
    if (bad >= 0).any():
        _reject(ctx, changes, [n for n, _ in named], found, bad)
        kept = np.flatnonzero(bad < 0)
        changes = changes.take(kept)
        found = [v.take(kept) for v in found]
    keys = [normalized(v) for v in found[: len(grouping.keys)]]
    rest = iter(found[len(grouping.keys) :])
    arguments = [tuple(next(rest) for _ in a.call.arguments) for a in grouping.aggregates]
    return keys, arguments, changes


def normalized(vector: Vector) -> Vector:
    """Group keys normalised to one zero and one NaN."""
    if not vector.type.is_float:
        return vector
    data = np.asarray(vector.data) + 0.0
    return Vector(vector.type, data, vector.valid, vector.errors)


def _first_errors(found: list[Vector], length: int) -> Ints:
    first = np.full(length, -1, np.int64)
    for i in reversed(range(len(found))):
        errors = found[i].errors
        if errors is not None:
            first[errors != 0] = i
    return first


def _reject(
    ctx: TaskContext, changes: Changes, names: list[str], found: list[Vector], bad: Ints
) -> None:
    for i, name in enumerate(names):
        rows = np.flatnonzero((bad == i) & (changes.signs > 0))
        errors = found[i].errors
        if len(rows) and errors is not None:
            ctx.rejects.append(
                Reject(name, errors[rows], changes.ts[rows], changes.frame.take(rows))
            )


def _before(versions: Vector, heads: Ints, groups: int) -> Vector:
    """The version before each run: the run before it, or the group's stored state."""

    if not isinstance(versions.data, np.ndarray):
        return versions.take(shifted(np.arange(len(versions)), heads, groups))
    valid = None if versions.valid is None else shifted(versions.valid, heads, groups)
    errors = None if versions.errors is None else shifted(versions.errors, heads, groups)
    return Vector(versions.type, shifted(versions.data, heads, groups), valid, errors)


def shifted(array: Any, heads: Ints, groups: int) -> Any:
    moved = np.empty(len(array) - groups, array.dtype)
    moved[1:] = array[groups:-1]
    moved[heads] = array[:groups]
    return moved


def _revisions(
    grouping: Grouping,
    keys: list[Vector],
    runs: Runs,
    accumulators: list[Accumulator],
    counts: Ints,
    loaded: Loaded,
) -> Revisions:
    heads = runs.heads
    example = runs.example[runs.group_of_run]
    new = {k.name: v.take(example) for k, v in zip(grouping.keys, keys, strict=True)}
    versions = {n.name: a.values() for n, a in zip(grouping.aggregates, accumulators, strict=True)}
    new |= {name: _tail(vector, runs.groups) for name, vector in versions.items()}
    there = _there(grouping, counts, loaded, runs.groups)
    had = shifted(there, heads, runs.groups)
    has = there[runs.groups :]
    unchanged = had == has
    for vector in versions.values():
        unchanged &= _repeats(vector, heads, runs.groups)
    return Revisions(Frame(new, runs.runs), had, has, unchanged, runs.instants, heads, versions)


def _repeats(versions: Vector, heads: Ints, groups: int) -> Mask:
    """Which runs leave the aggregate's value unchanged."""
    if not isinstance(versions.data, np.ndarray):
        old = _before(versions, heads, groups)
        return same_rows([old], [_tail(versions, groups)], len(versions) - groups)
    same = _like_before(versions.data, heads, groups)
    if versions.type.is_float:
        unknown = np.isnan(versions.data)
        if unknown.any():
            same |= unknown[groups:] & shifted(unknown, heads, groups)
    if versions.valid is not None:
        valid = versions.valid[groups:]
        same = (same | ~valid) & _like_before(versions.valid, heads, groups)
    return same


def _like_before(array: Any, heads: Ints, groups: int) -> Mask:
    """Whether each run's entry equals the one before it, without materialising the two side by
    side."""
    same = np.empty(len(array) - groups, np.bool_)
    np.equal(array[groups + 1 :], array[groups:-1], out=same[1:])
    same[heads] = array[groups + heads] == array[:groups]
    return same


def _there(grouping: Grouping, counts: Ints, loaded: Loaded, groups: int) -> Mask:
    """Which versions are rows: those of groups that have input rows; a global aggregate always is
    one."""
    if grouping.keys:
        return counts > 0
    there = np.ones(len(counts), np.bool_)
    there[:groups] = loaded.rows >= 0
    return there


def _tail(vector: Vector, start: int) -> Vector:
    """The rows from `start` on, without a copy."""
    assert isinstance(vector.data, np.ndarray) or vector.errors is None
    valid = None if vector.valid is None else vector.valid[start:]
    errors = None if vector.errors is None else vector.errors[start:]
    return Vector(vector.type, vector.data[start:], valid, errors)


def _saved(
    runs: Runs, accumulators: list[Accumulator], counts: Ints, revisions: Revisions
) -> GroupResult:
    if not runs.groups:
        return GroupResult(revisions, None, {})
    last = runs.last_versions
    columns: Columns = {}
    sides: dict[str, pa.Table] = {}
    for i, one in enumerate(accumulators):
        own, side = one.save(last)
        columns |= own
        if side is not None:
            sides[f"a{i}"] = side_table(side)
    return GroupResult(revisions, state_table(runs, counts[last], columns), sides)
