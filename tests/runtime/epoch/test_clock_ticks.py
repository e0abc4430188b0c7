"""Rows that come late, rows without a usable time, and time that passes without rows."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ThalwegError
from thalweg.testing.compare import ResultRow, canonical, column_values, from_table
from thalweg.testing.runner import Runner

SECOND = 1_000_000
STAMP = pa.timestamp("us", "UTC")


def batch(*rows: tuple[int | None, Any]) -> pa.Table:
    """Rows of (seconds, value); None is a NULL timestamp."""
    stamps = [None if s is None else round(s * SECOND) for s, _ in rows]
    return pa.table(
        {"ts": pa.array(stamps, STAMP), "v": pa.array([v for _, v in rows], pa.int64())}
    )


def runner(*names: str, **options: Any) -> Runner:
    made = Runner()
    for name in names or ("s",):
        made.stream(name, batch(), **options)
    return made


def rows_of(query: Any) -> list[tuple[float, int, tuple[Any, ...]]]:
    """(seconds, sign, values) in order of time."""
    return [(ts / SECOND, sign, values) for ts, sign, values in from_table(query.results())]


def reasons(made: Runner, stream: str = "s") -> list[str]:
    return column_values(made.rejects(stream)["__reason"])


def late_of(query: Any, stream: str = "s") -> int:
    count: int = query.stats()["streams"][stream]["late"]
    return count


# --- late rows


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


# --- rows without a usable time


def test_a_row_without_time_is_rejected() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    report = made.feed({"s": batch((1, 1), (None, 2), (3, 3))})
    made.close()
    assert report is not None
    assert report.rejected == 1
    assert reasons(made) == ["no timestamp"]
    assert column_values(made.rejects("s")["v"]) == [2]
    assert rows_of(query) == [(1, 1, (1,)), (3, 1, (3,))]
    stats = query.stats()["streams"]["s"]
    assert (stats["rejected"], stats["late"]) == (1, 0)


def test_only_rows_without_time() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((None, 1), (None, 2))})
    made.close()
    assert query.results().num_rows == 0
    assert made.rejects("s").num_rows == 2


def test_ahead_rejects_the_implausible_and_the_rest_goes_on() -> None:
    made = runner(ahead="1 hour")
    query = made.query("SELECT v FROM s")
    made.tick(1000 * SECOND)
    made.feed({"s": batch((900, 1), (1000 + 3601, 2), (1000 + 3600, 3))})
    made.feed({"s": batch((1000 + 3600, 4))})
    made.close()
    assert sorted(v for _, _, (v,) in rows_of(query)) == [1, 3, 4]
    (reason,) = reasons(made)
    assert "ahead" in reason
    assert late_of(query) == 0


def test_without_ahead_the_far_future_makes_the_present_late() -> None:
    """Nobody said it was implausible; what is lost is counted."""
    made = runner()
    query = made.query("SELECT v FROM s [RANGE 36500 DAYS]")
    far = 253_402_300_799  # the last second of the year 9999
    made.feed({"s": batch((1, 1), (far, 2))})
    made.feed({"s": batch((2, 3))})
    made.close()
    expiry = 1 + 36_500 * 86_400
    expected = [(1, 1, (1,)), (expiry + 1e-6, -1, (1,)), (far, 1, (2,))]
    assert rows_of(query) == expected
    assert late_of(query) == 1


@pytest.mark.parametrize("micros", [2**63 - 1, -(2**63), 2**62])
def test_a_time_that_cannot_be_computed_with_is_rejected(micros: int) -> None:
    made = runner()
    query = made.query("SELECT v FROM s [RANGE 1 DAY]")
    strange = pa.table({"ts": pa.array([micros], pa.int64()).cast(STAMP), "v": [1]})
    made.feed({"s": pa.concat_tables([strange, batch((5, 2))])})
    made.close()
    assert rows_of(query) == [(5, 1, (2,))]
    assert len(reasons(made)) == 1


def test_times_before_1970() -> None:
    made = runner()
    query = made.query("SELECT count(*) AS c FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]")
    made.feed({"s": batch((-25, 1), (-21, 2), (-12, 3))})
    made.close()
    assert [r for r in rows_of(query) if r[1] == 1][-2:] == [(-20, 1, (2,)), (-10, 1, (1,))]


def test_integer_times_have_a_unit() -> None:
    made = Runner()
    rows = pa.table({"at": pa.array([5, 7, None], pa.int64()), "v": [1, 2, 3]})
    made.stream("s", rows, "at", unit="seconds")
    query = made.query("SELECT v FROM s")
    made.run()
    assert rows_of(query) == [(5, 1, (1,)), (7, 1, (2,))]
    assert reasons(made) == ["no timestamp"]


def test_arrival_time_is_the_clock_of_the_epoch() -> None:
    made = Runner()
    made.stream("s", pa.table({"v": pa.array([], pa.int64())}), None)
    query = made.query("SELECT v FROM s")
    for clock in (5, 9):
        made.tick(clock * SECOND)
        made.feed({"s": pa.table({"v": [clock]})})
    made.close()
    assert rows_of(query) == [(5, 1, (5,)), (9, 1, (9,))]


# --- time passes


def test_a_stream_in_order_closes_its_newest_instant_after_a_second() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    made.tick(100 * SECOND)
    made.feed({"s": batch((1, 1), (2, 2))})
    assert rows_of(query) == [(1, 1, (1,))]
    made.tick(101 * SECOND - 1)
    assert rows_of(query) == [(1, 1, (1,))]
    made.tick(101 * SECOND)
    assert rows_of(query) == [(1, 1, (1,)), (2, 1, (2,))]


def test_the_newest_instant_is_closed_for_good() -> None:
    made = runner()
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((2, 1))})
    made.tick(2 * SECOND)
    made.feed({"s": batch((2, 2), (3, 3))})
    made.close()
    assert rows_of(query) == [(2, 1, (1,)), (3, 1, (3,))]
    assert late_of(query) == 1


def test_a_stream_with_lateness_does_not_settle() -> None:
    made = runner(lateness="2 seconds")
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((1, 1), (4, 2))})
    made.tick(9 * SECOND)
    assert rows_of(query) == [(1, 1, (1,))]


def test_run_never_asks_the_clock() -> None:
    """D6: a feed is not a tick; without ticks nothing settles, however long it takes."""
    made = runner()
    query = made.query("SELECT v FROM s")
    made.feed({"s": batch((1, 1))})
    made.feed({})
    made.feed({"s": batch()})
    assert rows_of(query) == []


def test_expiries_come_with_the_clock() -> None:
    made = runner()
    query = made.query("SELECT DSTREAM v FROM s [RANGE 5 SECONDS]")
    made.feed({"s": batch((1, 1), (2, 2))})
    seen = []
    for clock in (1, 10, 14, 15, 16, 20):
        made.tick(clock * SECOND)
        seen.append([r[0] for r in rows_of(query)])
    # after 10 s of silence time goes on at the clock's pace: W is 2 s + (clock - 10 s)
    first, second = 6.000001, 7.000001
    assert seen == [[], [], [], [first], [first, second], [first, second]]


def test_window_results_come_with_the_clock() -> None:
    made = runner()
    query = made.query("SELECT RSTREAM count(*) AS c FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]")
    made.feed({"s": batch((1, 1), (2, 2))})
    made.tick(17 * SECOND)
    assert (10, 1, (2,)) not in rows_of(query)
    made.tick(19 * SECOND)
    assert (10, 1, (2,)) in rows_of(query)


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


def test_a_tick_without_any_rows() -> None:
    made = runner()
    query = made.query("SELECT count(*) AS c FROM s [RANGE 1 SECOND]")
    for clock in (1, 100, 1000):
        made.tick(clock * SECOND)
    made.close()
    assert query.results().num_rows == 0
    assert query.status.lower() == "running"


def test_ticks_change_nothing_but_when() -> None:
    """Clock readings decide when results leave, never which, as long as no row is late."""
    rows = [(i, i % 3) for i in range(1, 30)]
    sql = "SELECT v, count(*) AS c FROM s [RANGE 4 SECONDS] GROUP BY v"
    plain, ticking = runner(), runner()
    expected, found = plain.query(sql), ticking.query(sql)
    for row in rows:
        plain.feed({"s": batch(row)})
        ticking.tick(row[0] * SECOND + 5)
        ticking.feed({"s": batch(row)})
    plain.close()
    ticking.close()
    assert canonical(from_table(found.results())) == canonical(from_table(expected.results()))


# --- close


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


# --- odd batches and odd keys


def test_empty_batches_do_nothing() -> None:
    made = runner()
    query = made.query("SELECT v, count(*) AS c FROM s [ROWS 2] GROUP BY v")
    for rows in ([], [(1, 1)], [], [(2, 1)], []):
        made.feed({"s": batch(*rows)})
        made.feed({})
    made.close()
    assert rows_of(query) == [(1, 1, (1, 1)), (2, -1, (1, 1)), (2, 1, (1, 2))]


def odd_keys() -> pa.Table:
    keys = [None, None, math.nan, math.nan, -math.nan, 0.0, -0.0]
    return pa.table({
        "ts": pa.array([i * SECOND for i in range(len(keys))], STAMP),
        "x": pa.array(keys, pa.float64()),
        "v": list(range(len(keys))),
    })  # fmt: skip


def emitted(sql: str, how: dict[str, Any]) -> Counter[ResultRow]:
    made = Runner(**how)
    made.stream("s", odd_keys())
    made.stream("r", odd_keys())
    query = made.query(sql)
    made.run()
    return canonical(from_table(query.results()))


HOW: list[dict[str, Any]] = [{}, {"epochs": 3, "buckets": 4}, {"epochs": 7, "restarts": (2, 4)}]


@pytest.mark.parametrize("how", HOW)
def test_null_never_joins_nan_and_zero_do(how: dict[str, Any]) -> None:
    found = emitted("SELECT ISTREAM a.v, b.v AS w FROM s [RANGE 1 DAY] a, r [RANGE 1 DAY] b "
                    "WHERE a.x = b.x", how)  # fmt: skip
    pairs = {values for _, _, values in found}
    nans, zeros = (2, 3, 4), (5, 6)
    assert pairs == {(a, b) for group in (nans, zeros) for a in group for b in group}


@pytest.mark.parametrize("how", HOW)
def test_null_and_nan_are_one_group_each(how: dict[str, Any]) -> None:
    found = emitted("SELECT count(*) AS c, max(v) AS m FROM s [RANGE 1 DAY] GROUP BY x", how)
    state: Counter[Any] = Counter()
    for (_, sign, values), n in found.items():
        state[values] += sign * n
    assert +state == Counter([(2, 1), (3, 4), (2, 6)])


@pytest.mark.parametrize("how", HOW)
def test_null_and_nan_are_one_partition_each(how: dict[str, Any]) -> None:
    found = emitted("SELECT v FROM s [PARTITION BY x ROWS 1]", how)
    state: Counter[Any] = Counter()
    for (_, sign, values), n in found.items():
        state[values] += sign * n
    assert +state == Counter([(1,), (4,), (6,)])
