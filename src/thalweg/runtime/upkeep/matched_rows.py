"""What conditions have let through: kept for as long as the streams themselves, in few packs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from thalweg.exec.frame import BEFORE_TIME
from thalweg.exec.many.merging import MergeSetsTask
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state.engine_state import WHERES, EngineState
from thalweg.runtime.state.output_keys import epochs_of, owner_of
from thalweg.runtime.upkeep.retention import FAN_IN, tier
from thalweg.store.packs import PackMeta


def forget_passed(state: EngineState, plans: Mapping[str, QueryPlan]) -> list[str]:
    """Take what has left the streams out of the state; returns the files."""
    gone: list[str] = []
    reach = _reach(state, plans)
    for key in _keys(state):
        since = reach.get(owner_of(key), BEFORE_TIME)
        packs = [(p, PackMeta.from_json(p).max_ts >= since) for p in state.outputs[key]]
        gone += [p[0] for p, stays in packs if not stays]
        state.outputs[key] = [p for p, stays in packs if stays]
        if not state.outputs[key]:
            del state.outputs[key]
    return gone


def merges_of_passed(
    state: EngineState, plans: Mapping[str, QueryPlan], prefix: str
) -> Iterator[MergeSetsTask]:
    """Merges worth doing: neighbours of one tier, so that an answer opens few packs however many
    epochs have put something out."""
    reach = _reach(state, plans)
    for name, keys in groupby(sorted(_keys(state), key=_place), key=owner_of):
        packs = [(k, PackMeta.from_json(p)) for k in keys for p in state.outputs[k]]
        for _, group in groupby(packs, key=lambda found: tier(found[1].rows)):
            run = list(group)[:FAN_IN]
            if len(run) == FAN_IN:
                low = reach.get(name, BEFORE_TIME)
                from_keys = tuple(dict.fromkeys(key for key, _ in run))
                yield MergeSetsTask(name, from_keys, tuple(p for _, p in run), low, prefix)


def _keys(state: EngineState) -> list[str]:
    return [key for key in state.outputs if key.startswith(WHERES)]


def _place(key: str) -> tuple[str, tuple[int, int]]:
    return owner_of(key), epochs_of(key)


def _reach(state: EngineState, plans: Mapping[str, QueryPlan]) -> dict[str, int]:
    """Per name since when the streams are kept."""
    return {
        name.rsplit(":", 1)[0]: min(state.streams[s].kept_since for s in plan.streams)
        for name, plan in plans.items()
        if name.startswith(WHERES)
    }
