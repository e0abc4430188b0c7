"""Output that is held back until the windows of a query are filled.

While the windows of a query are being filled from the past, its changes are added up instead of
being put out. When the filling is done, the sum is the base of a new query's answer; of another
version of a query that has been running, the difference to the old answer is put out, at the
instant at which the new version takes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from thalweg.exec.leaves.subrelation import WEIGHT, summed
from thalweg.exec.relations.emit import SIGN
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.results.current_answer import add_to, weighted
from thalweg.runtime.state.query_state import Described, QueryState
from thalweg.store.packs import TIME, PackMeta, fresh_name, write_pack
from thalweg.store.storage import Storage


def add_up(
    query: QueryState, plan: QueryPlan, packs: Sequence[PackMeta], storage: Storage, prefix: str
) -> list[str]:
    """Add the output of a silent step up; returns the files that are superfluous then."""
    gone = [p.name for p in packs]
    if plan.kind is EmitKind.RELATION and packs:
        gone += [p[0] for p in query.output.pending]
        described = [p.to_json() for p in packs]
        columns = [f.name for f in plan.schema]
        pending = add_to(query.output.pending, described, columns, storage, prefix)
        query.output = replace(query.output, pending=pending)
    return gone


def end_silence(
    query: QueryState,
    plan: QueryPlan,
    outputs: Sequence[Described],
    storage: Storage,
    prefix: str,
) -> tuple[list[PackMeta], list[str]]:
    """Windows are filled. By what a new version differs from what was put out so far (`outputs`),
    and files that are superfluous then."""
    before = query.output
    pending = before.pending
    query.output = replace(before, pending=(), replaces=False)
    if plan.kind is not EmitKind.RELATION:
        return [], []
    if not before.replaces:
        query.output = replace(query.output, base=pending)
        return [], [p[0] for p in before.base]
    names = [f.name for f in plan.schema]
    old = [storage.read_table(p[0]).drop_columns([TIME]) for p in before.base]
    old += [weighted(storage.read_table(p[0])) for p in outputs]
    new = [storage.read_table(p[0]).drop_columns([TIME]) for p in pending]
    tables = [*new, *(_negated(t) for t in old)]
    gone = [p[0] for p in pending]
    if not tables:
        return [], gone
    changes = _signed(
        summed(pa.concat_tables(tables).combine_chunks(), names), query.history.silent_until
    )
    if not changes.num_rows:
        return [], gone
    return [write_pack(storage, fresh_name(prefix, "out"), changes)], gone


def _negated(table: pa.Table) -> pa.Table:
    weights = pa.array(-table.column(WEIGHT).to_numpy())
    return table.set_column(table.schema.get_field_index(WEIGHT), WEIGHT, weights)


def _signed(table: pa.Table, at: int) -> pa.Table:
    """Weighted rows as changes at an instant."""
    weights = table.column(WEIGHT).to_numpy()
    rows = np.repeat(np.arange(len(weights)), np.abs(weights))
    found = table.drop_columns([WEIGHT]).take(pa.array(rows))
    found = found.append_column(TIME, pa.array(np.full(len(rows), at, np.int64)))
    return found.append_column(SIGN, pa.array(np.sign(weights)[rows].astype(np.int8)))
