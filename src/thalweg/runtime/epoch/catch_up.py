"""Queries that lie behind, because they began in the past or had stopped, catch up in slices.

A slice is a stretch of time with about as many rows as an epoch may spend on it, so that the
queries that are up to date keep their pace. Who came first is served first: what an older query has
to say is there as a whole before a newer one begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thalweg.exec.frame import AFTER_TIME
from thalweg.exec.lookups import constants_of, find_by_constants
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state.engine_state import EngineState, QueryState
from thalweg.store.packs import Pack, PackMeta
from thalweg.store.storage import Storage

SLICE_SECONDS = 0.02
"""How long a slice may take where nothing else is to be done: so long new rows may have to wait."""
BUSY = 0.25
"""The part of such a slice that goes into an epoch with new rows, if it must."""
PATIENCE = 2
"""After so many epochs with new rows and none without, the past is no longer left out of them."""
PUSH, PULL, AUTO = "push", "pull", "auto"
FIRST_ROWS = 50_000
FEWEST_ROWS = 5_000
MOST_ROWS = 200_000
"""However fast a slice was: the rows of the next one may not be at hand as these were."""


@dataclass(slots=True)
class Pace:
    """How many rows of the past an epoch goes through; learned from how long they took, unless it
    is `fixed`.

    The place of the past is between epochs with new rows: within one, even few rows cost a step
    and its files. Where new rows come without a pause there is no such place, so they share.
    """

    rows: float = FIRST_ROWS
    fixed: bool = False
    busy_epochs: int = 0

    def budget(self, busy: bool) -> float:
        """For the next epoch, which has new rows or not."""
        self.busy_epochs = self.busy_epochs + 1 if busy else 0
        if self.fixed or not busy:
            return self.rows
        return self.rows * BUSY if self.busy_epochs > PATIENCE else 0.0

    def learn(self, rows: float, seconds: float) -> None:
        """A slice of so many rows took so long, and nothing was done beside it."""
        cut_short = rows < self.rows / 2 and seconds < SLICE_SECONDS
        if not self.fixed and rows > 0 and not cut_short:
            factor = min(max(SLICE_SECONDS / max(seconds, 1e-6), 0.25), 2.0)
            self.rows = max(min(rows * factor, 2 * self.rows, MOST_ROWS), FEWEST_ROWS)


def sliced(
    targets: Mapping[str, int],
    plans: Mapping[str, QueryPlan],
    state: EngineState,
    rows: float,
) -> tuple[dict[str, int], float]:
    """The instants up to which queries go in this epoch, at most to their targets, and about how
    many rows of the past that takes."""
    found = dict(targets)
    left = rows
    used = 0.0
    for name, target in targets.items():
        query = state.queries[name]
        if query.frontier < query.silent_until:  # an epoch is silent as a whole or not at all
            target = found[name] = min(target, query.silent_until)
        if not query.behind:
            continue
        if left <= 0:
            found[name] = query.frontier
            continue
        if query.backfill == PULL:
            continue
        packs = _waiting(plans[name], query, state)
        target = min(target, _end_of_cold(packs))
        found[name] = slice_end(packs, query.frontier, target, left)
        taken = _between(packs, query.frontier, found[name])
        left, used = left - taken, used + taken
    return found, used


def chosen_backfill(
    wanted: str,
    plan: QueryPlan,
    query: QueryState,
    state: EngineState,
    storage: Storage,
    rows: float,
) -> str:
    """How a query goes through the past: what an index finds is pulled at once if it is no more
    than the `rows` of a slice; otherwise everything is pushed through, slice by slice."""
    if wanted != AUTO:
        return wanted
    total = 0
    for place in plan.stream_leaves:
        leaf = plan.leaves[place]
        constants = constants_of(leaf)
        for meta in state.streams[leaf.relation].packs:
            if meta.max_ts < query.frontier:
                continue
            if meta.is_cold:
                return PUSH  # all of them would have to be opened at once
            found = None
            if constants:
                pack = Pack(meta.name, storage.read_table(meta.name))
                found = find_by_constants(pack, constants)
            total += meta.rows if found is None else len(found)
            if total > rows:
                return PUSH
    return PULL


def _waiting(plan: QueryPlan, query: QueryState, state: EngineState) -> list[PackMeta]:
    return [
        pack
        for stream in plan.streams
        for pack in state.seen_by(query, stream)
        if pack.max_ts >= query.frontier
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
