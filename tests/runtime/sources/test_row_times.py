"""Times of rows: missing, implausible, in other units, and of arrival."""

from __future__ import annotations

import pyarrow as pa
import pytest
from timed_rows import SECOND, STAMP, batch, late_of, reasons, rows_of, runner

from thalweg.testing.compare import column_values
from thalweg.testing.runner import Runner


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
