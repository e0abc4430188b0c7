"""Retention and merging of rows that conditions have matched: kept for as long as the streams
themselves, in few packs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from thalweg.exec.shared_filters.merge_sets import MergeSetsTask
from thalweg.instants import BEFORE_TIME
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.internal_names import members_output
from thalweg.runtime.state.output_keys import epochs_of, owner_of
from thalweg.runtime.state.query_state import CONDITIONS
from thalweg.runtime.upkeep.compaction import runs_of_one_tier
from thalweg.store.packs import PackMeta


def forget_matched(state: EngineState, plans: Mapping[str, QueryPlan]) -> list[str]:
    """Drop rows that have left the streams from the state; returns the files."""
    gone: list[str] = []
    kept = _kept_since(state, plans)
    for key in _keys(state):
        since = kept.get(owner_of(key), BEFORE_TIME)
        packs = [(p, PackMeta.from_json(p).max_ts >= since) for p in state.outputs[key]]
        gone += [p[0] for p, stays in packs if not stays]
        state.outputs[key] = [p for p, stays in packs if stays]
        if not state.outputs[key]:
            del state.outputs[key]
    return gone


def merges_of_matched(
    state: EngineState, plans: Mapping[str, QueryPlan], prefix: str
) -> Iterator[MergeSetsTask]:
    """Useful merges, so that an answer opens few packs however many epochs there were."""
    kept = _kept_since(state, plans)
    for owner, keys in groupby(sorted(_keys(state), key=_place), key=owner_of):
        packs = [(k, PackMeta.from_json(p)) for k in keys for p in state.outputs[k]]
        for run in runs_of_one_tier(packs, lambda found: found[1].rows):
            from_keys = tuple(dict.fromkeys(key for key, _ in run))
            low = kept.get(owner, BEFORE_TIME)
            yield MergeSetsTask(owner, from_keys, tuple(p for _, p in run), low, prefix)


def _keys(state: EngineState) -> list[str]:
    prefix = members_output(CONDITIONS, "")
    return [key for key in state.outputs if key.startswith(prefix)]


def _place(key: str) -> tuple[str, tuple[int, int]]:
    return owner_of(key), epochs_of(key)


def _kept_since(state: EngineState, plans: Mapping[str, QueryPlan]) -> dict[str, int]:
    """Per owner of output the instant from which on the streams are kept."""
    found = {}
    for name, query in state.of_kind(CONDITIONS):
        if name in plans and query.sharing.cohort is not None:
            owner = members_output(CONDITIONS, query.sharing.cohort.about)
            found[owner] = min(state.streams[s].kept_since for s in plans[name].streams)
    return found
