"""How far queries go in an epoch: a slice of time with about as many rows as it may take.

Of those that lie behind, because they began in the past or had stopped, an epoch takes as many rows
as leave the others their pace. Older queries are served first: the output of one is there as a
whole before a newer one begins. Of every other query it takes as many as its memory is meant for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from thalweg.instants import AFTER_TIME
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.backfill import PULL, Pace
from thalweg.runtime.settings import Settings
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import QueryState
from thalweg.store.packs import PackMeta

NESTED = 16
"""Where a relation is made of others, their changes are held beside the rows: an epoch takes so
many times fewer."""


class Scheduler:
    """Chooses how far each query goes in an epoch. `is_short` says that some could go further than
    that at once, and that further epochs are due; on a path that has been used before it may be."""

    def __init__(
        self,
        state: EngineState,
        plans: Mapping[str, QueryPlan],
        pace: Pace,
        settings: Settings,
    ) -> None:
        self._state = state
        self._plans = plans
        self._pace = pace
        self._settings = settings
        self._past_rows = 0.0
        self.is_short = state.epoch > 0

    def choose(self, targets: Mapping[str, int], *, busy: bool, close: bool) -> dict[str, int]:
        """The instants up to which queries advance, at most to their targets."""
        budget = math.inf if close else self._pace.budget(busy)
        reached, self._past_rows = sliced(targets, self._plans, self._state, budget)
        for name, until in reached.items():
            progress = self._state.queries[name].progress
            progress.behind = progress.behind and until < targets[name]
        self.is_short = self._bound(reached)
        return reached

    def _bound(self, reached: dict[str, int]) -> bool:
        """Bound the rows that each query takes; returns whether that has held one back."""
        rows = self._settings.epoch_rows
        waiting = _Waiting(self._state)
        is_short = False
        for name, target in reached.items():
            query = self._state.queries[name]
            frontier, plan = query.progress.frontier, self._plans[name]
            if target <= frontier or query.works_on_demand:
                continue
            most = rows if len(plan.relations) == 1 else max(rows // NESTED, 1)
            if waiting.most(plan.streams, frontier) <= most or query.progress.backfill == PULL:
                continue
            packs = packs_ahead(plan, query, self._state)
            reached[name] = min(target, plan.ended(slice_end(packs, frontier, target, most)))
            is_short |= reached[name] < target
        return is_short

    def learn(self, seconds: float) -> None:
        """The slice that was chosen took so long, and nothing was done beside it."""
        self._pace.learn(self._past_rows, seconds)


class _Waiting:
    """Bounds on the rows that wait in streams, each computed once for an epoch."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._known: dict[tuple[str, int], int] = {}

    def most(self, streams: Iterable[str], frontier: int) -> int:
        """At least as many rows as wait beyond a frontier."""
        return sum(self._most(stream, frontier) for stream in streams)

    def _most(self, stream: str, frontier: int) -> int:
        key = stream, frontier
        if key not in self._known:
            packs = self._state.streams[stream].packs
            self._known[key] = sum(p.rows for p in packs if p.max_ts >= frontier)
        return self._known[key]


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
        packs = packs_ahead(plans[name], query, state)
        target = min(target, plans[name].ended(_end_of_cold(packs)))
        end = slice_end(packs, query.progress.frontier, target, left)
        found[name] = min(target, plans[name].ended(end))
        taken = _between(packs, query.progress.frontier, found[name])
        left, used = left - taken, used + taken
    return found, used


def packs_ahead(plan: QueryPlan, query: QueryState, state: EngineState) -> list[PackMeta]:
    """The packs with rows that a query has not processed."""
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
    """About how many rows have times in [low, high)."""
    return sum(max(p.rows_before(high) - p.rows_before(low), 0.0) for p in packs)
