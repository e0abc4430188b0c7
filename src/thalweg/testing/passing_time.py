"""Time that passes without rows, for the invariance grid.

Streams fall idle after `IDLE` of silence, and the clock then moves their watermarks on. Between two
epochs it may move them up to the rows that are still to come, which must not be late; after the
last epoch it moves them far beyond, so that whatever leaves by time alone has left.
"""

from __future__ import annotations

from thalweg.runtime.epoch import watermarks
from thalweg.testing.compare import column_values
from thalweg.testing.generators import Case
from thalweg.testing.runner import Runner

IDLE = 2_000_000
AFTERWARDS = (0.0, 0.3, 1.0, 2.0)
"""How far time passes in each tick after the last row, as a share of the time that the rows span;
it is more than any window of a case reaches back."""


def let_time_pass(runner: Runner, case: Case, epoch: int, epochs: int) -> None:
    """Ticks before an epoch, or, if it is the one after the last, until everything is over."""
    if not _all_have_rows(runner, case):
        return
    if epoch < epochs:
        clock = min(_latest_clock(runner, case, name, epoch) for name in case.streams)
        if clock > runner.clock:
            runner.tick(clock)
        return
    runner.tick(runner.clock + IDLE + max(s.lateness for s in case.streams.values()))
    span = _span(case)
    for share in AFTERWARDS:
        runner.tick(runner.clock + 1 + int(span * share))


def time_passed(runner: Runner) -> int:
    """The frontier of a query over all streams that time has taken along."""
    streams, state = runner.core.catalog.streams, runner.core.state.streams
    marks = [
        watermarks.passing(streams[n], s, runner.clock) for n, s in state.items() if n in streams
    ]
    return watermarks.frontier(marks, max(s.max_ts for s in state.values()) + 1)


def _span(case: Case) -> int:
    times: list[int] = [
        t for s in case.streams.values() for t in column_values(s.table[s.timestamp])
    ]
    return max(times) - min(times)


def _all_have_rows(runner: Runner, case: Case) -> bool:
    return all(runner.core.state.streams[name].rows for name in case.streams)


def _latest_clock(runner: Runner, case: Case, name: str, epoch: int) -> int:
    """The clock at which no row of a stream that is still to come is late."""
    state, stream = runner.core.state.streams[name], case.streams[name]
    coming = [
        ts
        for piece in runner.pieces(name)[epoch:]
        for ts in column_values(piece.column(stream.timestamp))
    ]
    reached = state.max_ts - stream.lateness
    spare = min(coming, default=reached) - max(reached, state.watermark)
    if spare < 1:
        return runner.clock
    return state.last_clock + IDLE + spare
