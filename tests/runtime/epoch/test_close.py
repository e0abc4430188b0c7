"""What a close ends, and what it lets out."""

from __future__ import annotations

from collections import Counter

from timed_rows import batch, late_of, rows_of, runner


def test_after_a_close_rows_up_to_it_are_late() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((10, 1))})
    made.close()
    made.feed({"s": batch((10, 2), (9, 3), (10.000001, 4))})
    made.close()
    assert rows_of(query) == [(10, 1, (1,)), (10.000001, 1, (4,))]
    assert late_of(query) == 2


def test_a_close_emits_no_later_expiries() -> None:
    made = runner()
    query = made.query("SELECT v FROM s [RANGE 1 SECOND]")
    made.feed({"s": batch((1, 1), (10, 2))})
    made.close()
    assert rows_of(query) == [(1, 1, (1,)), (2.000001, -1, (1,)), (10, 1, (2,))]


def test_a_close_reaches_the_next_slide_boundary() -> None:
    made = runner()
    query = made.query("SELECT ISTREAM v FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS]")
    made.feed({"s": batch((1, 1), (5, 2), (7, 3))})
    made.close()
    assert Counter(rows_of(query)) == Counter([(5, 1, (1,)), (10, 1, (2,)), (10, 1, (3,))])


def test_a_close_takes_the_largest_time_of_all_streams() -> None:
    made = runner("s", "r", lateness="5 seconds")
    query = made.query(
        "SELECT ISTREAM a.v FROM s [RANGE 1 DAY] a, r [RANGE 1 DAY] b WHERE a.v = b.v"
    )
    made.feed({"s": batch((3, 1), (1, 2)), "r": batch((20, 1), (18, 2))})
    assert rows_of(query) == []
    made.close()
    assert rows_of(query) == [(18, 1, (2,)), (20, 1, (1,))]


def test_closing_twice_and_closing_nothing() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    made.close()
    made.feed({"s": batch((1, 1))})
    made.close()
    made.close()
    assert rows_of(query) == [(1, 1, (1,))]
