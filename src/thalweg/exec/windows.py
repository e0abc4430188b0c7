"""Lifetimes of rows in time windows, as monotone functions of the event time.

A row with event time ts is in the window during [start(ts), end(ts)). For every instant τ the rows
alive are a range of event times, so membership is a range search. A range is closed at both ends
(CQL): `[RANGE d]` keeps ts alive until ts + d, that is end = ts + d + 1 tick.
"""

from __future__ import annotations

import numpy as np

from thalweg.columns.frame import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.plan.logical import TimeWindow


def starts(window: TimeWindow, ts: Ints) -> Ints:
    if window.slide is None:
        return ts
    return (ts // window.slide + 1) * window.slide


def ends(window: TimeWindow, ts: Ints) -> Ints:
    if window.every is not None:
        return (ts // window.every + 1) * window.every
    if window.range is None:
        return np.full(len(ts), AFTER_TIME, np.int64)
    if window.slide is None:
        return ts + (window.range + 1)
    return ((ts + window.range) // window.slide + 1) * window.slide


def latest_started(window: TimeWindow, instant: Ints) -> Ints:
    """The largest event time whose row has started by the instant."""
    if window.until is not None:
        return np.minimum(instant, window.until)
    if window.slide is None:
        return instant
    return instant // window.slide * window.slide - 1


def earliest_alive(window: TimeWindow, instant: Ints) -> Ints:
    """The smallest event time whose row has not ended by the instant."""
    if window.every is not None:
        return instant // window.every * window.every
    if window.range is None:
        return np.full_like(instant, BEFORE_TIME if window.since is None else window.since)
    if window.slide is None:
        return instant - window.range
    return instant // window.slide * window.slide - window.range


def _one(function: object, window: TimeWindow, instant: int) -> int:
    return int(function(window, np.array([instant], np.int64))[0])  # type: ignore[operator]


def starting_between(window: TimeWindow, since: int, until: int) -> tuple[int, int]:
    """Event times [low, high) whose rows start at instants in [since, until)."""
    low = _one(latest_started, window, since - 1) + 1 if since > BEFORE_TIME else BEFORE_TIME
    if window.since is not None:
        low = max(low, window.since)
    return low, _one(latest_started, window, until - 1) + 1


def ending_between(window: TimeWindow, since: int, until: int) -> tuple[int, int]:
    """Event times [low, high) whose rows end at instants in [since, until)."""
    if window.is_endless:
        return 0, 0
    low = _one(earliest_alive, window, since - 1) if since > BEFORE_TIME else BEFORE_TIME
    return low, _one(earliest_alive, window, until - 1)


def reached_from(window: TimeWindow, frontier: int) -> int:
    """The first event time that still matters once all instants before the frontier are over: its
    rows were there just before, and have yet to leave."""
    if frontier == BEFORE_TIME:
        return BEFORE_TIME
    return int(earliest_alive(window, frontier - 1))  # type: ignore[arg-type]


def boundaries(slide: int, since: int, until: int) -> Ints:
    """Multiples of the slide in [since, until)."""
    first = -(-since // slide) * slide
    return np.arange(first, until, slide, dtype=np.int64)
