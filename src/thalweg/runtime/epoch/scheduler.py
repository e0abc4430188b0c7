"""Queries that lie behind, because they began in the past or had stopped, catch up in slices.

A slice is a stretch of time with about as many rows as an epoch may spend on it, so that the
queries that are up to date keep their pace. Older queries are served first: the output of one is
there as a whole before a newer one begins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from thalweg.instants import AFTER_TIME
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.backfill import PULL, Pace
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import QueryState
from thalweg.store.packs import PackMeta


class Scheduler:
    """Chooses how far each query goes in an epoch."""

    def __init__(self, state: EngineState, plans: Mapping[str, QueryPlan], pace: Pace) -> None:
        self._state = state
        self._plans = plans
        self._pace = pace
        self._past_rows = 0.0

    def choose(self, targets: Mapping[str, int], *, busy: bool, close: bool) -> dict[str, int]:
        """The instants up to which queries advance, at most to their targets."""
        budget = math.inf if close else self._pace.budget(busy)
        reached, self._past_rows = sliced(targets, self._plans, self._state, budget)
        for name, until in reached.items():
            progress = self._state.queries[name].progress
            progress.behind = progress.behind and until < targets[name]
        return reached

    def learn(self, seconds: float) -> None:
        """The slice that was chosen took so long, and nothing was done beside it."""
        self._pace.learn(self._past_rows, seconds)


def sliced(
    targets: Mapping[str, int],
    plans: Mapping[str, QueryPlan],
    state: EngineState,
    rows: float,
) -> tuple[dict[str, int], float]:
    """The instants up to which queries advance in this epoch, at most to their targets, and about
    how many rows of the past that takes."""
    found = dict(targets)
    left = rows
    used = 0.0
    for name, target in targets.items():
        query = state.queries[name]
        if query.is_silent:  # an epoch is silent as a whole or not at all
            target = found[name] = min(target, query.history.silent_until)
        if not query.progress.behind:
            continue
        if left <= 0:
            found[name] = query.progress.frontier
            continue
        if query.progress.backfill == PULL:
            continue
        packs = _waiting(plans[name], query, state)
        target = min(target, _end_of_cold(packs))
        found[name] = slice_end(packs, query.progress.frontier, target, left)
        taken = _between(packs, query.progress.frontier, found[name])
        left, used = left - taken, used + taken
    return found, used


def _waiting(plan: QueryPlan, query: QueryState, state: EngineState) -> list[PackMeta]:
    return [
        pack
        for stream in plan.streams
        for pack in state.seen_by(query, stream)
        if pack.max_ts >= query.progress.frontier
    ]


def _end_of_cold(packs: Sequence[PackMeta]) -> int:
    """Where the next pack ends, if it is a cold one: reading it takes a while, so a slice does it
    for one at a time, however few rows are wanted of it in the end."""
    first = min(packs, key=lambda p: p.min_ts, default=None)
    return AFTER_TIME if first is None or not first.is_cold else first.max_ts + 1


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
