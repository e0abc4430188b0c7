"""What conditions have let through: kept for as long as the streams themselves, in few packs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from thalweg.exec.frame import BEFORE_TIME
from thalweg.exec.many.merging import MergeSetsResult, MergeSetsTask
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.beginnings import streams_of
from thalweg.runtime.retention import FAN_IN, tier
from thalweg.runtime.state import WHERES, EngineState
from thalweg.store.packs import PackMeta


def forget_passed(state: EngineState, plans: Mapping[str, QueryPlan]) -> list[str]:
    """Take what has left the streams out of the state; returns the files."""
    gone: list[str] = []
    reach = _reach(state, plans)
    for key in _keys(state):
        since = reach.get(key.rsplit("/", 1)[0], BEFORE_TIME)
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
    for name, keys in groupby(sorted(_keys(state), key=_place), key=lambda k: _place(k)[0]):
        packs = [PackMeta.from_json(p) for key in keys for p in state.outputs[key]]
        for _, group in groupby(packs, key=lambda p: tier(p.rows)):
            run = list(group)
            if len(run) >= FAN_IN:
                low = reach.get(name, BEFORE_TIME)
                yield MergeSetsTask(name, tuple(run[:FAN_IN]), low, prefix)


def replace_passed(state: EngineState, result: MergeSetsResult) -> list[str]:
    """Put a merged pack in the place of the others; returns the files that are superfluous."""
    keys = [k for k in _keys(state) if _place(k)[0] == result.name]
    found = [k for k in keys if any(p[0] in result.old for p in state.outputs[k])]
    present = {p[0] for k in found for p in state.outputs[k]}
    merged = [] if result.merged is None else [result.merged]
    if not present.issuperset(result.old):  # some of them have gone meanwhile
        return [p.name for p in merged]
    last = max(found, key=_place)
    for key in found:
        left = [p for p in state.outputs.pop(key) if p[0] not in result.old]
        left += [p.to_json() for p in merged if key == last]
        if left:
            state.outputs[key] = left
    return list(result.old)


def _keys(state: EngineState) -> list[str]:
    return [key for key in state.outputs if key.startswith(WHERES)]


def _place(key: str) -> tuple[str, int]:
    name, epoch = key.rsplit("/", 1)
    return name, int(epoch)


def _reach(state: EngineState, plans: Mapping[str, QueryPlan]) -> dict[str, int]:
    """Per name since when the streams are kept."""
    return {
        name.rsplit(":", 1)[0]: min(state.streams[s].kept_since for s in streams_of(plan))
        for name, plan in plans.items()
        if name.startswith(WHERES)
    }
