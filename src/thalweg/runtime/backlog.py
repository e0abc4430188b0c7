"""Queries that lie behind, because they began in the past or had stopped, catch up in slices.

A slice is a stretch of time with about as many rows as an epoch may spend on it, so that the
queries that are up to date keep their pace. Who came first is served first: what an older query has
to say is there as a whole before a newer one begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thalweg.plan.physical import QueryPlan
from thalweg.runtime.beginnings import streams_of
from thalweg.runtime.state import EngineState, QueryState
from thalweg.store.packs import PackMeta

SLICE_ROWS = 500_000


def sliced(
    targets: Mapping[str, int],
    plans: Mapping[str, QueryPlan],
    state: EngineState,
    rows: float,
) -> dict[str, int]:
    """The instants up to which queries go in this epoch, at most to their targets."""
    found = dict(targets)
    left = rows
    for name, target in targets.items():
        query = state.queries[name]
        if query.frontier < query.silent_until:  # an epoch is silent as a whole or not at all
            target = found[name] = min(target, query.silent_until)
        if not query.behind:
            continue
        if left <= 0:
            found[name] = query.frontier
            continue
        packs = _waiting(plans[name], query, state)
        found[name] = slice_end(packs, query.frontier, target, left)
        left -= int(_between(packs, query.frontier, found[name]))
    return found


def _waiting(plan: QueryPlan, query: QueryState, state: EngineState) -> list[PackMeta]:
    return [
        pack
        for stream in streams_of(plan)
        for pack in state.streams[stream].packs
        if pack.seq >= query.first_seq and pack.max_ts >= query.frontier
    ]


def slice_end(packs: Sequence[PackMeta], since: int, target: int, rows: float) -> int:
    """The instant before which about so many rows wait, at least one instant ahead."""
    if _between(packs, since, target) <= rows:
        return target
    low = max(since, min(p.min_ts for p in packs))
    high = target
    while high - low > 1:
        middle = (low + high) // 2
        if _between(packs, since, middle) <= rows:
            low = middle
        else:
            high = middle
    return max(low, since + 1, min(p.min_ts for p in packs) + 1)


def _between(packs: Sequence[PackMeta], low: int, high: int) -> float:
    """About how many rows have times in [low, high), as if they were spread evenly in each pack."""
    found = 0.0
    for pack in packs:
        since, until = max(pack.min_ts, low), min(pack.max_ts + 1, high)
        if since < until:
            found += pack.rows * ((until - since) / (pack.max_ts + 1 - pack.min_ts))
    return found
