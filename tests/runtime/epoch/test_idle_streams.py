"""Streams that are silent: how long others wait for them."""

from __future__ import annotations

from timed_rows import SECOND, batch, late_of, rows_of, runner

from thalweg.testing.runner import Runner


def test_idle_is_declared() -> None:
    made = runner(idle="3 seconds")
    query = made.query("SELECT DSTREAM v FROM s [NOW]")
    made.feed({"s": batch((5, 1))})
    made.tick(2 * SECOND)
    assert rows_of(query) == []
    made.tick(4 * SECOND)
    assert rows_of(query) == [(5.000001, 1, (1,))]


def test_idle_never_waits() -> None:
    made = runner(idle=None)
    query = made.query("SELECT DSTREAM v FROM s [RANGE 1 SECOND]")
    made.feed({"s": batch((1, 1))})
    made.tick(3600 * SECOND)
    assert rows_of(query) == []


def test_idle_never_in_words() -> None:
    made = Runner()
    made.sql("CREATE STREAM s (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts IDLE NEVER")
    query = made.query("SELECT DSTREAM v FROM s [RANGE 1 SECOND]")
    made.feed({"s": batch((1, 1))})
    made.tick(3600 * SECOND)
    assert rows_of(query) == []


def test_a_silent_stream_is_left_out_until_its_next_row() -> None:
    made = runner("s", "r")
    query = made.query(
        "SELECT ISTREAM a.v FROM s [RANGE 1 DAY] a, r [RANGE 1 DAY] b WHERE a.v = b.v"
    )
    made.feed({"s": batch((1, 1)), "r": batch((1, 1), (2, 2))})
    for clock in (3, 6, 9):
        made.tick(clock * SECOND)
        made.feed({"s": batch((clock, 2))})
    assert rows_of(query) == [(1, 1, (1,))]  # r holds everything after 2 s back
    made.tick(10 * SECOND)
    assert [r[0] for r in rows_of(query)] == [1, 3, 6, 9]


def test_a_row_behind_what_was_decided_without_it_is_late() -> None:
    made = runner("s", "r")
    query = made.query(
        "SELECT ISTREAM a.v FROM s [RANGE 1 DAY] a, r [RANGE 1 DAY] b WHERE a.v = b.v"
    )
    made.feed({"s": batch((1, 1)), "r": batch((1, 1))})
    made.tick(12 * SECOND)
    made.feed({"s": batch((50, 7))})
    made.tick(13 * SECOND + 1)
    made.feed({"r": batch((20, 7), (60, 7))})
    made.close()
    assert late_of(query, "r") == 1
    assert rows_of(query) == [(1, 1, (1,)), (60, 1, (7,))]
