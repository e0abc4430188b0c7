"""Windows over the order of rows are kept once for several queries, and no row depends on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.runtime.sharing import window_stores as stores
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

SMALL = "SELECT sum(x) AS s FROM s [ROWS 200]"
LARGE = "SELECT sum(x) AS s, max(x) AS m FROM s [ROWS 1000]"
QUERIES = {
    "few": "SELECT sum(x) AS s, count(*) AS c FROM s [ROWS 10]",
    "many": "SELECT sum(x) AS s FROM s [ROWS 300]",
    "per_key": "SELECT k, max(x) AS m FROM s [PARTITION BY k ROWS 5] GROUP BY k",
    "more_per_key": "SELECT k, sum(x) AS m FROM s [PARTITION BY k ROWS 20] GROUP BY k",
    "self": "SELECT ISTREAM a.x, b.x AS y FROM s [ROWS 3] a, s [ROWS 7] b WHERE a.k = b.k",
    "sessions": "SELECT k, count(*) AS c FROM s [PARTITION BY k SESSION GAP 40 MILLISECONDS] "
    "GROUP BY k",
    "long_sessions": "SELECT k, sum(x) AS c FROM s [PARTITION BY k SESSION GAP 60 MILLISECONDS] "
    "GROUP BY k",
}


def rows(since: int, until: int, step: int = 1000) -> pa.Table:
    rng = np.random.default_rng(since)
    count = until - since
    return pa.table(
        {
            "k": rng.integers(0, 7, count),
            "x": rng.integers(0, 100, count),
            "ts": pa.array(np.arange(since, until) * step, pa.timestamp("us", "UTC")),
        }
    )


def opened(*queries: str, **how: Any) -> Runner:
    runner = Runner(**how)
    runner.stream("s", rows(0, 0))
    for number, sql in enumerate(queries):
        runner.query(sql, name=f"q{number}")
    return runner


def sizes(runner: Runner) -> list[int]:
    """Rows in each store."""
    found = runner.core.state.window_stores.values()
    return sorted(sum(p.meta.rows for p in store.packs) for store in found)


def own_rows(runner: Runner, name: str) -> int:
    return int(runner.queries[name].stats()["state_rows"])


def answers(runner: Runner) -> dict[str, Any]:
    return {name: from_table(query.results()) for name, query in runner.queries.items()}


def run(plan: dict[int, bool], **how: Any) -> dict[str, Any]:
    """All queries over 2,000 rows; `plan` says before which epoch sharing is turned on or off."""
    runner = Runner(**how)
    runner.stream("s", rows(0, 2000))
    for name, sql in QUERIES.items():
        runner.query(sql, name=name)

    def before_epoch(number: int) -> None:
        if number in plan:
            runner.session.share_windows(plan[number])

    runner.run(before_epoch)
    return answers(runner)


@pytest.fixture(scope="module")
def unshared() -> dict[str, Any]:
    return run({0: False}, epochs=1)


@pytest.mark.parametrize(
    ("plan", "how"),
    [
        ({}, {"epochs": 13}),
        ({}, {"epochs": 40, "buckets": 3}),
        ({3: False, 5: True, 8: False, 9: True}, {"epochs": 12, "buckets": 2}),
        ({2: False, 6: True}, {"epochs": 12, "restarts": (4, 9), "switches": 3}),
    ],
    ids=["shared", "in three buckets", "toggled", "toggled, with restarts and switches"],
)
def test_sharing_changes_no_row(
    unshared: dict[str, Any], plan: dict[int, bool], how: dict[str, Any]
) -> None:
    """streamon #6."""
    found = run(plan, **how)
    for name, wanted in unshared.items():
        assert difference(wanted, found[name]) is None, name


