"""LAG, LEAD and ROW_NUMBER: columns over the order of a stream within a partition.

The state is the last rows of each partition with their numbers; older rows are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.frame import Changes, Frame, empty_frame
from thalweg.columns.runs import sort_into_runs
from thalweg.columns.vector import Vector, arrow_vector, constant, from_arrow
from thalweg.exec.aggregate.group_by import normalized
from thalweg.exec.context import TaskContext
from thalweg.exec.leaves.order_lifetimes import in_stream_order
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import Ints
from thalweg.plan.expr import Literal
from thalweg.plan.logical import SequenceColumn
from thalweg.plan.relations.over import Sequenced
from thalweg.plan.state_slots import LAST
from thalweg.plan.types import BIGINT
from thalweg.store.packs import TIME

NUMBER = "__number"


@dataclass(slots=True)
class _Ordered:
    """Rows partition by partition in the order of the stream; `place` counts the present rows
    within their partition, `size` is that of the partition."""

    table: pa.Table
    ts: Ints
    number: Ints
    place: Ints
    size: Ints


def sequence(
    ctx: TaskContext, relation: Sequenced, tables: Sequence[pa.Table]
) -> tuple[Changes, pa.Table | None]:
    """The rows that appear in this epoch, and the state after it. `tables` are the state before it
    (which has numbers) and the arriving rows."""
    filled = [t for t in tables if t.num_rows]
    if not filled:
        none = np.empty(0, np.int64)
        return Changes(empty_frame(relation.schema), none, none.astype(np.int8)), None
    rows = _ordered(relation, pa.concat_tables(filled, promote_options="default"))
    ahead = relation.lookahead
    known = np.flatnonzero(rows.place + ahead < rows.size)
    known = known[rows.ts[known + ahead] >= ctx.since]
    frame = _frame(relation, rows, known)
    changes = Changes(frame, rows.ts[known + ahead], np.ones(len(known), np.int8))
    last = np.flatnonzero(rows.place >= rows.size - max(ahead + relation.lookback, 1))
    return changes, rows.table.take(pa.array(last)).combine_chunks()


def _ordered(relation: Sequenced, table: pa.Table) -> _Ordered:
    table = table.combine_chunks()
    ts = table.column(TIME).to_numpy()
    leaf = relation.leaf
    by = [arrow_vector(table, leaf.bare(c)) for c in relation.partition_by]
    runs = sort_into_runs([normalized(v) for v in by], ts)
    order = in_stream_order(runs, table, [*leaf.order_by, *leaf.stream_columns])
    partition = runs.group_of_run[runs.run]
    sizes = np.bincount(partition, minlength=runs.groups)
    first = np.cumsum(sizes) - sizes
    place = np.arange(len(order)) - first[partition]
    ordered = table.take(pa.array(order))
    stored = np.ones(len(order), np.int64)
    if NUMBER in ordered.column_names:
        stored = ordered.column(NUMBER).combine_chunks().fill_null(1).to_numpy()
        ordered = ordered.drop_columns([NUMBER])
    number = stored[first][partition] + place
    ordered = ordered.append_column(NUMBER, pa.array(number))
    return _Ordered(ordered, ts[order], number, place, sizes[partition])


def _frame(relation: Sequenced, rows: _Ordered, known: Ints) -> Frame:
    leaf = relation.leaf
    columns = {
        f.name: from_arrow(rows.table.column(leaf.bare(f.name)), f.type).take(known)
        for f in leaf.fields
    }
    for column in relation.columns:
        columns[column.name] = _computed(relation, column, rows, known)
    return Frame(columns, len(known))


def _computed(relation: Sequenced, column: SequenceColumn, rows: _Ordered, known: Ints) -> Vector:
    if column.function == "row_number":
        return Vector(BIGINT, rows.number[known])
    offset = column.offset if column.function == "lead" else -column.offset
    at = rows.place[known] + offset
    there = (at >= 0) & (at < rows.size[known])
    source = from_arrow(rows.table.column(relation.leaf.bare(column.column)), column.type)
    found = source.take(np.where(there, known + offset, 0))
    valid = there if found.valid is None else found.valid & there
    if column.default is None:
        return Vector(column.type, found.data, valid)
    default = constant(Literal(column.type, False, column.default), len(known))
    whole = Vector(column.type, found.data, valid).to_arrow()
    other = default.to_arrow()
    return from_arrow(pc.if_else(pa.array(there), whole, other), column.type)


@runs(Sequenced)
def run_sequenced(step: RelationStep, relation: Sequenced) -> Changes:
    changes, last = sequence(step.ctx, relation, [*step.tables(LAST), *step.arriving(0)])
    step.keep(LAST, last)
    return changes
