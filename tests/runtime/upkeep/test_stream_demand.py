"""From which instant on the rows of a stream are wanted, and for what."""

from __future__ import annotations

from summing import SUMS, rows, runner

from thalweg.runtime.upkeep.stream_demand import StreamDemand


def test_what_streams_are_wanted_for() -> None:
    """A query that goes through the past wants old rows; they are in no window of the others."""
    made = runner(slice_rows=5)
    made.query(SUMS, "live")
    made.feed({"s": rows(0, 100)})
    made.query(SUMS.replace("20", "30"), "late")
    demand = StreamDemand(made.core.plans, made.core.state).of("s")
    frontier = made.core.state.queries["live"].progress.frontier
    assert (demand.without_backfill, demand.released) == (frontier - 21, frontier)
    assert demand.lowest < 0
