"""Matching of a stream's rows with the members of a shared filter, each row once.

A row goes into the result together with the set of members that want it. Rows wanted by the same
members share the set: it is an entry of a dictionary, and a row has its number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.columns.frame import Changes, arrow_columns
from thalweg.columns.vector import Vector
from thalweg.exec.context import TaskContext
from thalweg.exec.predicates.ask import Questions
from thalweg.exec.shared_filters.cells import NULL, Cells
from thalweg.exec.shared_filters.member_roll import Ids, Roll, index_of, question
from thalweg.exec.shared_filters.member_sets import with_sets
from thalweg.exec.shared_filters.predicate_index import Matches, PredicateIndex
from thalweg.plan.expr import Predicate
from thalweg.plan.logical import Schema
from thalweg.store import native
from thalweg.store.packs import TIME


def wanted_rows(ctx: TaskContext, roll: Roll, changes: Changes, schema: Schema) -> pa.Table | None:
    """The rows that at least one member wants, with `__ts` and the set of those members."""
    rows = len(changes)
    if not rows:
        return None
    columns = changes.frame.columns
    answers = _answered(ctx, roll, columns, rows)
    found = None
    for pack in roll.packs:
        index, ids = index_of(ctx.cache, pack, schema)
        one = _named(_matched(index, columns, answers, rows), ids)
        found = one if found is None else _together(found, one)
    ctx.counts["matched rows"] += rows
    if found is None:
        return None
    found = _without(found, np.array(roll.struck, np.int32))
    count = np.diff(found.begin)
    kept = np.flatnonzero(count[found.kind])
    if not len(kept):
        return None
    chosen = changes.take(kept)
    table = pa.table(arrow_columns(chosen.frame, schema) | {TIME: pa.array(chosen.ts)})
    ctx.counts["matches"] += int(count[found.kind[kept]].sum())
    return with_sets(table, found, kept)


def _answered(
    ctx: TaskContext, roll: Roll, columns: dict[str, Vector], rows: int
) -> dict[str, Vector]:
    """Evaluate conditions that no index supports, once per row for all members that have them."""
    asked = Questions(columns, rows, ctx)
    everything = np.arange(rows)
    found = {}
    for text, expr in roll.rest:
        true, _ = asked.ask(Predicate(expr, 0, text), everything)
        found[question(text)] = Vector(expr.type, true.astype(np.int8))
    return found


def _matched(
    index: PredicateIndex, columns: dict[str, Vector], answers: dict[str, Vector], rows: int
) -> Matches:
    known = columns | answers
    cells = {name: _cells(index, name, known[name]) for name in index.columns}
    return index.match_cells(cells, rows)


def _cells(index: PredicateIndex, name: str, vector: Vector) -> Cells:
    cells = index.cells_of(name)
    if isinstance(vector.data, np.ndarray):
        return cells.of(vector.data, vector.valid)
    coded = vector.data.dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    distinct = np.array(coded.dictionary.to_pylist(), np.object_)
    if not len(distinct):
        return np.full(len(coded), NULL)
    codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    found: Cells = cells.of(distinct)[codes]
    if coded.null_count:
        found[coded.is_null().to_numpy(zero_copy_only=False)] = NULL
    if vector.valid is not None:
        found[~vector.valid] = NULL
    return found


def _named(matches: Matches, ids: Ids) -> Matches:
    return Matches(matches.kind, matches.begin, ids[matches.queries])


def _together(left: Matches, right: Matches) -> Matches:
    """Matches with two rolls combined: a kind is a pair of a kind of each."""
    many = len(right.begin) - 1
    code = left.kind.astype(np.int64) * many + right.kind
    distinct, kind = np.unique(code, return_inverse=True)
    parts = [(left, distinct // many), (right, distinct % many)]
    counts = [np.diff(one.begin)[kinds] for one, kinds in parts]
    whose, members = [], []
    for (one, kinds), count in zip(parts, counts, strict=True):
        owner, at = native.expand_ranges(one.begin[:-1][kinds], count, int(count.sum()))
        whose.append(owner)
        members.append(one.queries[at])
    order = np.argsort(np.concatenate(whose), kind="stable")
    begin = np.concatenate([[0], np.cumsum(counts[0] + counts[1])])
    return Matches(kind.astype(np.int32), begin, np.concatenate(members)[order])


def _without(matches: Matches, struck: npt.NDArray[np.int32]) -> Matches:
    if not len(struck):
        return matches
    kept = ~np.isin(matches.queries, struck)
    whole = np.concatenate([[0], np.cumsum(kept)])
    return Matches(matches.kind, whole[matches.begin], matches.queries[kept])
