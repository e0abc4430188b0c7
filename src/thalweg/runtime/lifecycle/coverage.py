"""How much of what a query's windows ask for it has seen.

A window that reaches back before the first row a query saw is PARTIAL; it becomes COMPLETE as time
passes. What counts is from when on nothing was discarded, not which rows there happen to be: of a
quiet stream everything is known, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from thalweg.instants import AFTER_TIME, BEFORE_TIME, format_instant
from thalweg.plan import state_slots
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.history_start import passes_rows_on, reach
from thalweg.runtime.state.query_state import QueryState
from thalweg.runtime.state.stream_state import WindowStore
from thalweg.windows.protocol import TimeWindow

COMPLETE, PARTIAL = "COMPLETE", "PARTIAL"
Stores = Mapping[str, WindowStore]


@dataclass(frozen=True, slots=True)
class Coverage:
    """`share` of the windows' time is covered (of the least covered one; None where a window has no
    length in time), by rows `since` an instant (None: by all there ever were). `complete_at` is the
    instant at which the status becomes COMPLETE, None if it is, or if that cannot be told."""

    status: str = COMPLETE
    share: float | None = 1.0
    since: int | None = None
    complete_at: int | None = None

    def __str__(self) -> str:
        if self.status == COMPLETE:
            return COMPLETE
        text = f"{PARTIAL}, rows since {format_instant(self.since or 0)}"
        if self.share is not None:
            text += f", {self.share:.0%} of the window"
        if self.complete_at is not None:
            text += f", complete at {format_instant(self.complete_at)}"
        return text


def coverage(
    plan: QueryPlan,
    query: QueryState,
    now: int | None = None,
    stores: Stores | None = None,
    kept: Mapping[str, int] | None = None,
) -> Coverage:
    """Of the answer at an instant, by default the last one that is over. The content of windows
    may be in `stores`; `kept` says from when on rows of streams are there for it at all."""
    silent_until = (
        BEFORE_TIME if query.history.silent_until == AFTER_TIME else query.history.silent_until
    )
    at = max(query.progress.frontier, silent_until) - 1 if now is None else now
    if passes_rows_on(plan):
        return Coverage()
    since = {s: max(_seen_since(s, query), (kept or {}).get(s, BEFORE_TIME)) for s in plan.streams}
    if all(first == BEFORE_TIME for first in since.values()):
        return Coverage()
    full = set(_full_windows(plan, query, stores or {}))
    found = [
        _covered(leaf, since[leaf.relation], at)
        for number, relation in enumerate(plan.relations)
        for i, leaf in enumerate(relation.leaves)
        if leaf.is_stored and not leaf.is_table and (number, i) not in full
    ]
    partial = [c for c in found if c.status == PARTIAL]
    if not partial:
        return _above_each_other(plan, max(since.values()), at)
    shares = [c.share for c in partial]
    times = [c.complete_at for c in partial]
    return Coverage(
        PARTIAL,
        None if None in shares else min(s for s in shares if s is not None),
        max(BEFORE_TIME if c.since is None else c.since for c in partial),
        None if None in times else max(t for t in times if t is not None),
    )


def _above_each_other(plan: QueryPlan, since: int, now: int) -> Coverage:
    """Windows over what other windows emit: what they reach back adds up."""
    if not any(leaf.emits for r in plan.relations for leaf in r.leaves):
        return Coverage()
    low = reach(plan, now + 1)
    if since <= low:
        return Coverage()
    return Coverage(PARTIAL, None, since, None if low == BEFORE_TIME else since + now - low)


def _seen_since(stream: str, query: QueryState) -> int:
    """From when on it has seen every row of a stream."""
    return max(
        query.history.begins.get(stream, BEFORE_TIME), query.limits.floors.get(stream, BEFORE_TIME)
    )


def _full_windows(plan: QueryPlan, query: QueryState, stores: Stores) -> Iterator[tuple[int, int]]:
    """Windows of so many rows that hold as many: what came before would not be in them."""
    for number, relation in enumerate(plan.relations):
        for i, leaf in enumerate(relation.leaves):
            slot = state_slots.slot(number, state_slots.LEAF, i)
            if leaf.keeps_rows:
                store = stores.get(query.operators.shared_slots.get(slot, ""))
                packs = query.operators.slots.get(slot, ()) if store is None else store.packs
                if any(leaf.ordered_window.is_full(p.meta.rows) for p in packs):
                    yield number, i


def _covered(leaf: Leaf, since: int, now: int) -> Coverage:
    if since == BEFORE_TIME:
        return Coverage()
    window = leaf.window
    if not isinstance(window, TimeWindow) or (window.is_endless and window.since is None):
        return Coverage(PARTIAL, None, since)
    low = _low(window, now)
    high = now if window.until is None else min(now, window.until)
    if since <= low:
        return Coverage()
    length = max(high - low + 1, 1)
    share = max(0, high - since + 1) / length
    return Coverage(PARTIAL, share, since, window.complete_at(since))


def _low(window: TimeWindow, now: int) -> int:
    if window.since is not None:
        return window.since
    return window.reached_from(now + 1)
