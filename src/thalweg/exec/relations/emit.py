"""Output of the final relation's changes: ISTREAM, DSTREAM, relation, RSTREAM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, arrow_columns, concat_changes, concat_frames
from thalweg.columns.netting import same_rows
from thalweg.columns.sort_codes import lexical_order, order_codes, row_codes
from thalweg.columns.vector import Mask, Vector, from_arrow
from thalweg.exec.aggregate.group_by import Revisions
from thalweg.exec.context import Reject, TaskContext
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.exec.predicates.conjunction import judge, reject
from thalweg.instants import BEFORE_TIME, Ints
from thalweg.numeric.exact import running_counts
from thalweg.plan.expr import Column, UserCall, walk
from thalweg.plan.logical import EmitKind, Named, Schema
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.block import Block
from thalweg.store import native
from thalweg.store.packs import TIME, PackMeta

SIGN, COUNT = "__sign", "__count"


def project(
    ctx: TaskContext, block: Block, frame: Frame, ts: Ints, note: bool
) -> tuple[Frame, Ints | None]:
    """The output columns, and which rows have them (None: all); a row with an error is rejected."""
    kept: Ints | None = None
    if block.grouping is not None:
        good = _without_errors(ctx, frame, ts, frame.columns, {}, note)
        frame, kept = _cut(frame, kept, good)
    if block.having and frame.length:
        judged = judge(block.having, frame.columns, frame.length, ctx)
        if note and len(judged.erring):
            reject(judged, frame, _at(ts, kept), ctx)
        frame, kept = _cut(frame, kept, judged.passing)
    columns = {
        c.name: evaluate(c.expr, frame.columns, frame.length, ctx.functions) for c in block.columns
    }
    labels = {c.name: _label(c) for c in block.columns}
    good = _without_errors(ctx, frame, _at(ts, kept), columns, labels, note)
    return _cut(Frame(columns, frame.length), kept, good)


def _cut(frame: Frame, kept: Ints | None, good: Ints | None) -> tuple[Frame, Ints | None]:
    """Restrict the rows kept so far to the good ones."""
    if good is None or len(good) == frame.length:
        return frame, kept
    return frame.take(good), good if kept is None else kept[good]


def _at(array: Ints, rows: Ints | None) -> Ints:
    return array if rows is None else array[rows]


def _label(column: Named) -> str:
    """The label under which a column's rejects are filed: its name, and the user functions it
    calls."""
    called = dict.fromkeys(e.name for e in walk(column.expr) if isinstance(e, UserCall))
    if not called:
        return column.name
    return f"{', '.join(f'{name}(...)' for name in called)} AS {column.name}"


def _without_errors(
    ctx: TaskContext,
    frame: Frame,
    ts: Ints,
    columns: Mapping[str, Vector],
    labels: Mapping[str, str],
    note: bool,
) -> Ints | None:
    """The rows on which none of the columns errs (None: all); the others are rejected under the
    first that does."""
    erring = {name: v.errors for name, v in columns.items() if v.errors is not None}
    if not erring:
        return None
    bad = np.zeros(frame.length, np.bool_)
    for name, errors in erring.items():
        fresh = np.flatnonzero((errors != 0) & ~bad)
        if note and len(fresh):
            label = labels.get(name, name)
            ctx.rejects.append(Reject(label, errors[fresh], ts[fresh], frame.take(fresh)))
        bad |= errors != 0
    return np.flatnonzero(~bad)


def projected(ctx: TaskContext, block: Block, changes: Changes, note: bool) -> Changes:
    frame, rows = project(ctx, block, changes.frame, changes.ts, note)
    return Changes(
        frame, _at(changes.ts, rows), changes.signs if rows is None else changes.signs[rows]
    )


def revised(ctx: TaskContext, block: Block, revisions: Revisions, only_new: bool) -> Changes:
    """Revisions as changes: old rows vanish, new rows appear; a revision that changes no output
    column is dropped.

    With `only_new` the caller does not need the rows that vanish."""
    changed = ~revisions.unchanged
    new_rows = np.flatnonzero(revisions.has & changed)
    fresh = _picked(revisions.new, new_rows)
    new, kept_new = project(ctx, block, fresh, revisions.ts[new_rows], True)
    new_run = _at(new_rows, kept_new)
    if only_new and _shows_all(block):
        return Changes(new, revisions.ts[new_run], np.ones(len(new_run), np.int8))
    old_rows = np.flatnonzero(revisions.had & changed)
    gone = _picked(revisions.old(), old_rows)
    old, kept_old = project(ctx, block, gone, revisions.ts[old_rows], False)
    old_run = _at(old_rows, kept_old)
    drop_old, drop_new = _unchanged(old, old_run, new, new_run, len(revisions.ts))
    old, old_run = old.take(np.flatnonzero(~drop_old)), old_run[~drop_old]
    new, new_run = new.take(np.flatnonzero(~drop_new)), new_run[~drop_new]
    vanish = Changes(old, revisions.ts[old_run], np.full(len(old_run), -1, np.int8))
    appear = Changes(new, revisions.ts[new_run], np.ones(len(new_run), np.int8))
    return concat_changes([vanish, appear], block.schema)


def _picked(frame: Frame, rows: Ints) -> Frame:
    """The frame at ascending distinct rows; not copied if these are all."""
    return frame if len(rows) == frame.length else frame.take(rows)


def _shows_all(block: Block) -> bool:
    """Whether a changed group row always is a changed output row."""
    assert block.grouping is not None
    shown = {c.expr.name for c in block.columns if isinstance(c.expr, Column)}
    return not block.having and all(a.name in shown for a in block.grouping.aggregates)


def _unchanged(
    old: Frame, old_run: Ints, new: Frame, new_run: Ints, runs: int
) -> tuple[Mask, Mask]:
    """Masks of old and new rows that are the same row of the same run."""
    drop_old = np.zeros(old.length, np.bool_)
    drop_new = np.zeros(new.length, np.bool_)
    place = np.full(runs, -1, np.int64)
    place[old_run] = np.arange(len(old_run))
    j = np.flatnonzero(place[new_run] >= 0)
    i = place[new_run[j]]
    if len(j):
        left = [v.take(i) for v in old.columns.values()]
        right = [v.take(j) for v in new.columns.values()]
        same = same_rows(left, right, len(j))
        drop_old[i[same]] = True
        drop_new[j[same]] = True
    return drop_old, drop_new


def select_sign(changes: Changes, kind: EmitKind) -> Changes:
    if kind is EmitKind.RELATION:
        return changes
    wanted = 1 if kind is EmitKind.ISTREAM else -1
    rows = np.flatnonzero(changes.signs == wanted)
    return changes if len(rows) == len(changes) else changes.take(rows)


def output_table(plan: QueryPlan, changes: Changes) -> pa.Table | None:
    """Output rows with `__ts` (µs) and, for relations, `__sign`."""
    if not len(changes):
        return None
    columns = arrow_columns(changes.frame, plan.schema)
    columns[TIME] = pa.array(changes.ts)
    if plan.kind is EmitKind.RELATION:
        columns[SIGN] = pa.array(changes.signs)
    return pa.table(columns)


# -- RSTREAM -----------------------------------------------------------------------------------


def arrival_instants(ctx: TaskContext, packs: Sequence[PackMeta], since: int) -> Ints:
    """Instants of the epoch, not before `since`, at which rows of a stream arrive."""
    found = [
        ts[native.rows_between(ts, since, ctx.until)]
        for meta in packs
        if meta.max_ts >= since and meta.min_ts < ctx.until
        for ts in [ctx.cache.open(meta.name).ts]
    ]
    return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)


def repeat(
    schema: Schema, bag: Sequence[pa.Table], changes: Changes, instants: Ints
) -> tuple[Changes, pa.Table | None]:
    """RSTREAM: the whole relation at every instant, and the relation at the end, as distinct rows
    and how often each is there."""
    stored = [_unpacked(schema, t) for t in bag]
    frames = [f for f, _ in stored] + [changes.frame]
    frame = concat_frames(frames, schema)
    ts = np.concatenate([*(np.full(f.length, BEFORE_TIME) for f, _ in stored), changes.ts])
    weight = np.concatenate([*(c for _, c in stored), changes.signs.astype(np.int64)])
    emitted, last = expanded(frame, ts, weight, instants)
    return emitted, _final_bag(schema, frame, *last)


def expanded(
    frame: Frame, ts: Ints, weight: Ints, instants: Ints, *, distinct: bool = False
) -> tuple[Changes, tuple[Ints, Ints, Ints]]:
    """Rows that appear so many times, or vanish, at their times: as often as they are there (or
    once, if `distinct`), at each instant; and an example, the group and the count of each run of
    equal rows at one time."""
    code = row_codes(list(frame.columns.values()), frame.length)
    order = np.lexsort((ts, code))
    code, ts, weight = code[order], ts[order], weight[order]
    new_group = np.ones(len(code), np.bool_)
    new_group[1:] = code[1:] != code[:-1]
    new_run = new_group.copy()
    new_run[1:] |= ts[1:] != ts[:-1]
    starts = np.flatnonzero(new_run)
    group_of_run = (np.cumsum(new_group) - 1)[starts]
    after = np.zeros(len(starts), np.int64)
    groups = int(new_group.sum())
    running_counts(weight, np.cumsum(new_run) - 1, group_of_run, np.zeros(groups, int), after)
    shown = np.minimum(after, 1) if distinct else after
    emitted = _expanded(frame, order[starts], ts[starts], group_of_run, shown, instants)
    return emitted, (order[starts], group_of_run, after)


def _expanded(
    frame: Frame, example: Ints, begin: Ints, group: Ints, count: Ints, instants: Ints
) -> Changes:
    end = np.append(begin[1:], 0)
    last = np.append(group[1:] != group[:-1], True)
    first = np.searchsorted(instants, begin)
    stop = np.where(last, len(instants), np.searchsorted(instants, end))
    alive = count > 0
    spans = np.where(alive, stop - first, 0)
    run, position = native.expand_ranges(first, spans, int(spans.sum()))
    copies = count[run]
    run, position = np.repeat(run, copies), np.repeat(position, copies)
    return Changes(frame.take(example[run]), instants[position], np.ones(len(run), np.int8))


def in_order(plan: QueryPlan, changes: Changes) -> Changes:
    """Rows in the requested order within each instant, at most `limit` of them; ties are in the
    order of their content."""
    if not plan.order and plan.limit is None:
        return changes
    keys: list[Ints] = [changes.ts]
    for key in plan.order:
        column = changes.frame.columns[key.column]
        codes = order_codes([column])[0]
        if column.valid is not None:
            codes = np.where(column.valid, codes, 0)
            keys.append(np.where(column.valid, key.nulls_first, not key.nulls_first).astype(int))
        keys.append(~codes if key.descending else codes)
    order = lexical_order(list(changes.frame.columns.values()), keys)
    if plan.limit is not None:
        ts = changes.ts[order]
        order = order[np.arange(len(ts)) - np.searchsorted(ts, ts) < plan.limit]
    return changes.take(order)


def _final_bag(
    schema: Schema, frame: Frame, example: Ints, group: Ints, count: Ints
) -> pa.Table | None:
    last = np.flatnonzero(np.append(group[1:] != group[:-1], True)) if len(group) else group
    last = last[count[last] > 0]
    if not len(last):
        return None
    rows = frame.take(example[last])
    columns = arrow_columns(rows, schema)
    columns[COUNT] = pa.array(count[last])
    columns[TIME] = pa.array(np.zeros(len(last), np.int64))
    return pa.table(columns)


def _unpacked(schema: Schema, table: pa.Table) -> tuple[Frame, Ints]:
    columns = {f.name: from_arrow(table.column(f.name), f.type) for f in schema}
    return Frame(columns, table.num_rows), table.column(COUNT).to_numpy()
