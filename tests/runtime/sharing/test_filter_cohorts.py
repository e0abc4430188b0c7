"""Queries that only filter a stream are run as one, and nobody can tell."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError, DuplicateName
from thalweg.exec.shared_filters import member_sets
from thalweg.plan.sharing.shared_filter import standing_filter
from thalweg.runtime.state.query_state import FILTERS
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

NAN = float("nan")
WORDS = ["", "a", "ab", "b", "ä", "z"]


def rows(since: int, until: int) -> pa.Table:
    rng = Random(since)
    count = until - since

    def some(values: Any) -> list[Any]:
        return [None if rng.random() < 0.1 else values() for _ in range(count)]

    return pa.table(
        {
            "k": pa.array(some(lambda: rng.randrange(6)), pa.int64()),
            "x": pa.array(
                some(lambda: rng.choice([0.0, -0.0, 1.5, float("nan"), 2.0])), pa.float64()
            ),
            "s": pa.array(some(lambda: rng.choice(WORDS)), pa.string()),
            "n": pa.array(some(lambda: rng.randrange(-3, 4)), pa.int32()),
            "ts": pa.array(range(since, until), pa.timestamp("us", "UTC")),
        }
    )


def random_filter(rng: Random) -> str:
    compared = ["k {} {}", "n {} {}", "x {} {}", "{1} {0} k"]
    parts = []
    for _ in range(rng.randrange(4)):
        parts.append(
            rng.choice(compared).format(rng.choice(["<", "<=", "=", ">=", ">"]), rng.randrange(5))
        )
    if rng.random() < 0.5:
        parts.append(f"s {rng.choice(['<', '=', '>='])} '{rng.choice(WORDS)}'")
    if rng.random() < 0.4:
        rest = ["k <> 3", "s LIKE 'a%'", "k IN (1, 2)", "x IS NULL", "k = n", "NOT k > 2"]
        parts.append(rng.choice(rest))
    where = f" WHERE {' AND '.join(parts)}" if parts else ""
    columns = rng.choice(["k", "k, s", "s AS k, x, n", "*", "ts, k"])
    return f"SELECT ISTREAM {columns} FROM s{where}"


def runner(share_from: int, **how: Any) -> Runner:
    made = Runner(share_from=share_from, **how)
    made.stream("s", rows(0, 0), lateness="3 microseconds", retain="1 hour")
    return made


def texts(seed: int, count: int) -> list[str]:
    rng = Random(seed)
    return [random_filter(rng) for _ in range(count)]


def results(made: Runner) -> dict[str, Any]:
    return {name: from_table(q.results()) for name, q in made.queries.items()}


def agree(one: Runner, other: Runner) -> None:
    left, right = results(one), results(other)
    assert left.keys() == right.keys()
    for name, expected in left.items():
        problem = difference(expected, right[name])
        assert problem is None, f"{name}: {one.queries[name].text}\n{problem}"


@pytest.mark.parametrize("seed", range(6))
def test_sharing_changes_no_row(seed: int) -> None:
    """priorart F10, PS-7: queries and rows interleaved at random, crashes between; invariance 5."""
    rng = Random(seed)
    alone = runner(10**9)
    shared = runner(0, buckets=rng.choice((1, 3)), slice_rows=rng.choice((5, 10**6)))
    waiting = texts(seed, 60)
    epochs = 14
    for epoch in range(epochs):
        new = [waiting.pop() for _ in range(min(rng.randrange(9), len(waiting)))]
        for made in (alone, shared):
            for i, text in enumerate(new):
                history = ["", " WITH (history = 'none')", " WITH (history = 'seed')"][i % 3]
                made.query(text + history, f"q{len(waiting)}x{i}")
        gone = rng.choice(list(alone.queries)) if alone.queries and rng.random() < 0.4 else None
        for made in (alone, shared):
            if gone is not None:
                made.queries[gone].drop()
            made.feed({"s": rows(epoch * 20, epoch * 20 + 20)})
        if rng.random() < 0.3:
            shared.restart()
        if not shared.core.registry.is_behind:
            agree(alone, shared)  # all that came so far, over all rows so far
    for made in (alone, shared):
        made.close()
    agree(alone, shared)
    state = shared.core.state
    cohorts = [name for name, _ in state.of_kind(FILTERS)]
    assert len(shared.core.cohorts.by_name) > 20
    assert len(cohorts) <= 2, "those that have come equally far go on as one"
    assert sum(map(len, results(shared).values())) > 100


@pytest.mark.parametrize("count", [3, 40, 300])
def test_bitmaps_and_lists_say_the_same(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """priorart PS-9: whichever layout, each member gets its rows; left alone, the smaller one."""
    found, sizes = {}, {}
    for layout in (member_sets.LISTS, member_sets.BITMAPS, member_sets.SMALLER):
        monkeypatch.setattr(member_sets, "LAYOUT", layout)
        made = runner(0)
        for i, text in enumerate(texts(count, count)):
            made.query(text, f"q{i}")
        made.feed({"s": rows(0, 300)})
        made.close()
        found[layout] = results(made)
        outputs = made.core.state.outputs.values()
        sizes[layout] = sum(int(p[2]) for packs in outputs for p in packs)
    for name, expected in found[member_sets.LISTS].items():
        assert difference(expected, found[member_sets.BITMAPS][name]) is None
        assert difference(expected, found[member_sets.SMALLER][name]) is None
    assert sizes[member_sets.SMALLER] <= 1.05 * min(sizes.values())


def test_members_may_rest_change_and_come_back() -> None:
    """A member that leaves takes its results along; one that was alone joins the others."""
    alone, shared = runner(10**9), runner(0)
    for made in (alone, shared):
        for i in range(6):
            made.query(f"SELECT k, n AS m FROM s WHERE k = {i} AND x >= 0", f"q{i}")
        made.feed({"s": rows(0, 50)})
        made.sql("PAUSE q1; ALTER QUERY q2 AS SELECT ISTREAM n * 2L AS k, n AS m FROM s")
        made.sql("ALTER QUERY q4 SET (share = 'off')")
        made.feed({"s": rows(50, 100)})
        made.sql("RESUME q1")
        made.feed({"s": rows(100, 150)})
        if made is shared:
            assert set(made.core.cohorts.by_name) == {"q0", "q3", "q5"}
            made.restart()
        made.close()
    agree(alone, shared)


def test_each_row_is_read_once_however_many_ask() -> None:
    """priorart F10: rows allocated are rows that came, not rows times queries."""
    made = runner(0)
    for i in range(200):
        made.query(f"SELECT k FROM s WHERE k = {i % 6} AND n < {i % 5}", f"q{i}")
    made.feed({"s": rows(0, 300)})
    made.close()
    (cohort,) = (q for n, q in made.core.state.queries.items() if n[:2] == "__")
    assert cohort.operators.counts["arrivals:s"] == cohort.operators.counts["matched rows"] == 300
    packs = [p for ps in made.core.state.outputs.values() for p in ps]
    written = sum(int(p[1]) for p in packs)
    assert written <= 300
    assert cohort.operators.counts["matches"] > 10 * written / 2


WORK = ("arrivals:", "departures:", "evaluations:", "matched rows")


def work_for(engines: int, queries: int, share_from: int = 0) -> int:
    """Rows that are read, judged and written for some selections in each of some engines."""
    total = 0
    for number in range(engines):
        made = runner(share_from)
        for i in range(queries):
            at = number + i
            made.query(f"SELECT k FROM s WHERE n > {at % 5 - 2} AND k < {at % 6 + 1}", f"q{i}")
        made.feed({"s": rows(0, 300)})
        made.close()
        state = made.core.state
        total += state.streams["s"].rows
        for query in state.queries.values():
            counts = query.operators.counts
            total += sum(n for key, n in counts.items() if key.startswith(WORK))
        total += sum(int(p[1]) for packs in state.outputs.values() for p in packs)
    return total


def test_the_work_for_a_query_falls_with_their_number() -> None:
    """priorart F11, in counts: in one engine less and less is done for each of n selections, less
    than by itself in the same engine, and far less than in n engines; in these always the same."""
    counts = (1, 2, 5, 20, 60)
    together = [work_for(1, n) / n for n in counts]
    alone = [work_for(1, n, share_from=10**9) / n for n in counts]
    apart = [work_for(n, 1, share_from=10**9) / n for n in counts[:-1]]
    assert all(after < 0.7 * before for before, after in pairwise(together))
    assert 60 * together[-1] < 1.1 * 5 * together[2], "not more for sixty than for five"
    for n, one, itself, many in zip(counts[1:], together[1:], alone[1:], apart[1:], strict=False):
        assert one < itself < many, n
    assert together[-1] < alone[-1] / 5
    assert max(apart) < 1.5 * min(apart)


def test_what_cannot_be_compared_is_asked_once() -> None:
    """The predicate list: one evaluation per row for all who ask the same."""
    made = runner(0)
    for i in range(40):
        made.query(f"SELECT k FROM s WHERE s <> 'a' AND k = {i % 6} AND n > {i % 3}", f"q{i}")
    made.feed({"s": rows(0, 200)})
    made.close()
    counts = made.queries["q7"].stats()["counts"]
    asked = {key: n for key, n in counts.items() if key.startswith("evaluations:")}
    assert list(asked.values()) == [200], asked


def test_storage_is_freed() -> None:
    """priorart PS-9: with the last member its roll, its results and its cohort are gone."""
    made = runner(0)
    baseline = set(made.storage.listing("q"))
    for i in range(1_500):
        made.query(f"SELECT k FROM s WHERE k = {i % 6}", f"q{i}")
    made.feed({"s": rows(0, 50)})
    assert len(made.storage.listing("q")) > len(baseline)
    for i in range(1_200):
        made.queries[f"q{i}"].drop()
    cohort = next(q for n, q in made.core.state.queries.items())
    assert sum(int(p[1]) for p in cohort.sharing.roll) < 600, "the roll is rewritten without them"
    assert made.queries["q1300"].results().num_rows
    for i in range(1_200, 1_500):
        made.queries[f"q{i}"].drop()
    made.feed({"s": rows(50, 60)})
    assert not made.core.state.queries
    assert not made.core.state.outputs
    assert set(made.storage.listing("q")) == baseline


def test_who_is_a_member() -> None:
    made = runner(2)
    seen: list[pa.Table] = []
    made.query("SELECT k FROM s WHERE k = 1", "first")
    made.query("SELECT k FROM s WHERE k = 2", "second")
    for name, text in {
        "division": "SELECT k FROM s WHERE k / n > 1",
        "computed": "SELECT k + 1 AS k FROM s",
        "windowed": "SELECT ISTREAM k FROM s [RANGE 1 SECOND]",
        "relation": "SELECT k FROM s [RANGE 1 SECOND]",
        "grouped": "SELECT k, count(*) AS n FROM s [RANGE 1 SECOND] GROUP BY k",
        "own": "SELECT k FROM s WHERE k = 4 WITH (share = 'off')",
        "ordered": "SELECT k FROM s WHERE k = 4 WITH (filters = 'fixed')",
    }.items():
        made.query(text, name)
    made.query("SELECT k FROM s WHERE k = 5", "called", seen.append)
    assert not made.core.cohorts.by_name
    made.query("SELECT k FROM s WHERE k = 3", "third")
    made.query("SELECT k FROM s WHERE k BETWEEN 1 AND 3", "fourth")
    assert set(made.core.cohorts.by_name) == {"third", "fourth"}
    with pytest.raises(DuplicateName):
        made.query("SELECT k FROM s WHERE k = 4", "third")
    made.query("SELECT k FROM s WHERE k = 3", "third")
    made.feed({"s": rows(0, 40)})
    made.query("SELECT k FROM s WHERE k = 3", "third", seen.append)  # wants to be called: leaves
    assert set(made.core.cohorts.by_name) == {"fourth"}
    made.close()
    assert standing_filter(made.queries["fourth"].plan) is not None
    shown = made.sql("SHOW QUERIES")["name"].to_pylist()
    assert set(shown) == set(made.queries)
    assert "third" in shown


def test_members_are_not_behind_for_ever() -> None:
    """A query among many is asked for an answer: refused, not waited for."""
    made = runner(0)
    query = made.query("SELECT ISTREAM k FROM s WHERE k = 1", "q")
    made.feed({"s": rows(0, 50)})
    assert "q" in made.core.cohorts.by_name
    assert not made.core.readiness.is_behind("q")
    with pytest.raises(ConfigError, match="no current answer"):
        query.invoke()


@pytest.mark.parametrize("how", ["PAUSE QUERY {}", "ALTER QUERY {} SET (share = 'off')",
                                 "ALTER QUERY {} AS SELECT k FROM s WHERE k = 1"])  # fmt: skip
def test_who_leaves_last_keeps_what_all_have_got(how: str) -> None:
    """Results of members stay until the last who ever was one is dropped."""
    made = runner(0)
    queries = [made.query("SELECT k FROM s WHERE k = 1", f"q{i}") for i in range(3)]
    made.feed({"s": rows(0, 60)})
    before = queries[0].results()
    assert before.num_rows
    for query in queries:
        made.sql(how.format(query.name))
        for each in queries:
            assert each.results().equals(before)
    made.feed({"s": rows(60, 70)})
    assert queries[2].results().slice(0, before.num_rows).equals(before)
    made.sql("DROP QUERY q0; DROP QUERY q1")
    assert queries[2].results().num_rows >= before.num_rows
    made.sql("DROP QUERY q2")
    assert not made.core.state.outputs


def test_members_come_back() -> None:
    """A thousand thresholds are changed: they are matched by one index again, two epochs later."""
    made = runner(0)
    for i in range(40):
        made.query(f"SELECT k, n FROM s WHERE n > {i}", f"q{i}")
    made.feed({"s": rows(0, 20)})
    for i in range(0, 40, 2):
        made.sql(f"ALTER QUERY q{i} AS SELECT k, n FROM s WHERE n > {i + 50}")
    made.sql("PAUSE QUERY q1; PAUSE QUERY q3; ALTER QUERY q5 SET (share = 'off')")
    for at in (20, 30, 40):
        made.feed({"s": rows(at, at + 10)})
    own = {n for n in made.core.state.queries if not n.startswith("__")}
    assert own == {"q1", "q3", "q5"}
    made.sql("RESUME QUERY q1")
    for at in (50, 60, 70):
        made.feed({"s": rows(at, at + 10)})
    own = {n for n in made.core.state.queries if not n.startswith("__")}
    assert own == {"q3", "q5"}


@pytest.mark.parametrize("seed", range(16))
def test_members_come_and_go_as_they_please(seed: int) -> None:
    """priorart C2, C3, PS-7: however often a query leaves others and comes back, each row is judged
    by one version of it; each has a twin that always runs by itself."""
    rng = Random(seed)
    made = Runner(share_from=0, buckets=rng.choice((1, 2)), gather_from=4)
    made.stream("s", rows(0, 0), retain=rng.choice((None, "1 hour")))
    alive: list[str] = []
    back = 0
    for step in range(50):
        for _ in range(rng.randrange(3)):
            text = f"SELECT k, n FROM s WHERE n > {rng.randrange(-3, 3)}"
            what = rng.choice(("come", "come", "alter", "alter", "pause", "resume", "drop"))
            name = rng.choice(alive) if alive else ""
            if what == "come" or not alive:
                name = f"q{step}_{rng.randrange(1000)}"
                made.query(text, name)
                made.query(f"{text} WITH (share = 'off')", f"twin_{name}")
                alive.append(name)
            elif what == "alter":
                made.queries[name].alter(text)
                made.queries[f"twin_{name}"].alter(f"{text} WITH (share = 'off')")
            else:
                for each in (name, f"twin_{name}"):
                    made.sql(f"{what.upper()} QUERY {each}")
                if what == "drop":
                    alive.remove(name)
        made.feed({"s": rows(4 * step, 4 * step + 4)})
        if rng.random() < 0.15:
            made.restart()
        back = max(back, len(made.core.state.returned))
        for name in alive:
            one, two = (made.queries[n].results() for n in (name, f"twin_{name}"))
            assert one.column("__ts").to_pylist() == sorted(one.column("__ts").to_pylist())
            problem = difference(from_table(two), from_table(one))
            assert problem is None, f"{name} in step {step}\n{problem}"
    assert back > 0
    for name in alive:
        made.sql(f"DROP QUERY {name}; DROP QUERY twin_{name}")
    state = made.core.state
    assert not state.outputs
    assert not state.returned
    assert not [n for n in state.queries if n.startswith("__")]