def test_a_store_holds_the_union_of_what_its_stubs_see() -> None:
    """streamon #6: [ROWS 200] over the store of [ROWS 1000]; neither query holds rows itself."""
    runner = opened(SMALL, LARGE)
    for i in range(4):
        runner.feed({"s": rows(i * 1500, (i + 1) * 1500)})
    runner.feed({"s": rows(6000, 6001)})  # what came is in the store when the next epoch begins
    assert sizes(runner) == [1000]
    for name in ("q0", "q1"):
        shared = runner.queries[name].stats()["shared_windows"]["0.leaf0"]
        assert shared["rows"] == 1000
        assert shared["queries"] == ["q0", "q1"]
    alone = opened(LARGE)
    for i in range(4):
        alone.feed({"s": rows(i * 1500, (i + 1) * 1500)})
    alone.feed({"s": rows(6000, 6001)})
    assert own_rows(alone, "q0") == own_rows(runner, "q1") + 1000


def test_a_row_stays_until_the_last_stub_lets_it_go() -> None:
    """streamon #6: when the longest window leaves, the store shrinks to the next one."""
    runner = opened(SMALL, LARGE, "SELECT count(*) AS c FROM s [ROWS 50]")
    runner.feed({"s": rows(0, 3000)})
    runner.feed({"s": rows(3000, 6000)})
    runner.feed({"s": rows(6000, 6010)})
    assert sizes(runner) == [1000]
    runner.sql("DROP QUERY q1")
    runner.feed({"s": rows(6010, 6600)})
    runner.feed({"s": rows(6600, 6610)})
    assert sizes(runner) == [200]
    runner.sql("DROP QUERY q0")
    runner.feed({"s": rows(6610, 6620)})
    assert sizes(runner) == []
    assert own_rows(runner, "q2") >= 50


def test_a_longer_window_joins_the_store_and_brings_its_rows() -> None:
    runner = opened(SMALL, "SELECT count(*) AS c FROM s [ROWS 50]")
    runner.feed({"s": rows(0, 1500)})
    runner.feed({"s": rows(1500, 3000)})
    runner.query(LARGE, name="late")
    for i in range(3000, 9000, 1500):
        runner.feed({"s": rows(i, i + 1500)})
    # it has not seen the first rows, so what it holds is not what the others hold
    assert runner.queries["late"].stats()["shared_windows"] == {}
    runner.query(LARGE.replace("max", "min"), name="with_it")
    for i in range(9000, 12000, 1500):
        runner.feed({"s": rows(i, i + 1500)})
    assert runner.queries["late"].stats()["shared_windows"] == {}
    runner.sql("CREATE QUERY a AS SELECT max(x) AS m FROM s [ROWS 9];"
               "CREATE QUERY b AS SELECT min(x) AS m FROM s [ROWS 7]")  # fmt: skip
    for i in range(12000, 15000, 1500):
        runner.feed({"s": rows(i, i + 1500)})
    shared = runner.queries["a"].stats()["shared_windows"]["0.leaf0"]
    assert shared["queries"] == ["a", "b"]


def test_options_and_pauses_take_a_query_out() -> None:
    runner = opened(SMALL, LARGE, SMALL.replace("sum", "min"))
    runner.feed({"s": rows(0, 1500)})
    runner.feed({"s": rows(1500, 3000)})
    runner.sql("ALTER QUERY q0 SET (share = 'off')")
    runner.feed({"s": rows(3000, 3500)})
    assert runner.queries["q0"].stats()["shared_windows"] == {}
    assert own_rows(runner, "q0") >= 200
    runner.sql("PAUSE QUERY q2")
    runner.feed({"s": rows(3500, 4000)})
    assert sizes(runner) == []
    runner.sql("RESUME QUERY q2; ALTER QUERY q0 SET (share = 'auto')")
    runner.feed({"s": rows(4000, 4500)})
    runner.feed({"s": rows(4500, 5000)})
    assert runner.queries["q1"].stats()["shared_windows"]["0.leaf0"]["queries"] == [
        "q0", "q1", "q2",
    ]  # fmt: skip


def joined(**how: Any) -> Runner:
    runner = Runner(**how)
    runner.stream("s", rows(0, 0))
    runner.stream("slow", rows(0, 0))
    runner.query("SELECT sum(x) AS s FROM s [ROWS 30]", name="fast")
    runner.query(
        "SELECT ISTREAM a.x, b.x AS y FROM s [ROWS 100] a, slow [ROWS 2] b WHERE a.k = b.k",
        name="waits",
    )
    return runner


