"""How long output is kept.

Output that no sink waits for is forgotten after `results_retain`. The changes of a relation are
first added to a base, so that its current answer is known for ever.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from thalweg.exec.derived import summed
from thalweg.exec.frame import BEFORE_TIME
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.answers import weighted
from thalweg.runtime.retention import epochs_before
from thalweg.runtime.state import WHERES, Described, EngineState, QueryState
from thalweg.store.leases import leases
from thalweg.store.packs import TIME, PackMeta, write_pack
from thalweg.store.storage import Storage

FOLD_AT = 16  # so many epochs of a relation's changes are added to the base at once


def forget_results(
    state: EngineState,
    plans: Mapping[str, QueryPlan],
    storage: Storage,
    limit: int,
    prefix: str,
) -> list[str]:
    """Take output of epochs committed before `limit` out of the state; returns the files."""
    old = epochs_before(state.clocks, limit)
    if not old:
        return []
    waited = {n: q.delivered for n, q in state.queries.items()}
    for lease in leases(storage):
        waited[lease.query] = min(waited.get(lease.query, lease.epoch), lease.epoch)
    due: dict[str, list[str]] = {}
    for key in state.outputs:
        name, epoch = key.rsplit("/", 1)
        if (
            epoch in old
            and not name.startswith(WHERES)
            and int(epoch) <= waited.get(name, int(epoch))
        ):
            due.setdefault(name, []).append(key)
    gone: list[str] = []
    for name, keys in due.items():
        packs = [p for key in keys for p in state.outputs[key]]
        plan = plans.get(name)
        if plan is None and name in state.queries:
            continue  # whose changes these are cannot be told
        if plan is not None and plan.kind is EmitKind.RELATION:
            if len(keys) < FOLD_AT:
                continue
            gone += _fold(state.queries[name], packs, plan, storage, prefix)
        gone += [p[0] for p in packs]
        for key in keys:
            del state.outputs[key]
        if name in state.queries:
            last = max(int(key.rsplit("/", 1)[1]) for key in keys)
            state.queries[name].forgotten = max(state.queries[name].forgotten, last)
    kept = {key.rsplit("/", 1)[1] for key in state.outputs}
    state.clocks = {e: c for e, c in state.clocks.items() if e not in old or e in kept}
    return gone


def _fold(
    query: QueryState, packs: Sequence[Described], plan: QueryPlan, storage: Storage, prefix: str
) -> list[str]:
    """Add changes to the base; returns the files of the old one."""
    old = [p[0] for p in query.base]
    query.base = add_to(query.base, packs, plan, storage, prefix)
    until = max([query.base_until, *(PackMeta.from_json(p).max_ts for p in packs)])
    query.base_until = max(until, BEFORE_TIME)
    return old


def add_to(
    base: Sequence[Described],
    packs: Sequence[Described],
    plan: QueryPlan,
    storage: Storage,
    prefix: str,
) -> list[Described]:
    """A base and further changes as one base."""
    tables = [storage.read_table(p[0]).drop_columns([TIME]) for p in base]
    tables += [weighted(storage.read_table(p[0])) for p in packs]
    whole = summed(pa.concat_tables(tables).combine_chunks(), [f.name for f in plan.schema])
    stamped = whole.append_column(TIME, pa.array(np.zeros(whole.num_rows, np.int64)))
    name = f"{prefix}base-{uuid.uuid4().hex[:12]}.arrow"
    return [write_pack(storage, name, stamped).to_json()]
