"""Queries that work only when they are invoked sleep meanwhile: epochs do not know how many there
are, and their answers are those of queries that never sleep."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError
from thalweg.runtime.results.followers import Results
from thalweg.runtime.session.client import Client
from thalweg.runtime.session.resumption import refuse_without
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.upkeep.inspection import inspect
from thalweg.store import manifest
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

WINDOWS = ("[RANGE 9 MICROSECONDS]", "[RANGE 20 MICROSECONDS SLIDE 7 MICROSECONDS]",
           "[LANDMARK TIMESTAMP '1970-01-01 00:00:00.000030']")  # fmt: skip
CONDITIONS = ("k < 3", "v > 60 AND k < 2", "v <> 7")


def rows(since: int, until: int) -> pa.Table:
    rng = Random(since)
    times = range(since, until)
    return pa.table(
        {
            "k": pa.array([rng.randrange(4) for _ in times], pa.int64()),
            "v": pa.array([rng.randrange(256) for _ in times], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def runner(retain: str | None = None, **how: Any) -> Runner:
    made = Runner(**how)
    made.stream("s", rows(0, 0), retain=retain)
    return made


def bag(table: pa.Table) -> Any:
    at = pa.array([0] * table.num_rows, pa.timestamp("us", "UTC"))
    return from_table(table.replace_schema_metadata(None).append_column("__ts", at))


def state(made: Runner) -> EngineState:
    return made.core.state


def awake(made: Runner) -> set[str]:
    return {name for name in state(made).queries if not name.startswith("__")}


def asking(made: Runner, count: int, window: int = 0, mode: str = "p") -> list[Any]:
    return [
        made.query(
            f"SELECT v FROM s {WINDOWS[window]} WHERE k < {i % 5} WITH (materialize = '{mode}')",
            f"{mode}{window}_{i}",
        )
        for i in range(count)
    ]


def expected(window: int, k: int, now: int, fed: pa.Table) -> list[int]:
    found = zip(*(fed[c].to_pylist() for c in ("k", "v")), fed["ts"].cast("int64").to_pylist(),
                strict=True)  # fmt: skip
    return sorted(v for key, v, at in found if key < k and now - window <= at <= now)


def test_one_of_a_kin_stays_awake() -> None:
    made = runner()
    queries = [*asking(made, 30), *asking(made, 30, 1), *asking(made, 5, mode="none")]
    assert len(awake(made)) == 65
    made.feed({"s": rows(0, 50)})
    assert len(awake(made)) == 2
    assert len(state(made).dormant) == 63
    fed = rows(0, 50)
    for query in queries[:30]:
        k = int(query.text.split("k < ")[1].split()[0])
        assert sorted(query.invoke()["v"].to_pylist()) == expected(9, k, 48, fed)


def test_epochs_do_not_know_how_many_sleep() -> None:
    """What an epoch commits, plans and goes through is the same for 3 and for 300."""
    seen = []
    for count in (3, 300):
        made = runner(share_from=0)
        asking(made, count)
        for step in range(4):
            made.feed({"s": rows(10 * step, 10 * step + 10)})
        name = manifest.manifest_name(state(made).epoch)
        seen.append((len(made.core.plans), len(made.storage.read(name)) // 100))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("retain", [None, "1 hour"])
@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_queries_that_never_sleep(seed: int, retain: str | None) -> None:
    """priorart PS-7, PS-13: queries come, rest, change their windows, conditions and modes and go
    in any order, with restarts in between; each has a twin that emits its changes."""
    rng = Random(seed)
    made = runner(retain, slice_rows=13, buckets=rng.choice((1, 3)))
    made.query("SELECT k, v FROM s [RANGE 40 MICROSECONDS]", "keeps_rows")
    alive: list[str] = []
    compared = slept = 0
    for step in range(40):
        for _ in range(rng.randrange(4)):
            _change(made, rng, alive, step)
        if rng.random() < 0.8:
            made.feed({"s": rows(5 * step, 5 * step + 5)})
        if rng.random() < 0.1:
            made.restart()
        slept = max(slept, len(state(made).dormant))
        for name in alive:
            problem = difference(bag(made.queries[f"twin_{name}"].invoke()),
                                 bag(made.queries[name].invoke()))  # fmt: skip
            assert problem is None, f"{name} in step {step}: {made.queries[name].text}\n{problem}"
            compared += 1
    assert compared > 100
    assert slept > 2


def _change(made: Runner, rng: Random, alive: list[str], step: int) -> None:
    def text(mode: str | None) -> str:
        told = "" if mode is None else f", materialize = '{mode}'"
        return f"SELECT v FROM s {window} WHERE {where} WITH (unbounded = true{told})"

    window, where = rng.choice(WINDOWS[:2]), rng.choice(CONDITIONS)
    what = rng.choice(("come", "come", "come", "drop", "pause", "resume", "window", "text", "mode"))
    name = rng.choice(alive) if alive else ""
    both = (name, f"twin_{name}")
    if what in ("window", "text", "mode") and alive:  # of one that rests see below
        made.sql("; ".join(f"RESUME QUERY {each}" for each in both))
    if what == "come" or not alive:
        name = f"q{step}_{len(alive)}_{rng.randrange(1000)}"
        made.query(text(rng.choice(("none", "p", "auto"))), name)
        made.query(text(None).replace("WITH (", "WITH (history = 'seed', "), f"twin_{name}")
        alive.append(name)
    elif what == "drop":
        alive.remove(name)
        made.sql("; ".join(f"DROP QUERY {each}" for each in both))
    elif what in ("pause", "resume"):
        for each in both:
            made.queries[each].invoke()  # whoever has still to see the past does so first
        made.sql("; ".join(f"{what.upper()} QUERY {each}" for each in both))
    elif what == "window":
        made.sql("; ".join(f"ALTER QUERY {each} SET WINDOW s {window}" for each in both))
    elif what == "text":
        made.queries[both[0]].alter(text("p"))
        made.queries[both[1]].alter(text(None))
    else:
        made.sql(f"ALTER QUERY {name} SET (materialize = '{rng.choice(('none', 'p', 'c'))}')")


def test_another_leads_when_the_leader_goes() -> None:
    made = runner()
    queries = asking(made, 6)
    made.feed({"s": rows(0, 20)})
    fed = rows(0, 20)
    for step in range(5):
        (leader,) = awake(made)
        made.sql(f"DROP QUERY {leader}")
        queries = [q for q in queries if q.name != leader]
        assert len(awake(made)) == 1
        more = rows(20 + 5 * step, 25 + 5 * step)
        made.feed({"s": more})
        fed = pa.concat_tables([fed, more])
        for query in queries:  # what the leader's windows held is held for them
            k = int(query.text.split("k < ")[1].split()[0])
            now = 23 + 5 * step
            assert sorted(query.invoke()["v"].to_pylist()) == expected(9, k, now, fed)
    (leader,) = awake(made)
    made.sql(f"DROP QUERY {leader}")
    assert not state(made).leaders
    assert not state(made).dormant


def test_a_paused_query_stands_still_and_falls_asleep_again() -> None:
    made = runner()
    asking(made, 4)
    made.feed({"s": rows(0, 20)})
    rests = next(iter(state(made).dormant))
    before = made.queries[rests].invoke()
    made.sql(f"PAUSE QUERY {rests}")
    made.feed({"s": rows(20, 40)})
    assert rests in awake(made)
    assert made.queries[rests].status == "paused"
    assert made.queries[rests].invoke() == before
    made.sql(f"RESUME QUERY {rests}")
    for at in (40, 45):
        made.feed({"s": rows(at, at + 5)})
    assert rests in state(made).dormant
    k = int(made.queries[rests].text.split("k < ")[1].split()[0])
    fed = pa.concat_tables([rows(0, 20), rows(20, 40), rows(40, 45), rows(45, 50)])
    assert sorted(made.queries[rests].invoke()["v"].to_pylist()) == expected(9, k, 48, fed)


def test_a_query_that_rests_says_something_else_of_the_same_instant() -> None:
    made = runner(retain="1 hour")
    asking(made, 4)
    made.feed({"s": rows(0, 50)})
    fed = rows(0, 50)
    rests = next(iter(state(made).dormant))
    made.sql(f"PAUSE QUERY {rests}")
    made.feed({"s": rows(50, 90)})
    made.queries[rests].alter(
        "SELECT v FROM s [RANGE 15 MICROSECONDS] WHERE k < 2 WITH (materialize = 'p')"
    )
    assert sorted(made.queries[rests].invoke()["v"].to_pylist()) == expected(15, 2, 48, fed)
    with pytest.raises(ConfigError, match="while it is paused"):
        made.sql(f"ALTER QUERY {rests} SET (materialize = 'c')")
    made.sql(f"RESUME QUERY {rests}; ALTER QUERY {rests} SET (materialize = 'c')")
    made.sql(f"PAUSE QUERY {rests}")
    with pytest.raises(ConfigError, match="not made yet"):
        made.queries[rests].invoke()
    made.sql(f"RESUME QUERY {rests}")
    fed = pa.concat_tables([fed, rows(50, 90)])
    assert sorted(made.queries[rests].invoke()["v"].to_pylist()) == expected(15, 2, 88, fed)


def test_whoever_looks_from_outside_finds_them() -> None:
    made = runner(retain="1 hour")
    asking(made, 3)
    made.feed({"s": rows(0, 20)})
    name = next(iter(state(made).dormant))
    shown = made.sql("SHOW QUERIES").to_pylist()
    assert [(q["status"], q["coverage"]) for q in shown] == 3 * [("running", "COMPLETE")]
    frontiers = {q.frontier for q in inspect(made.storage).queries if q.name.startswith("p")}
    assert frontiers == {19}
    answer = Client(made.storage).invoke(name)
    assert answer == made.queries[name].invoke()
    with pytest.raises(ConfigError, match="answers when it is invoked"):
        Results(made.storage, name).schema()
    with pytest.raises(ConfigError, match="answers when it is invoked"):
        made.queries[name].results()
    assert made.queries[name].stats()["frontier"] == 19


def test_a_path_whose_streams_are_missing_is_refused() -> None:
    made = runner()
    asking(made, 3)
    made.feed({"s": rows(0, 20)})
    again = Runner(storage=made.storage)
    with pytest.raises(ConfigError, match="there is no s"):
        refuse_without(again.core, "q", next(iter(state(made).dormant.values())).definition.reads)


def test_many_sleep_in_one_file_that_is_seldom_rewritten() -> None:
    """A whole state is written when as much has changed, or late: most of it sleeps."""
    made = runner()
    asking(made, 500)
    for step in range(100):
        made.feed({"s": rows(2 * step, 2 * step + 2)})
    names = [n for n in made.storage.listing(manifest.FOLDER) if n.endswith(".whole.json")]
    assert [n.rsplit("/", 1)[1].split(".")[0].lstrip("0") for n in names] == ["32"]
    assert manifest.load(made.storage)[1]["dormant"].keys() == state(made).dormant.keys()