def feed_unevenly(runner: Runner) -> None:
    """One stream is three epochs ahead of the other."""
    for i in range(12):
        batch = {"s": rows(i * 200, (i + 1) * 200)}
        if i >= 3:
            batch["slow"] = rows((i - 3) * 200, (i - 2) * 200)
        runner.feed(batch)


def test_stubs_may_have_come_differently_far() -> None:
    """The store tracks each stub's progress and shows it its own view."""
    shared, alone = joined(), joined()
    alone.session.share_windows(False)
    for runner in (shared, alone):
        feed_unevenly(runner)
    fast, waits = (shared.core.state.queries[n] for n in ("fast", "waits"))
    assert fast.progress.frontier > waits.progress.frontier
    assert fast.operators.shared_slots
    assert waits.operators.shared_slots
    for runner in (shared, alone):
        runner.close()
    for name, wanted in answers(alone).items():
        assert difference(wanted, answers(shared)[name]) is None, name


def test_who_falls_far_behind_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the others would have to read ever more rows again."""
    monkeypatch.setattr(stores, "SMALL", 500)
    runner, alone = joined(), joined()
    alone.session.share_windows(False)
    for one in (runner, alone):
        feed_unevenly(one)
    waits = runner.core.state.queries["waits"]
    assert not waits.operators.shared_slots
    for one in (runner, alone):
        one.close()
    for name, wanted in answers(alone).items():
        assert difference(wanted, answers(runner)[name]) is None, name


def test_rows_are_sorted_once_for_all_who_share_them() -> None:
    """Every query after the first finds them in order."""
    runner = opened(*[f"SELECT sum(x) AS s FROM s [ROWS {n}]" for n in (100, 90, 80, 70)])
    runner.feed({"s": rows(0, 500)})
    before = reused(runner)
    for i in range(5):
        runner.feed({"s": rows(500 + i * 100, 600 + i * 100)})
    assert reused(runner) - before == 5 * 3


def reused(runner: Runner) -> int:
    queries = runner.core.state.queries.values()
    return sum(q.operators.counts.get("shared window:s", 0) for q in queries)


def test_a_store_is_rewritten_only_when_much_has_come() -> None:
    """What is written is paid for by what came, however long the window."""
    runner = opened(LARGE, LARGE.replace("max", "min"))
    runner.feed({"s": rows(0, 2000)})
    runner.feed({"s": rows(2000, 2001)})
    runner.feed({"s": rows(2001, 2002)})
    names = set()
    for i in range(100):
        runner.feed({"s": rows(2002 + i, 2003 + i)})
        (store,) = runner.core.state.window_stores.values()
        names.add(store.packs[0].meta.name)
    assert len(names) == 1


def test_a_limit_on_state_keeps_windows_apart() -> None:
    """What a query with a limit may keep is counted by itself."""
    runner = opened(SMALL, LARGE)
    runner.query(f"{SMALL} WITH (state_limit = 100000000)", name="limited")
    runner.feed({"s": rows(0, 1500)})
    runner.feed({"s": rows(1500, 3000)})
    assert runner.queries["limited"].stats()["shared_windows"] == {}
    assert runner.queries["q0"].stats()["shared_windows"]


def test_who_lags_leaves_the_others_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not come back before it has caught up, and the store goes on without it."""
    monkeypatch.setattr(stores, "SMALL", 500)
    runner = joined()
    runner.query("SELECT max(x) AS m FROM s [ROWS 20]", name="other")
    feed_unevenly(runner)
    state = runner.core.state
    assert not state.queries["waits"].operators.shared_slots
    assert state.queries["fast"].operators.shared_slots
    (store,) = state.window_stores.values()
    assert store.frontier > state.queries["waits"].progress.frontier
    runner.feed({"slow": rows(1800, 1801)})
    written = store.packs[0].meta.name
    runner.feed({"slow": rows(1801, 1802)})  # the others stand still: nothing is written again
    assert [p.meta.name for s in state.window_stores.values() for p in s.packs] == [written]


