"""How far time has advanced: W per stream, F per query, closing and idleness.

W is the largest event time in the log minus the lateness; F of a query is the least W of its
streams and never falls. Clock readings enter only through `passing` (live engines), never through
`run()`. Rows of other streams raise W only in live engines, too: what `run()` finds was not
written down in the order in which it arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from thalweg.instants import BEFORE_TIME
from thalweg.plan.catalog import StreamDef
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state.stream_state import StreamState

SETTLE = 1_000_000


def watermark(definition: StreamDef, state: StreamState) -> int:
    """W from the data and what the source has announced."""
    announced = max(state.watermark, state.heartbeat)
    if state.max_ts == BEFORE_TIME:
        return announced
    return max(announced, state.max_ts - definition.lateness)


def behind(definition: StreamDef, states: Mapping[str, StreamState]) -> int:
    """W from the rows of streams behind which rows of this one arrive so far at most."""
    seen = [states[other].max_ts - most for other, most in definition.behind if other in states]
    return max(seen, default=BEFORE_TIME)


def passing(
    definition: StreamDef, state: StreamState, clock: int, awake_since: int = 0
) -> tuple[int, bool]:
    """W while time passes without data, and whether the stream counts as idle.

    A stream in order closes its newest instant after a second of silence. A stream silent for
    longer than IDLE is left out of F; when all are, time goes on at the clock's pace, IDLE behind.
    Silence counts from `awake_since` at the earliest: while we were away, we did not listen.
    """
    data = watermark(definition, state)
    if state.max_ts == BEFORE_TIME:
        return data, False
    silence = clock - max(state.last_clock, awake_since)
    if definition.lateness == 0 and silence >= SETTLE:
        data = max(data, state.max_ts + 1)
    if definition.idle is None or silence < definition.idle:
        return data, False
    return max(data, state.max_ts - definition.lateness + (silence - definition.idle)), True


def frontier(marks: Iterable[tuple[int, bool]], current: int) -> int:
    """F from the streams' (W, idle): idle ones do not hold the others back."""
    known = list(marks)
    awake = [w for w, idle in known if not idle]
    chosen = awake or [w for w, _ in known]
    return max(current, min(chosen, default=current))


def closing_frontier(
    plan: QueryPlan, streams: Iterable[StreamState], current: int, *, emptied: bool = False
) -> int:
    """F at a close: just past the largest time seen, or the SLIDE boundary or session end after;
    with `emptied`, past the last instant at which time takes a row out."""
    largest = max((s.max_ts for s in streams), default=BEFORE_TIME)
    if largest == BEFORE_TIME:
        return current
    return max(current, plan.ended(plan.last_change(largest, emptied=emptied) + 1))
