"""What an independent review of the adaptive loop found, each as it was found."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.catalog import make_ordering
from thalweg.adapt.filters.guards import allows
from thalweg.adapt.filters.ordering import Settings
from thalweg.errors import DuplicateName
from thalweg.testing import Runner


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


def test_in_beside_not_in_under_now() -> None:
    made = Runner()
    ts = stamps(np.arange(12) // 3)
    made.stream("s", pa.table({"x": np.arange(12) % 5, "y": np.arange(12) % 3, "ts": ts}))
    made.stream("u", pa.table({"x": np.arange(12) % 4, "y": np.arange(12) % 2, "ts": ts}))
    query = made.query(
        "SELECT x FROM s [NOW] WHERE x NOT IN (SELECT x FROM u [ROWS 3]) "
        "AND y IN (SELECT y FROM u [ROWS 2])"
    )
    made.run()
    assert query.stats()["error"] is None
    assert query.results().num_rows > 0


@pytest.mark.parametrize("how", ["filters = 'a-greedy', profile = 1", "filters = 'auto'"])
def test_the_profile_never_asks_what_a_guard_keeps_away(how: str) -> None:
    """A function that hangs on 0 never sees 0: the guard holds for sampled rows, too."""
    made = Runner()
    made.core.settings.function_deadline = 0.5
    seen: list[int] = []

    def careful(x: int) -> bool:
        seen.append(x)
        if x == 0:
            time.sleep(3)
        return x > 1

    made.function("careful", careful, "BOOLEAN", raises=True)
    made.stream("s", pa.table({"x": [0, 1, 2, 3] * 3, "ts": stamps(range(12))}))
    query = made.query(f"SELECT x FROM s WHERE x <> 0 AND careful(x) WITH ({how})")
    made.run()
    assert query.status == "running"
    assert 0 not in seen
    assert query.results().num_rows == 6


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT RSTREAM x FROM s [NOW] WHERE x IN (SELECT k FROM tb)",
        "SELECT RSTREAM x FROM s [NOW] WHERE x NOT IN (SELECT k FROM tb)",
        "SELECT RSTREAM x FROM s [NOW], (SELECT k FROM tb) t WHERE x = t.k",
    ],
)
def test_a_table_with_versions_does_not_depend_on_the_cut(sql: str) -> None:
    """Also where the first epoch ends before the query's first instant."""

    def instants(cuts: list[int]) -> list[int]:
        made = Runner(epochs={"s": cuts})
        made.stream("s", pa.table({"x": [1] * 8, "ts": stamps(range(8))}))
        made.table("tb", pa.table({"k": [1]}))
        query = made.query(sql)
        made.table("tb", pa.table({"k": [2]}), at=4)
        made.run()
        return query.results().column("__ts").cast(pa.int64()).to_pylist()

    whole = instants([])
    assert whole == ([4, 5, 6, 7] if "NOT" in sql else [0, 1, 2, 3])
    for cuts in ([1], [0, 3], [0, 2, 6], list(range(1, 8))):
        assert instants(cuts) == whole, cuts


def test_parts_of_one_between_keep_their_order() -> None:
    """Blame, counters and watching tell the two halves of BETWEEN apart."""

    def reasons(**how: int) -> set[str]:
        made = Runner(**how)
        columns = {"z": [1] * 8, "y": [0] * 8, "c": ["bad"] * 8, "x": range(8)}
        made.stream("s", pa.table({**columns, "ts": stamps(range(8))}))
        query = made.query("SELECT x FROM s WHERE z BETWEEN CAST(c AS INT) AND 6 / y AND x >= 0")
        made.run()
        return set(query.rejects()["reason"].to_pylist())

    assert reasons() == reasons(epochs=8, switches=3) == {"cannot cast string to INT"}
    rows = 4_000
    values = np.random.default_rng(0).integers(0, 100, (2, rows))
    made = Runner(epochs=10)
    made.stream("s", pa.table({"x": values[0], "y": values[1], "ts": stamps(np.arange(rows))}))
    query = made.query(
        "SELECT x FROM s WHERE x BETWEEN 0 AND 2 AND y < 90 "
        "WITH (filters = 'a-greedy', profile = 0.2)"
    )
    made.run()
    watched = made.core.adaptation.queries[query.name].of("filters")[0]
    assert watched.memory.rows == rows
    counts = query.stats()["counts"]
    asked = counts["evaluations:x BETWEEN 0 AND 2 (part 2)"]
    assert counts["passed:x BETWEEN 0 AND 2 (part 2)"] / asked < 0.05


def test_a_tiny_profile_is_possible() -> None:
    ordering = make_ordering("a-greedy", Settings(2, rate=1e-30)).fork(1)
    assert len(ordering.sample(10_000)) == 0


def test_nothing_piles_up_where_nothing_is_sampled() -> None:
    made = Runner(epochs=30)
    made.stream("s", pa.table({"x": range(300), "ts": stamps(range(300))}))
    query = made.query("SELECT x FROM s WHERE x > 1 AND x < 9 WITH (filters = 'fixed')")
    made.run()
    watched = made.core.adaptation.queries[query.name].of("filters")[0]
    assert watched.memory._fresh == []


def test_altering_a_query_keeps_its_plan_log_and_is_kept_itself() -> None:
    rows = 60_000
    rng = np.random.default_rng(1)
    often, seldom = rng.random(rows) < 0.9, rng.random(rows) < 0.1
    table = pa.table(
        {"a": often.astype(int), "b": seldom.astype(int), "ts": stamps(np.arange(rows))}
    )
    made = Runner()
    made.stream("s", table)
    query = made.query("SELECT a FROM s WHERE a = 1 AND b = 1", "q")
    made.feed({"s": table.slice(0, rows // 2)})
    switches = len(query.plan_log)
    assert switches > 0
    made.sql("ALTER QUERY q SET (filters = 'sweep')")
    assert len(query.plan_log) == switches
    made.restart()  # before any other epoch
    assert query.stats()["adapt"]["filters"][0]["ordering"] == "sweep"


def test_rows_in_error_do_not_pass_whether_shared_or_not() -> None:
    def passed(queries: int) -> list[int]:
        made = Runner()
        columns = {"i": [0] * 10 + [1] * 10, "x": range(20)}
        made.stream("s", pa.table({**columns, "ts": stamps(range(20))}))
        others = ("x >= 0", "x < 50")
        found = [
            made.query(f"SELECT x FROM s WHERE 6 / i > 2 AND {others[n]} WITH (filters = 'fixed')")
            for n in range(queries)
        ]
        made.run()
        return [q.stats()["counts"]["passed:6 / i > 2"] for q in found]

    assert passed(1) == [10]
    assert passed(2) == [10, 10]


def test_a_known_plan_that_a_guard_forbids_is_not_taken_up() -> None:
    ordering = Auto(Settings(2, injected=(1.0, 1.0)))
    ordering.guards = (frozenset(), frozenset({0}))
    ordering.window.push(np.ones((100, 2), bool))
    ordering.known[ordering._region()] = (1, 0)
    assert not ordering._recall()
    assert allows(ordering.guards, ordering.order)


def test_no_query_may_take_the_name_of_the_system_stream() -> None:
    made = Runner()
    made.stream("s", pa.table({"x": [1], "ts": stamps([1])}))
    with pytest.raises(DuplicateName):
        made.query("SELECT x FROM s", name="sysstream")
