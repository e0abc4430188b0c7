"""Time that passes by the clock of the epochs, without rows."""

from __future__ import annotations

from timed_rows import SECOND, batch, late_of, rows_of, runner

from thalweg.testing.compare import canonical, from_table


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


def test_empty_batches_do_nothing() -> None:
    made = runner()
    query = made.query("SELECT v, count(*) AS c FROM s [ROWS 2] GROUP BY v")
    for rows in ([], [(1, 1)], [], [(2, 1)], []):
        made.feed({"s": batch(*rows)})
        made.feed({})
    made.close()
    assert rows_of(query) == [(1, 1, (1, 1)), (2, -1, (1, 1)), (2, 1, (1, 2))]
