"""GROUP BY: from changes of rows to revisions of group rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.exec.accumulators import Accumulator, Columns, Extreme, Loaded, accumulator
from thalweg.exec.context import Reject, TaskContext
from thalweg.exec.exact import running_counts
from thalweg.exec.expressions import evaluate
from thalweg.exec.frame import Changes, Frame, Ints
from thalweg.exec.groups import Runs, sort_into_runs
from thalweg.exec.groupstate import ROWS, StatePack, look_up, side_table, state_table
from thalweg.exec.vector import Mask, Vector, concat, nulls
from thalweg.plan.physical import Grouping


@dataclass(slots=True)
class Revisions:
    """Per (group, instant): the group's row before and after, where there was or is one."""

    old: Frame
    new: Frame
    had: Mask
    has: Mask
    ts: Ints


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
    """Apply the changes; `start` is the instant at which a global aggregate comes into being,
    when it lies in this epoch."""
    keys, arguments, changes = _evaluated(ctx, grouping, changes)
    weight = changes.signs.astype(np.int64)
    ts, ends = changes.ts, changes.ends
    if not grouping.keys and start is not None:
        # an event without weight makes the one group appear even over nothing
        weight, ts = np.append(weight, 0), np.append(ts, start)
        ends = None if ends is None else np.append(ends, start)
        arguments = [a if a is None else concat([a, nulls(a.type, 1)]) for a in arguments]
    runs = sort_into_runs(keys, ts)
    accumulators = [accumulator(a.call, f"a{i}") for i, a in enumerate(grouping.aggregates)]
    types = {a.prefix: a.type for a in accumulators if isinstance(a, Extreme)}
    loaded = look_up(ctx, packs, runs, types)
    for one, argument in zip(accumulators, arguments, strict=True):
        one.advance(argument, weight, ends, runs, loaded)
    counts = _row_counts(weight, runs, loaded)
    revisions = _revisions(grouping, keys, runs, accumulators, counts, loaded)
    return _saved(runs, accumulators, counts, revisions)


def _evaluated(
    ctx: TaskContext, grouping: Grouping, changes: Changes
) -> tuple[list[Vector], list[Vector | None], Changes]:
    """Keys and arguments per change; rows on which one of them errs are rejected."""
    frame = changes.frame
    named = [(k.name, k.expr) for k in grouping.keys]
    named += [
        (str(a.call.argument), a.call.argument)
        for a in grouping.aggregates
        if a.call.argument is not None
    ]
    found = [evaluate(e, frame.columns, frame.length, ctx.functions) for _, e in named]
    bad = _first_errors(found, frame.length)
    if (bad >= 0).any():
        _reject(ctx, changes, [n for n, _ in named], found, bad)
        kept = np.flatnonzero(bad < 0)
        changes = changes.take(kept)
        found = [v.take(kept) for v in found]
    keys = [_normalized(v) for v in found[: len(grouping.keys)]]
    rest = iter(found[len(grouping.keys) :])
    arguments = [None if a.call.argument is None else next(rest) for a in grouping.aggregates]
    return keys, arguments, changes


def _normalized(vector: Vector) -> Vector:
    """Group keys show one zero and one NaN."""
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


def _row_counts(weight: Ints, runs: Runs, loaded: Loaded) -> Ints:
    init = loaded.ints(ROWS)
    after = np.zeros(runs.runs, np.int64)
    running_counts(weight[runs.order], runs.run, runs.group_of_run, init, after)
    return np.concatenate([init, after])


def _heads(runs: Runs) -> Ints:
    """The first run of every group."""
    return np.append(0, np.flatnonzero(np.diff(runs.group_of_run)) + 1)[: runs.groups]


def _before(versions: Vector, heads: Ints, groups: int) -> Vector:
    """The version before each run: the run before it, or the group's stored state."""

    def shifted(array: Any) -> Any:
        moved = np.empty(len(array) - groups, array.dtype)
        moved[1:] = array[groups:-1]
        moved[heads] = array[:groups]
        return moved

    if not isinstance(versions.data, np.ndarray):
        return versions.take(shifted(np.arange(len(versions))))
    valid = None if versions.valid is None else shifted(versions.valid)
    errors = None if versions.errors is None else shifted(versions.errors)
    return Vector(versions.type, shifted(versions.data), valid, errors)


def _revisions(
    grouping: Grouping,
    keys: list[Vector],
    runs: Runs,
    accumulators: list[Accumulator],
    counts: Ints,
    loaded: Loaded,
) -> Revisions:
    heads = _heads(runs)
    example = runs.example[runs.group_of_run]
    shared = {k.name: v.take(example) for k, v in zip(grouping.keys, keys, strict=True)}
    old, new = dict(shared), dict(shared)
    for named, one in zip(grouping.aggregates, accumulators, strict=True):
        versions = one.values()
        old[named.name] = _before(versions, heads, runs.groups)
        new[named.name] = _tail(versions, runs.groups)
    there = _there(grouping, counts, loaded, runs.groups)
    had = np.empty(runs.runs, np.bool_)
    had[1:] = there[runs.groups : -1]
    had[heads] = there[: runs.groups]
    has = there[runs.groups :]
    return Revisions(Frame(old, runs.runs), Frame(new, runs.runs), had, has, runs.instants)


def _there(grouping: Grouping, counts: Ints, loaded: Loaded, groups: int) -> Mask:
    """Which versions are rows: those of groups with members; a global aggregate always is one."""
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
    ends = np.append(_heads(runs)[1:] - 1, runs.runs - 1)
    last = runs.groups + ends
    columns: Columns = {}
    sides: dict[str, pa.Table] = {}
    for i, one in enumerate(accumulators):
        own, side = one.save(last)
        columns |= own
        if side is not None:
            sides[f"a{i}"] = side_table(side)
    return GroupResult(revisions, state_table(runs, counts[last], columns), sides)
