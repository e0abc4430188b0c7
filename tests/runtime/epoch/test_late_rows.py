"""Rows that come late are counted, kept apart, and enter no answer."""

from __future__ import annotations

from collections import Counter

import pytest
from timed_rows import batch, late_of, reasons, rows_of, runner

from thalweg.errors import ThalwegError
from thalweg.testing.compare import column_values


def test_late_rows_are_counted_and_kept_apart() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((10, 1))})
    report = made.feed({"s": batch((9, 2), (12, 3), (3, 4))})
    assert report is not None
    assert report.late == 2
    made.close()
    assert rows_of(query) == [(10, 1, (1,)), (12, 1, (3,))]
    assert sorted(column_values(made.rejects("s")["v"])) == [2, 4]
    assert late_of(query) == 2


def test_a_late_row_says_so() -> None:
    made = runner()
    made.query("SELECT v FROM s")
    made.feed({"s": batch((10, 1))})
    made.feed({"s": batch((9, 2))})
    assert reasons(made) == ["late"]


def test_a_row_at_the_watermark_is_in_time() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((10, 1))})
    made.feed({"s": batch((10, 2))})
    made.close()
    assert Counter(rows_of(query)) == Counter([(10, 1, (1,)), (10, 1, (2,))])
    assert late_of(query) == 0


def test_within_one_epoch_nothing_is_late() -> None:
    """D6: late is what lies below W at the end of the previous epoch."""
    made = runner()
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((10, 1), (2, 2), (5, 3))})
    made.close()
    assert rows_of(query) == [(2, 1, (2,)), (5, 1, (3,)), (10, 1, (1,))]


@pytest.mark.parametrize(("seconds", "late"), [(7, 0), (6.999999, 1)])
def test_lateness_is_the_limit(seconds: float, late: int) -> None:
    made = runner(lateness="3 seconds")
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((10, 1))})
    made.feed({"s": batch((seconds, 2))})
    made.close()
    assert late_of(query) == late
    assert len(rows_of(query)) == 2 - late


@pytest.mark.parametrize("option", ["lateness", "idle", "ahead"])
def test_durations_are_not_negative(option: str) -> None:
    with pytest.raises(ThalwegError):
        runner(**{option: -5})


def test_late_rows_enter_no_window_and_no_join() -> None:
    made = runner("s", "r")
    count = made.query("SELECT count(*) AS c, sum(v) AS t FROM s [RANGE 100 SECONDS]")
    pairs = made.query("SELECT a.v FROM s [RANGE 100 SECONDS] a, r [RANGE 100 SECONDS] b "
                       "WHERE a.v = b.v")  # fmt: skip
    made.feed({"s": batch((10, 1)), "r": batch((10, 1))})
    made.feed({"s": batch((4, 5), (20, 2)), "r": batch((20, 5))})
    made.close()
    assert rows_of(count)[-1] == (20, 1, (2, 3))
    assert rows_of(pairs) == [(10, 1, (1,))]
    assert late_of(count) == late_of(pairs) == 1


def test_the_watermark_counts_rows_that_a_filter_drops() -> None:
    """D6: W is taken before any filter."""
    made = runner()
    query = made.query("SELECT v FROM s WHERE v < 5")
    made.feed({"s": batch((1, 1), (10, 99))})
    made.feed({"s": batch((5, 2))})
    made.close()
    assert rows_of(query) == [(1, 1, (1,))]
    assert late_of(query) == 1


def test_late_rows_outlive_a_restart() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((10, 1))})
    made.feed({"s": batch((1, 2))})
    made.restart()
    made.feed({"s": batch((2, 3), (11, 4))})
    made.close()
    assert rows_of(query) == [(10, 1, (1,)), (11, 1, (4,))]
    assert late_of(query) == 2
    assert made.rejects("s").num_rows == 2
