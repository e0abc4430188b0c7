"""What is said of an answer is true: COMPLETE means that all rows ever fed were counted."""

from __future__ import annotations

import pyarrow as pa
import pytest
from two_streams import MODES, rows, runner, told

from thalweg.runtime.session.client import Client


def status(answer: pa.Table) -> str:
    return str(answer.schema.metadata[b"thalweg.status"].decode())


@pytest.mark.parametrize("mode", MODES)
def test_rows_before_it_came_are_missing(mode: str | None) -> None:
    """priorart C5."""
    made = runner()
    made.query("SELECT ISTREAM k FROM a", "other")
    made.feed({"a": rows(9, 23)})
    query = made.query(f"SELECT k FROM a [RANGE 45 MICROSECONDS]{told(mode)}", "q")
    for at, wanted in ((33, "PARTIAL"), (50, "PARTIAL"), (90, "COMPLETE")):
        made.feed({"a": rows(at, at + 1)})
        assert status(query.invoke()) == wanted, at


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("view", ["ISTREAM k FROM a", "DSTREAM k FROM a [RANGE 5 MICROSECONDS]"])
def test_a_view_that_came_late(view: str, mode: str | None) -> None:
    made = runner()
    made.query("SELECT ISTREAM k FROM a", "other")
    made.feed({"a": rows(10, 20, 30)})
    made.sql(f"CREATE VIEW rv RETAIN 1 HOUR AS SELECT {view}")
    query = made.query(f"SELECT count(*) AS n FROM rv [RANGE 45 MICROSECONDS]{told(mode)}", "q")
    seen = []
    for at in range(35, 120, 5):
        made.feed({"a": rows(at)})
        seen.append(status(query.invoke()))
    assert seen == sorted(seen, reverse=True)  # first PARTIAL, then COMPLETE
    # its first rows are there from 31 on, the window is 45 long, the last instants are not over
    assert seen.count("PARTIAL") >= (76 - 35) // 5
    assert seen[-1] == "COMPLETE"


@pytest.mark.parametrize("kind", ["ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("mode", ["c", None])
def test_windows_above_windows(kind: str, mode: str | None) -> None:
    made = runner()
    made.query("SELECT ISTREAM k FROM a", "other")
    made.feed({"a": rows(10, 20, 39)})
    inner = f"SELECT {kind} k FROM a [RANGE 5 MICROSECONDS]"
    query = made.query(
        f"SELECT count(*) AS n FROM ({inner}) [RANGE 25 MICROSECONDS]{told(mode)}", "q"
    )
    for at in range(45, 120, 5):
        made.feed({"a": rows(at)})
        if status(query.invoke()) == "COMPLETE":
            assert at - 5 >= 40 + 5 + 25 - 1
    assert status(query.invoke()) == "COMPLETE"


def test_coverage_that_begins_with_time() -> None:
    made = runner()
    made.query("SELECT ISTREAM k FROM a", "other")
    made.feed({"a": rows(-1)})
    query = made.query("SELECT k FROM a [RANGE 45 MICROSECONDS]", "Q")
    made.feed({"a": rows(3, 4)})
    assert "rows since '1970-01-01 00:00:00" in str(query.coverage)
    assert Client(made.storage).sql("INVOKE q").num_rows == 1
