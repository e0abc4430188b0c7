"""Where parts of an engine meet: what is committed when, what outlives a run, what is awaited."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from thalweg import col
from thalweg.errors import ConfigError, UnknownName
from thalweg.runtime.sinks.sinks import FunctionSink
from thalweg.runtime.upkeep.stream_demand import StreamDemand
from thalweg.statements import SelectStatement, parse
from thalweg.store import manifest
from thalweg.testing import Runner

SUMS = "SELECT k, sum(v) AS t FROM s [RANGE 20 MICROSECONDS] GROUP BY k"


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    ts = pa.array(numbers, pa.timestamp("us", "UTC"))
    return pa.table({"k": [i % 3 for i in numbers], "v": [i % 7 for i in numbers], "ts": ts})


def runner(**options: Any) -> Runner:
    made = Runner(**options)
    made.stream("s", rows(0, 1), retain="1 hour")
    made._tables.clear()
    return made


def epoch(made: Runner) -> int:
    return manifest.load(made.storage)[0]


def test_a_change_that_is_refused_commits_nothing() -> None:
    made = runner()
    made.query(SUMS, "q")
    before = epoch(made)
    for statement in ("DROP QUERY nosuch", "ALTER QUERY q AS SELECT v FROM s"):
        with pytest.raises((UnknownName, ConfigError)):
            made.sql(statement)
    assert epoch(made) == before


def test_what_precedes_an_error_in_a_script_is_committed() -> None:
    made = runner()
    made.sql(f"CREATE QUERY a AS {SUMS}; CREATE QUERY b AS {SUMS}")
    with pytest.raises(UnknownName):
        made.sql("DROP QUERY a; DROP QUERY nosuch; DROP QUERY b")
    assert manifest.load(made.storage)[1]["queries"].keys() == {"b"}


def test_a_query_is_refused_before_its_options_are_looked_at() -> None:
    with pytest.raises(UnknownName, match="unknown query nosuch"):
        runner().sql("ALTER QUERY nosuch SET (nonsense = 1)")


def test_waiting_for_an_engine_that_stops_runs_no_epoch() -> None:
    """Whoever waits in INVOKE must not go on by itself: others may use the engine by then."""
    made = runner(slice_rows=5)
    made.query("SELECT ISTREAM k FROM s", "live")
    made.feed({"s": rows(0, 100)})
    made.query(SUMS, "late")
    made.core.coordinator.save(0)
    assert made.core.readiness.is_behind("late")
    changes, before = made.core.changes, epoch(made)
    asked: list[bool] = []

    def stops_after_three() -> bool:
        asked.append(True)
        if len(asked) == 3:
            changes.driver = None
        return changes.is_running

    changes.driver = SimpleNamespace(between_epochs=lambda action: action())  # type: ignore[assignment]
    changes.wait = stops_after_three  # type: ignore[method-assign]
    made.core.readiness.catch_up("late")
    assert len(asked) == 3
    assert epoch(made) == before
    made.core.readiness.catch_up("late")
    assert not made.core.readiness.is_behind("late")


def test_troubles_of_a_sink_end_with_the_run_or_the_query() -> None:
    def fails(_: pa.Table) -> None:
        raise OSError("no")

    made = runner()
    query = made.query(SUMS, "q")
    query.sinks.append(FunctionSink(fails))
    made.feed({"s": rows(0, 5)})
    delivery = made.core.delivery
    assert delivery.failure("q") == "OSError: no"
    made.core.driver(SimpleNamespace(), lambda script, name: None)  # type: ignore[arg-type]
    assert delivery.failure("q") is None
    made.feed({"s": rows(5, 9)})
    assert delivery.failure("q") == "OSError: no"
    query.drop()
    delivery.raise_trouble()


def test_packs_are_numbered_only_for_references() -> None:
    """Numbers are kept for ever: an engine that runs for long must not number every pack."""
    made = runner()
    made.query(SUMS, "q")
    for step in range(5):
        made.feed({"s": rows(10 * step, 10 * step + 10)})
    executor: Any = made.core.runner.executor
    assert executor.cache._names == []


def test_queries_of_an_earlier_run_are_shown_before_they_go_on() -> None:
    made = runner()
    made.query(SUMS, "own")
    made.query("SELECT k FROM s WHERE k > 1 WITH (share = 'on')", "member")
    for name in ("leader", "dormant"):
        made.query(f"{SUMS.replace('20', '30')} WITH (materialize = 'none')", name)
    made.feed({"s": rows(0, 10)})
    again = Runner(storage=made.storage)
    shown = again.sql("SHOW QUERIES").to_pylist()
    assert {r["name"]: r["coverage"] for r in shown} == dict.fromkeys(
        ("own", "leader", "dormant", "member")
    )
    again.stream("s", rows(0, 1), retain="1 hour")
    again.resume()
    covered = {r["coverage"] for r in again.sql("SHOW QUERIES").to_pylist()}
    assert covered == {"COMPLETE"}


def test_what_was_planned_by_other_names_is_refused_again() -> None:
    """A table that begins to change between planning and admitting a query."""
    made = runner()
    made.table("t", pa.table({"k": [0, 1], "g": [1, 2]}))
    text = "SELECT s.v, t.g FROM s [RANGE 9 MICROSECONDS], t WHERE s.k = t.k"
    sql = f"{text} WITH (materialize = 'none')"
    (said,) = parse(sql)
    assert isinstance(said, SelectStatement)
    planned = made.core.registration.plan("q", said.query, said.text, sql)
    made.query(text, "other")
    made.feed({"s": rows(0, 5)})
    made.table("t", pa.table({"k": [0, 1], "g": [3, 4]}))
    with pytest.raises(ConfigError, match="say materialize"):
        made.core.registration.admit(planned)


def test_the_handle_of_a_dropped_query_still_tells_what_it_was() -> None:
    made = runner()
    query = made.query(SUMS, "q")
    schema, plan, explained = query.schema, query.plan, query.explain()
    query.drop()
    made.query("SELECT v FROM s [RANGE 5 MICROSECONDS]", "q")
    assert query.status == "dropped"
    assert (query.schema, query.plan, query.explain()) == (schema, plan, explained)


def test_resuming_what_runs_waits_for_nothing() -> None:
    made = runner()
    query = made.query(SUMS, "q")
    before = epoch(made)
    query.resume()
    assert epoch(made) == before


def test_operators_take_their_operand_by_name() -> None:
    assert col("a").like(pattern="x%").sql() == "a LIKE 'x%'"
    assert col("a").same_as(other=1).sql() == "a <=> 1"
    assert (2 - col("a")).sql() == "2 - a"


def test_what_streams_are_wanted_for() -> None:
    """A query that goes through the past wants old rows; they are in no window of the others."""
    made = runner(slice_rows=5)
    made.query(SUMS, "live")
    made.feed({"s": rows(0, 100)})
    made.query(SUMS.replace("20", "30"), "late")
    demand = StreamDemand(made.core.plans, made.core.state).of("s")
    frontier = made.core.state.queries["live"].progress.frontier
    assert (demand.without_backfill, demand.released) == (frontier - 21, frontier)
    assert demand.lowest < 0