def test_a_longer_window_that_has_seen_everything_brings_its_rows() -> None:
    """It has gone through the past, and from then on the others read its rows."""
    made = {}
    for shared in (True, False):
        runner = made[shared] = Runner(slice_rows=700)
        runner.stream("s", rows(0, 0), retain="1 hour")
        runner.session.share_windows(shared)
        for i, sql in enumerate((SMALL, SMALL.replace("sum", "max"))):
            runner.query(sql, name=f"q{i}")
        for at in range(0, 3000, 500):
            runner.feed({"s": rows(at, at + 500)})
        runner.query(LARGE, name="long")
        for at in range(3000, 6000, 500):
            runner.feed({"s": rows(at, at + 500)})
        runner.close()
    state = made[True].core.state
    assert state.queries["long"].operators.shared_slots
    assert sizes(made[True]) == [1000]
    for name, wanted in answers(made[False]).items():
        assert difference(wanted, answers(made[True])[name]) is None, name


def test_who_is_not_there_yet_is_not_forgotten() -> None:
    """A store is not rewritten for some of its queries before all of them are taken up again."""
    runner = opened(LARGE, SMALL, SMALL.replace("sum", "max"))
    for at in range(0, 4500, 1500):
        runner.feed({"s": rows(at, at + 1500)})
    assert sizes(runner) == [1000]
    left, options = runner.core.plans["q0"], runner.core.plans.options("q0")
    runner.core.plans.forget("q0")
    runner.core.coordinator.epoch([runner.entry({"s": rows(4500, 6000)})], clock=0)
    runner.core.coordinator.epoch([runner.entry({"s": rows(6000, 7500)})], clock=0)
    assert sizes(runner) == [1000]
    runner.core.plans.put("q0", left, options, ())
    runner.feed({"s": rows(7500, 9000)})
    runner.close()
    alone = opened(LARGE)
    for at in range(0, 9000, 1500):
        alone.feed({"s": rows(at, at + 1500)})
    alone.close()
    problem = difference(answers(alone)["q0"], from_table(runner.queries["q0"].results()))
    assert problem is None, problem


@pytest.mark.parametrize("shared", [True, False])
def test_silence_makes_no_row_late(shared: bool) -> None:
    """Rows that only order matters to do not let the clock go on, shared or not."""
    runner = Runner()
    runner.stream("s", rows(0, 0), idle=10_000_000)
    for i, sql in enumerate((LARGE, LARGE.replace("max", "min"))):
        runner.query(sql, name=f"q{i}")
    runner.session.share_windows(shared)
    for at in range(0, 3000, 1000):
        runner.feed({"s": rows(at, at + 1000)})
    runner.feed({"s": rows(3000, 3001)})
    for seconds in (4, 64, 65):
        runner.tick(seconds * 1_000_000)
    report = runner.feed({"s": rows(8000, 8001)})
    assert report is not None
    assert report.late == 0


def test_the_last_session_closes_in_silence() -> None:
    """No pack of the stream is kept; the session is, and time closes it."""
    runner = Runner()
    runner.stream("s", rows(0, 0), idle=1_000_000)
    query = runner.query(QUERIES["sessions"], name="q")
    runner.feed({"s": rows(0, 5)})
    for seconds in (1, 3, 5, 7):
        runner.tick(seconds * 1_000_000)
    assert query.results().num_rows > 0


@pytest.mark.parametrize("step", [1, 3, 34])
def test_sessions_that_are_looked_up_differently_share(step: int) -> None:
    """One runs in one bucket, the other by its key: the rows that they share serve both."""
    window = "[PARTITION BY k SESSION GAP 2 SECONDS]"
    texts = {
        "a": f"SELECT RSTREAM k, x FROM s {window} WHERE x > 1",
        "b": f"SELECT k, x FROM s {window}",
    }
    found: dict[bool, dict[str, Any]] = {}
    for shared in (True, False):
        runner = Runner()
        runner.stream("s", rows(0, 0))
        queries = {name: runner.query(sql, name) for name, sql in texts.items()}
        runner.session.share_windows(shared)
        runner.feed({"s": rows(0, 6)})
        for at in range(6, 40, step):
            runner.feed({"s": rows(at, min(40, at + step))})
        runner.close()
        assert {q.status for q in queries.values()} == {"running"}
        found[shared] = {name: from_table(q.results()) for name, q in queries.items()}
    for name in texts:
        assert difference(found[False][name], found[True][name]) is None
