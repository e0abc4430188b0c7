"""Retention of output.

Output that no sink waits for is dropped after `results_retain`. The changes of a relation are first
added to a base, so that its current answer is never lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.results.current_answer import add_to, base_until
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.internal_names import kind_of_output
from thalweg.runtime.state.output_keys import (
    epochs_named,
    last_epoch_of,
    number_of_epochs,
    owner_of,
)
from thalweg.runtime.state.query_state import CONDITIONS, Described, QueryState
from thalweg.store.leases import followed
from thalweg.store.storage import Storage

FOLD_AT = 16  # so many epochs of a relation's changes are added to the base at once


def forget_results(
    state: EngineState,
    plans: Mapping[str, QueryPlan],
    storage: Storage,
    limit: int,
    prefix: str,
) -> list[str]:
    """Drop output of epochs committed before `limit` from the state; returns the files."""
    old = epochs_before(state.clocks, limit)
    if not old:
        return []
    due, _ = due_output(state, old, followed(storage))
    gone: list[str] = []
    for name, keys in due.items():
        plan = plans.get(name)
        if plan is None and name in state.queries:
            continue  # whose changes these are cannot be told
        if plan is not None and plan.kind is EmitKind.RELATION:
            if number_of_epochs(keys) < FOLD_AT:
                continue
            columns = [f.name for f in plan.schema]
            gone += fold_into_base(state, name, keys, columns, storage, prefix)
        gone += forget_output(state, name, keys)
    forget_clocks(state, old)
    return gone


def epochs_before(clocks: Mapping[str, int], limit: int) -> set[str]:
    """Epochs with output that were committed before an instant of the clock."""
    return set(takewhile(lambda epoch: clocks[epoch] < limit, clocks))


def due_output(
    state: EngineState, old: set[str], followers: Mapping[str, int]
) -> tuple[dict[str, list[str]], list[str]]:
    """Output of old epochs, by owner, and the keys of output that has to stay, as sinks or
    followers have not received it. Rows that conditions accepted are kept as long as their
    streams."""
    due: dict[str, list[str]] = {}
    unseen: list[str] = []
    for key in state.outputs:
        name, epoch = owner_of(key), last_epoch_of(key)
        if str(epoch) not in old or kind_of_output(name) == CONDITIONS:
            continue
        query = state.queries.get(name)
        seen = epoch if query is None else query.progress.delivered
        if epoch <= min(seen, followers.get(name, epoch)):
            due.setdefault(name, []).append(key)
        else:
            unseen.append(key)
    return due, unseen


def fold_into_base(
    state: EngineState,
    name: str,
    keys: Sequence[str],
    columns: Sequence[str],
    storage: Storage,
    prefix: str,
) -> list[str]:
    """Add changes of a relation to its base; returns the files of the old one."""
    query, packs = state.queries[name], _packs(state, keys)
    before = query.output
    base = add_to(before.base, packs, columns, storage, prefix)
    until = base_until(before.base_until, packs)
    query.output = replace(before, base=base, base_until=until)
    return [p[0] for p in before.base]


def forget_output(state: EngineState, name: str, keys: Sequence[str]) -> list[str]:
    """Drop output from the state; returns the files."""
    gone = [p[0] for p in _packs(state, keys)]
    for key in keys:
        del state.outputs[key]
    if name in state.queries:
        _mark_forgotten(state.queries[name], max(map(last_epoch_of, keys)))
    return gone


def forget_clocks(state: EngineState, old: set[str]) -> None:
    """Drop the clocks of old epochs that no output refers to."""
    kept = epochs_named(state.outputs)
    state.clocks = {e: c for e, c in state.clocks.items() if e not in old or e in kept}


def _packs(state: EngineState, keys: Sequence[str]) -> list[Described]:
    return [p for key in keys for p in state.outputs[key]]


def _mark_forgotten(query: QueryState, epoch: int) -> None:
    if epoch > query.output.forgotten:
        query.output = replace(query.output, forgotten=epoch)
