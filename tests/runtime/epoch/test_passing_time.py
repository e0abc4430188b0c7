"""Time that passes without data: who is held back, who is late, what counts as silence."""

from __future__ import annotations

import pyarrow as pa

from thalweg.runtime.epoch import watermarks
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.python_arguments import arrow_fields, make_stream
from thalweg.runtime.state.stream_state import StreamState
from thalweg.store.storage import MemoryStorage
from thalweg.testing.runner import Runner

SECOND = 1_000_000


def rows(*seconds: int) -> pa.Table:
    ts = pa.array([s * SECOND for s in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "k": pa.array([1] * len(seconds), pa.int64())})


def test_a_silent_stream_of_which_nothing_is_kept_holds_nobody_back() -> None:
    runner = Runner()
    for name in "ab":
        runner.stream(name, rows(0), idle="1 second")
    query = runner.query("SELECT b.k FROM a [NOW], b [RANGE 1 SECOND] WHERE a.k = b.k", "q")
    runner.feed({"a": rows(0), "b": rows(0)})
    runner.tick(5 * SECOND)
    assert query.stats()["streams"]["a"]["packs"] == 0
    runner.feed({"b": rows(20)})
    runner.tick(5 * SECOND + SECOND // 2)
    assert query.stats()["frontier"] == 20 * SECOND


def test_the_clock_alone_makes_no_row_late() -> None:
    """Nothing was kept that time could have changed, so no query has gone past these rows."""
    runner = Runner()
    runner.stream("a", rows(0), idle="1 second")
    query = runner.query("SELECT k FROM a", "q")
    runner.feed({"a": rows(0)})
    for clock in (2, 100):
        runner.tick(clock * SECOND)
    runner.feed({"a": rows(5)})
    runner.close()
    assert query.results().num_rows == 2
    assert query.stats()["streams"]["a"]["late"] == 0


def test_a_row_below_what_a_query_has_passed_is_late() -> None:
    """Here a window was kept, and time went on over it."""
    runner = Runner()
    runner.stream("a", rows(0), idle="1 second")
    query = runner.query("SELECT DSTREAM k FROM a [RANGE 3 SECONDS]", "q")
    runner.feed({"a": rows(0)})
    runner.tick(10 * SECOND)
    assert query.results()["__ts"].cast(pa.int64()).to_pylist() == [3 * SECOND + 1]
    runner.feed({"a": rows(2)})
    assert query.stats()["streams"]["a"]["late"] == 1


def test_silence_counts_from_when_we_listen() -> None:
    stream = make_stream("a", arrow_fields(rows(0).schema), "ts", idle="1 second")
    state = StreamState(max_ts=0, last_clock=0)
    hour = 3600 * SECOND
    assert watermarks.passing(stream, state, hour) == (hour - SECOND, True)
    assert watermarks.passing(stream, state, hour, awake_since=hour - 10) == (0, False)


def test_a_batch_under_way_is_not_silence() -> None:
    log = LogWriter(MemoryStorage(), 0, {})
    with log.batch_under_way():
        log.take(0)
        assert not log.was_quiet
    log.take(0)
    assert log.was_quiet


def test_rows_leave_a_window_over_a_subquery_by_time_alone() -> None:
    runner = Runner()
    runner.stream("a", rows(0), idle="1 second")
    query = runner.query("SELECT DSTREAM k FROM (SELECT ISTREAM k FROM a) [RANGE 3 SECONDS]", "q")
    runner.feed({"a": rows(0, 1)})
    for clock in (1, 2, 3, 10):
        runner.tick(clock * SECOND)
    assert query.results()["__ts"].cast(pa.int64()).to_pylist() == [
        3 * SECOND + 1,
        4 * SECOND + 1,
    ]


def test_a_query_says_when_it_changes_next_and_knows_it_after_a_restart() -> None:
    runner = Runner()
    runner.stream("a", rows(0), idle="1 second")
    sums = runner.query("SELECT sum(k) AS s FROM a [RANGE 3 SECONDS]", "sums")
    sessions = runner.query("SELECT k FROM a [PARTITION BY k SESSION GAP 5 SECONDS]", "sessions")
    newest = runner.query("SELECT k FROM a [ROWS 1]", "newest")
    runner.feed({"a": rows(2, 4)})
    runner.restart()
    runner.feed({"a": rows(5)})
    wakes = {q.name: q.stats()["wakes_at"] for q in (sums, sessions, newest)}
    assert wakes["newest"] is None
    assert 5 * SECOND <= wakes["sums"] <= 5 * SECOND + 1
    assert wakes["sessions"] == 9 * SECOND + 1  # the row at 5 has not been processed yet


def test_rstream_repeats_at_boundaries_that_no_row_brings() -> None:
    """What stays on the left of an outer join is repeated though the right side is empty."""
    runner = Runner()
    for name in "ab":
        runner.stream(name, rows(0), idle="1 second")
    query = runner.query(
        "SELECT RSTREAM a.k FROM a [ROWS 1] LEFT JOIN "
        "b [RANGE 2 SECONDS SLIDE 2 SECONDS] ON a.k = b.k",
        "q",
    )
    runner.feed({"a": rows(0), "b": rows(0)})
    runner.tick(1)
    for clock in range(2, 10):
        runner.tick(clock * SECOND)
    found = query.results()["__ts"].cast(pa.int64()).to_pylist()
    assert found == [0, 2 * SECOND, 4 * SECOND, 6 * SECOND]
