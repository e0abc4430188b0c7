"""What a close ends, and what it lets out."""

from __future__ import annotations

from collections import Counter

import pytest
from timed_rows import SECOND, batch, late_of, rows_of, runner

from thalweg.store.storage import MemoryStorage
from thalweg.testing.runner import Runner


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


def test_a_close_reaches_the_boundary_of_a_window_over_a_sliding_subquery() -> None:
    """The inner window emits at 11, the outer one shows that at 12."""
    made = _over_one_row(
        "SELECT ISTREAM count(*) AS n FROM (SELECT ISTREAM v FROM s "
        "[RANGE 4 SECONDS SLIDE 1 SECOND]) [RANGE 3 SECONDS SLIDE 1 SECOND]"
    )
    made.run()
    assert rows_of(made.queries["q"]) == [(10, 1, (0,)), (12, 1, (1,))]


# -- a final run -------------------------------------------------------------------------------


def _over_one_row(sql: str, storage: MemoryStorage | None = None) -> Runner:
    made = Runner(storage=storage)
    made.stream("s", batch((10, 1)))
    made.query(sql, "q")
    return made


def test_a_final_run_reaches_every_boundary_of_a_sliding_window() -> None:
    made = _over_one_row("SELECT RSTREAM v FROM s [RANGE 4 SECONDS SLIDE 1 SECOND]")
    made.run(final=True)
    assert [at for at, _, _ in rows_of(made.queries["q"])] == [11, 12, 13, 14]


@pytest.mark.parametrize(
    ("window", "last"),
    [
        ("[NOW]", 10.000001),
        ("[RANGE 4 SECONDS]", 14.000001),
        ("[RANGE 4 SECONDS SLIDE 1 SECOND]", 15),
        ("[SESSION GAP 2 SECONDS]", 12.000002),
        ("[LANDMARK EVERY 4 SECONDS]", 12),
    ],
)
def test_a_final_run_takes_out_whatever_time_takes_out(window: str, last: float) -> None:
    made = _over_one_row(f"SELECT v, count(*) AS n FROM s {window} GROUP BY v")
    made.run(final=True)
    assert [(at, sign) for at, sign, _ in rows_of(made.queries["q"])][-1] == (last, -1)


@pytest.mark.parametrize("window", ["[ROWS 1]", "[UNBOUNDED]", "[LANDMARK '1970-01-01 00:00:01']"])
def test_a_final_run_leaves_what_time_does_not_take_out(window: str) -> None:
    made = _over_one_row(
        f"SELECT v, count(*) AS n FROM s {window} GROUP BY v WITH (unbounded = true)"
    )
    made.run(final=True)
    assert rows_of(made.queries["q"]) == [(10, 1, (1, 1))]


def test_windows_over_what_a_subquery_emits_are_emptied_too() -> None:
    made = _over_one_row(
        "SELECT count(*) AS n FROM (SELECT DSTREAM v FROM s [RANGE 4 SECONDS]) [RANGE 2 SECONDS]"
    )
    made.run(final=True)
    changes = rows_of(made.queries["q"])
    assert [(at, n) for at, sign, (n,) in changes if sign > 0] == [
        (10, 0), (14.000001, 1), (16.000002, 0),
    ]  # fmt: skip


def test_the_answer_after_a_final_run_is_that_over_the_data() -> None:
    """Nobody asks what is in windows that time has emptied; a later epoch counts again."""
    storage = MemoryStorage()
    made = _over_one_row("SELECT v FROM s [RANGE 4 SECONDS]", storage)
    made.run(final=True)
    query = made.queries["q"]
    assert query.invoke().to_pylist() == [{"v": 1}]
    assert query.invoke(14_000_001).num_rows == 0
    made.restart()
    assert query.invoke().to_pylist() == [{"v": 1}]
    made.feed({"s": batch((30, 2), (31, 3))})
    assert query.invoke().to_pylist() == [{"v": 2}]


@pytest.mark.parametrize("mode", ["none", "p", "c"])
def test_queries_that_only_answer_stay_at_the_data(mode: str) -> None:
    made = _over_one_row(f"SELECT v FROM s [RANGE 4 SECONDS] WITH (materialize = '{mode}')")
    made.run(final=True)
    assert made.queries["q"].invoke().to_pylist() == [{"v": 1}]


def test_rows_before_what_a_final_run_has_answered_are_late() -> None:
    made = _over_one_row("SELECT v FROM s [RANGE 4 SECONDS]")
    made.run(final=True)
    made.feed({"s": batch((14, 2), (14.000002, 3))})
    assert late_of(made.queries["q"]) == 1


def test_a_runner_has_heartbeats() -> None:
    made = runner()
    query = made.query("SELECT DSTREAM v FROM s [RANGE 1 SECOND]")
    made.feed({"s": batch((10, 1))})
    made.heartbeat("s", 20 * SECOND)
    assert rows_of(query) == [(11.000001, 1, (1,))]
