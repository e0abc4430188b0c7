"""How long output is kept.

Output that no sink waits for is forgotten after `results_retain`. The changes of a relation are
first added to a base, so that its current answer is known for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from thalweg.exec.derived import summed
from thalweg.exec.frame import BEFORE_TIME
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.results.current_answer import weighted
from thalweg.runtime.state.engine_state import WHERES, Described, EngineState, QueryState
from thalweg.runtime.state.output_keys import (
    epochs_named,
    last_epoch_of,
    number_of_epochs,
    owner_of,
)
from thalweg.runtime.upkeep.retention import epochs_before
from thalweg.store.leases import followed
from thalweg.store.packs import TIME, PackMeta, fresh_name, write_pack
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
    for name, epoch in followed(storage).items():
        waited[name] = min(waited.get(name, epoch), epoch)
    due: dict[str, list[str]] = {}
    for key in state.outputs:
        name, epoch = owner_of(key), last_epoch_of(key)
        if str(epoch) in old and not name.startswith(WHERES) and epoch <= waited.get(name, epoch):
            due.setdefault(name, []).append(key)
    gone: list[str] = []
    for name, keys in due.items():
        packs = [p for key in keys for p in state.outputs[key]]
        plan = plans.get(name)
        if plan is None and name in state.queries:
            continue  # whose changes these are cannot be told
        if plan is not None and plan.kind is EmitKind.RELATION:
            if number_of_epochs(keys) < FOLD_AT:
                continue
            gone += _fold(state.queries[name], packs, plan, storage, prefix)
        gone += [p[0] for p in packs]
        for key in keys:
            del state.outputs[key]
        if name in state.queries:
            last = max(map(last_epoch_of, keys))
            state.queries[name].forgotten = max(state.queries[name].forgotten, last)
    kept = epochs_named(state.outputs)
    state.clocks = {e: c for e, c in state.clocks.items() if e not in old or e in kept}
    return gone


def _fold(
    query: QueryState, packs: Sequence[Described], plan: QueryPlan, storage: Storage, prefix: str
) -> list[str]:
    """Add changes to the base; returns the files of the old one."""
    old = [p[0] for p in query.base]
    query.base = add_to(query.base, packs, [f.name for f in plan.schema], storage, prefix)
    query.base_until = base_until(query.base_until, packs)
    return old


def base_until(known: int, packs: Sequence[Described]) -> int:
    """The instant up to which changes are in a base, once these packs are."""
    return max([known, BEFORE_TIME, *(PackMeta.from_json(p).max_ts for p in packs)])


def add_to(
    base: Sequence[Described],
    packs: Sequence[Described],
    columns: Sequence[str],
    storage: Storage,
    prefix: str,
) -> list[Described]:
    """A base and further changes as one base."""
    tables = [storage.read_table(p[0]).drop_columns([TIME]) for p in base]
    tables += [weighted(storage.read_table(p[0])) for p in packs]
    whole = summed(pa.concat_tables(tables).combine_chunks(), list(columns))
    stamped = whole.append_column(TIME, pa.array(np.zeros(whole.num_rows, np.int64)))
    return [write_pack(storage, fresh_name(prefix, "base"), stamped).to_json()]
