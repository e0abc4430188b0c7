"""What is said of an answer is true: COMPLETE means that all rows ever fed were counted."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError
from thalweg.runtime.session.client import Client
from thalweg.testing.runner import Runner

MODES = ("none", "p", "c", "auto", None)


def rows(*times: int) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([t % 3 for t in times], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def runner(**how: Any) -> Runner:
    made = Runner()
    for name in ("a", "b"):
        made.stream(name, rows(), **how)
    return made


def told(mode: str | None) -> str:
    return "" if mode is None else f" WITH (materialize = '{mode}')"


def status(answer: pa.Table) -> str:
    return str(answer.schema.metadata[b"thalweg.status"].decode())


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_which_no_column_is_read_are_counted(mode: str | None) -> None:
    """priorart PS-13."""
    made = runner(retain="1 hour")
    window = "[RANGE 45 MICROSECONDS]"
    count = made.query(f"SELECT count(*) AS n FROM a {window}{told(mode)}", "count")
    ones = made.query(f"SELECT 1 AS n FROM a {window}{told(mode)}", "ones")
    pairs = made.query(f"SELECT p.k FROM a {window} p, b {window} q{told(mode)}", "pairs")
    made.feed({"a": rows(1, 2, 3), "b": rows(1, 2, 3)})
    assert count.invoke()["n"].to_pylist() == [2]
    assert ones.invoke()["n"].to_pylist() == [1, 1]
    assert sorted(pairs.invoke()["k"].to_pylist()) == [1, 1, 2, 2]


@pytest.mark.parametrize("other", ["[LANDMARK TIMESTAMP '1970-01-01']", "[RANGE 9 SECONDS]"])
@pytest.mark.parametrize("mode", ["none", "c", "auto", None])
def test_joins_under_endless_windows_know_more_than_is_retained(
    mode: str | None, other: str
) -> None:
    made = runner(retain="5 microseconds")
    text = f"SELECT p.k FROM a [LANDMARK TIMESTAMP '1970-01-01'] p, b {other} q"
    with pytest.raises(ConfigError, match="say materialize"):
        made.query(f"{text} WITH (materialize = 'p', unbounded = true)")
    given = "unbounded = true" if mode is None else f"unbounded = true, materialize = '{mode}'"
    query = made.query(f"{text} WITH ({given})", "q")
    made.feed({"a": rows(1)})
    made.feed({"b": rows(50)})
    made.feed({"a": rows(60), "b": rows(60)})
    assert query.invoke()["k"].to_pylist() == [1]


@pytest.mark.parametrize("mode", ["none", "p", "auto"])
def test_a_table_that_begins_to_change(mode: str) -> None:
    """Answers are kept from then on, also of those that sleep, and after a restart."""
    made = runner(retain="1 hour")
    made.table("t", pa.table({"k": [0, 1, 2], "g": [10, 20, 30]}))
    text = "SELECT x.k, t.g FROM a [RANGE 50 MICROSECONDS] x, t WHERE x.k = t.k"
    plain = made.query(text, "plain")
    if mode == "p":
        with pytest.raises(ConfigError):
            made.query(text + told(mode), "q0")
        return
    queries = [made.query(text + told(mode), f"q{i}") for i in range(3)]
    made.feed({"a": rows(1, 2, 3)})
    made.table("t", pa.table({"k": [0, 1, 2], "g": [11, 21, 31]}))
    for step in range(3):
        for query in queries:
            rows_of = [sorted(q.invoke().to_pylist(), key=str) for q in (plain, query)]
            assert rows_of[0] == rows_of[1]
        made.feed({"a": rows(10 + 10 * step)})
        if step == 1:
            made.restart()
    assert {made.core.state.known(q.name).definition.mode for q in queries} == {"c"}


def test_a_member_that_came_back_has_its_new_text_after_all() -> None:
    """Whoever registers the text it was created with attaches to what it says now."""
    made = Runner(share_from=0)
    made.stream("a", rows())
    made.query("SELECT k FROM a WHERE k = 0", "q")
    made.query("SELECT k FROM a WHERE k = 0", "other")
    made.feed({"a": rows(1, 2, 3)})
    made.queries["q"].alter("SELECT k FROM a WHERE k = 1")
    for at in (4, 7, 10):
        made.feed({"a": rows(at, at + 1, at + 2)})
    assert "q" in made.core.cohorts.by_name
    again = Runner(share_from=0, storage=made.storage)
    again.stream("a", rows())
    again.session.resume()
    query = again.query("SELECT k FROM a WHERE k = 0", "q")
    assert query.text == "SELECT k FROM a WHERE k = 1"
    again.sql("ALTER QUERY q SET (share = 'off')")
    for at in (13, 16, 19):
        again.feed({"a": rows(at, at + 1, at + 2)})
    assert set(query.results()["k"].to_pylist()[1:]) == {1}


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
