"""Altering queries that are invoked: nobody else notices, what cannot be is refused as a whole."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError
from thalweg.testing.runner import Runner


def rows(since: int, until: int) -> pa.Table:
    times = range(since, until)
    return pa.table(
        {
            "v": pa.array([t % 10 for t in times], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def runner(mode: str, **how: Any) -> Runner:
    made = Runner()
    made.stream("s", rows(0, 0), **how)
    made.query("SELECT count(*) AS n FROM s [RANGE 30 MICROSECONDS]", "bystander")
    made.query("SELECT ISTREAM v FROM s WHERE v > 4", "filter")
    made.query(f"SELECT v FROM s [RANGE 5 MICROSECONDS] WITH (materialize = '{mode}')", "q")
    made.feed({"s": rows(0, 30)})
    return made


def state(made: Runner, name: str = "q") -> Any:
    return made.core.state.known(name)


def answer(made: Runner) -> list[int]:
    return sorted(made.queries["q"].invoke()["v"].to_pylist())


@pytest.mark.parametrize("mode", ["none", "p", "c", "auto"])
@pytest.mark.parametrize(
    "change",
    ["SET WINDOW s [RANGE 20 MICROSECONDS]", "AS SELECT v FROM s [RANGE 20 MICROSECONDS]"],
)
def test_others_do_not_notice(mode: str, change: str) -> None:
    """priorart C2, C6: no row is late, and the answer is that of the new window at once."""
    made = runner(mode)
    made.sql(f"ALTER QUERY q {change}")
    assert answer(made) == sorted(t % 10 for t in range(8, 29))
    for at in range(30, 60, 5):
        made.feed({"s": rows(at, at + 5)})
    assert answer(made) == sorted(t % 10 for t in range(38, 59))
    assert made.queries["bystander"].invoke().to_pylist() == [{"n": 31}]
    assert made.queries["filter"].results().num_rows == sum(t % 10 > 4 for t in range(59))
    assert made.core.state.streams["s"].late == 0


def test_auto_becomes_c_where_nothing_else_is_possible() -> None:
    made = runner("auto")
    made.sql("ALTER QUERY q AS SELECT v FROM s [ROWS 3] WITH (materialize = 'auto')")
    assert state(made).definition.mode == "c"
    made.feed({"s": rows(30, 40)})
    assert answer(made) == [6, 7, 8]
    made.restart()
    assert answer(made) == [6, 7, 8]


@pytest.mark.parametrize("mode", ["none", "p"])
@pytest.mark.parametrize("said", ["", " WITH (materialize = '{}')"])
def test_what_a_mode_cannot_answer_is_refused(mode: str, said: str) -> None:
    made = runner(mode)
    with pytest.raises(ConfigError, match="does not follow from which rows"):
        made.sql(f"ALTER QUERY q AS SELECT v FROM s [ROWS 3]{said.format(mode)}")
    with pytest.raises(ConfigError, match="does not follow from which rows"):
        made.sql("ALTER QUERY q SET WINDOW s [ROWS 3]")
    made.feed({"s": rows(30, 40)})
    assert answer(made) == [3, 4, 5, 6, 7, 8]
    made.restart()
    assert answer(made) == [3, 4, 5, 6, 7, 8]


def test_a_new_text_may_name_another_mode() -> None:
    made = runner("p")
    made.sql("ALTER QUERY q AS SELECT v FROM s [RANGE 5 MICROSECONDS] WITH (materialize = 'c')")
    assert state(made).definition.mode == "c"
    made.feed({"s": rows(30, 40)})
    assert answer(made) == [3, 4, 5, 6, 7, 8]
    changed = "SELECT count(*) AS n FROM s [RANGE 30 MICROSECONDS] WITH (materialize = 'p')"
    with pytest.raises(ConfigError, match="emits its changes"):
        made.sql(f"ALTER QUERY bystander AS {changed}")
    assert state(made, "bystander").definition.mode == ""


def test_what_is_refused_leaves_no_trace() -> None:
    made = runner("p")
    with pytest.raises(ConfigError, match="emits its changes"):
        made.sql("ALTER QUERY bystander SET (materialize = 'p')")
    assert state(made, "bystander").definition.altered == {}
    assert made.queries["bystander"].bound.options.materialize is None


def test_options_outlive_another_window_but_not_another_text() -> None:
    made = runner("c")
    made.sql("ALTER QUERY filter SET (filters = 'sweep', state_limit = 100000)")
    made.queries["bystander"].alter(
        "SELECT count(*) AS n FROM s [RANGE 9 MICROSECONDS] WITH (state_limit = 100000)"
    )
    made.sql("ALTER QUERY bystander SET (filters = 'sweep')")
    made.sql("ALTER QUERY bystander SET WINDOW s [RANGE 8 MICROSECONDS]")
    assert made.queries["bystander"].bound.options.filters == "sweep"
    assert state(made, "bystander").definition.altered == {"filters": "sweep"}
    assert made.core.plans.limits["bystander"] == 100000
    made.queries["bystander"].alter("SELECT count(*) AS n FROM s [RANGE 7 MICROSECONDS]")
    assert made.queries["bystander"].bound.options.filters == "auto"
    assert "bystander" not in made.core.plans.limits


@pytest.mark.parametrize("mode", ["none", "p"])
def test_an_answer_over_what_has_expired_is_partial(mode: str) -> None:
    """priorart C1, PS-2: it says from when on the window's rows are there."""
    made = Runner()
    made.stream("s", rows(0, 0), retain="20 microseconds")
    text = "SELECT v FROM s [RANGE 9 MICROSECONDS]"
    query = made.query(f"{text} WITH (materialize = '{mode}')", "q")
    for at in range(0, 60, 10):
        made.feed({"s": rows(at, at + 10)})
    kept = made.core.state.streams["s"].kept_since
    for at in (kept + 3, kept + 9, kept - 5, 58):
        found = query.invoke(at)
        told = {k.decode(): v.decode() for k, v in found.schema.metadata.items()}
        whole = at - 9 >= kept
        assert told["thalweg.status"] == ("COMPLETE" if whole else "PARTIAL"), at
        assert found.num_rows == max(at - max(kept, at - 9) + 1, 0)
        assert ("thalweg.since" in told) is not whole


def test_nobody_knows_the_future() -> None:
    made = runner("c")
    for name in ("bystander", "q"):
        with pytest.raises(ConfigError, match=r"knows nothing of|only the current answer"):
            made.queries[name].invoke(1000)
    assert made.queries["bystander"].invoke(20).to_pylist() == [{"n": 21}]


@pytest.mark.parametrize("mode", [None, "none", "c", "auto"])
def test_a_stream_that_is_behind_loses_no_row(mode: str | None) -> None:
    """A query that has come further by another stream waits for this one; its rows are not late,
    for nobody."""
    made = Runner()
    for name in ("fast", "slow"):
        made.stream(name, rows(0, 0), retain="1 hour")
    told = "" if mode is None else f" WITH (materialize = '{mode}')"
    text = "SELECT v FROM {} [RANGE 9 MICROSECONDS] WHERE v > 3"
    made.query(text.format("fast") + told, "q")
    filter_ = made.query("SELECT ISTREAM v FROM slow", "filter")
    made.feed({"fast": rows(0, 100), "slow": rows(0, 40)})
    made.queries["q"].alter(text.format("slow") + told)
    for at in range(40, 140, 10):
        made.feed({"slow": rows(at, at + 10)})
    assert made.core.state.streams["slow"].late == 0
    assert filter_.results().num_rows == 139
    assert answer(made) == sorted(t % 10 for t in range(129, 139) if t % 10 > 3)
