"""Queries that answer when they are invoked: the same answer however much is done before."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError
from thalweg.runtime.invoke.materialize_modes import DECIDE_EVERY
from thalweg.runtime.state.internal_names import kind_of_output
from thalweg.runtime.state.query_state import CONDITIONS
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

MODES = ("none", "p", "c", "auto")


def rows(since: int, until: int) -> pa.Table:
    rng = Random(since)
    times = list(range(since, until))
    return pa.table(
        {
            "k": pa.array([rng.randrange(4) for _ in times], pa.int64()),
            "v": pa.array([None if rng.random() < 0.1 else rng.randrange(256) for _ in times],
                          pa.int64()),
            "x": pa.array([rng.random() for _ in times], pa.float64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )  # fmt: skip


def runner(**how: Any) -> Runner:
    made = Runner(**how)
    made.stream("s", rows(0, 0), retain="1 hour")
    return made


def bag(table: pa.Table) -> Any:
    at = pa.array([0] * table.num_rows, pa.timestamp("us", "UTC"))
    return from_table(table.replace_schema_metadata(None).append_column("__ts", at))


SNAPSHOT = "[FROM TIMESTAMP '1970-01-01 00:00:00.000010' TO TIMESTAMP '1970-01-01 00:00:00.000055']"
LANDMARK = "[LANDMARK TIMESTAMP '1970-01-01 00:00:00.000030']"
WINDOWS = ["[RANGE 29 MICROSECONDS]", "[NOW]", "[RANGE 20 MICROSECONDS SLIDE 7 MICROSECONDS]",
           LANDMARK, SNAPSHOT, "[LANDMARK EVERY 40 MICROSECONDS]"]  # fmt: skip
SHAPES = [
    "SELECT k, v FROM s {} WHERE v > 60 AND k < 3",
    "SELECT DISTINCT k FROM s {} WHERE v >= 200",
    "SELECT k, count(*) AS n, sum(x) AS t, max(v) AS m FROM s {} WHERE v <> 7 GROUP BY k "
    "HAVING count(*) > 1",
    "SELECT count(*) AS n, avg(x) AS a FROM s {}",
]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_modes_answer_alike_at_every_instant(shape: str, window: str) -> None:
    """priorart PS-2, PS-13, PS-1: snapshot, landmark and sliding windows, whenever invoked; the
    reference is the query that emits its changes."""
    text = shape.format(window)
    made = runner(slice_rows=11)
    options = "WITH (unbounded = true{})"
    reference = made.query(f"{text} {options.format('')}", "reference")
    early = {m: made.query(f"{text} {options.format(f', materialize = {m!r}')}", m) for m in MODES}
    late: dict[str, Any] = {}
    for since, until in ((0, 9), (9, 40), (40, 41), (41, 70), (70, 100)):
        made.feed({"s": rows(since, until)})
        if until == 41:
            late = {
                m: made.query(f"{text} {options.format(f', materialize = {m!r}')}", f"late_{m}")
                for m in MODES
            }
            made.restart()
        expected = bag(reference.invoke())
        for name, query in {**early, **late}.items():
            problem = difference(expected, bag(query.invoke()))
            assert problem is None, f"{name} after {until}: {text}\n{problem}"
    for query in (made.queries["none"], made.queries["p"]):
        at = 80
        problem = difference(bag(reference.invoke(at)), bag(query.invoke(at)))
        assert problem is None, f"{query.name} at {at}: {text}\n{problem}"


def test_invocations_ask_no_predicate() -> None:
    """priorart PS-3: under p and c rows have been judged before, without any call in between."""
    made = runner()
    text = "SELECT k, v FROM s [RANGE 30 MICROSECONDS] WHERE v > 60 AND k < 3"
    queries = {m: made.query(f"{text} WITH (materialize = '{m}')", m) for m in ("none", "p", "c")}
    made.feed({"s": rows(0, 200)})
    counts = made.core.answers.fetching.counts
    asked = {}
    for mode, query in queries.items():
        query.invoke()
        counts.clear()
        assert query.invoke().num_rows > 5
        asked[mode] = sum(n for key, n in counts.items() if key.startswith("evaluations:"))
    assert asked["none"] > 0
    assert asked["p"] == asked["c"] == 0


def test_one_condition_is_kept_once() -> None:
    """priorart PS-2, PS-11: the same WHERE under several windows is one materialisation; another
    WHERE is another; with the last who asks it goes."""
    made = runner()
    baseline = len(made.storage.listing("q"))
    for i, window in enumerate(WINDOWS[:3]):
        made.query(f"SELECT v FROM s {window} WHERE v > 60 AND k < 3 WITH (materialize = 'p')",
                   f"a{i}")  # fmt: skip
        made.query(f"SELECT k, count(*) AS n FROM s {window} WHERE k < 3 AND v > 60 GROUP BY k "
                   "WITH (materialize = 'p')", f"b{i}")  # fmt: skip
    assert len(made.core.condition_cohorts.by_name) == 1
    made.query("SELECT v FROM s [NOW] WHERE v > 61 AND k < 3 WITH (materialize = 'p')", "other")
    assert len(made.core.condition_cohorts.by_name) == 2
    made.feed({"s": rows(0, 100)})
    made.restart()
    assert len(made.core.condition_cohorts.by_name) == 2
    made.queries["other"].drop()
    assert len(made.core.condition_cohorts.by_name) == 1
    for name in list(made.queries):
        made.queries[name].drop()
    made.feed({"s": rows(100, 110)})
    assert not made.core.state.queries
    assert not made.core.state.outputs
    assert len(made.storage.listing("q")) == baseline


@pytest.mark.parametrize("buckets", [1, 3])
def test_aggregates_of_one_condition_share_a_tree(buckets: int) -> None:
    """priorart PS-10, PS-11: windows of one WHERE share a tree, another WHERE has its own; answers
    are those without trees."""
    made = runner(buckets=buckets)
    shape = (
        "SELECT count(*) AS n, sum(v) AS t, avg(x) AS a, min(x) AS low, max(v) + 1 AS top, "
        "count(v) AS c FROM s {} WHERE k < {} WITH (materialize = 'p', unbounded = true)"
    )
    queries = [made.query(shape.format(w, 3), f"q{i}") for i, w in enumerate(WINDOWS)]
    other = made.query(shape.format(WINDOWS[0], 2), "other")
    answers = made.core.answers
    for since in range(0, 400, 40):
        made.feed({"s": rows(since, since + 40)})
        for query in (*queries, other):
            answers.uses_trees = True
            by_tree = bag(query.invoke())
            answers.uses_trees = False
            assert difference(bag(query.invoke()), by_tree) is None, query.text
        if since == 0:
            answers.uses_trees = True
    trees = answers.ranked.trees
    assert trees == 2 * 2, "two columns, two conditions"
    other.drop()
    assert answers.ranked.trees == 2


def test_the_work_of_an_invocation_is_what_the_mode_says() -> None:
    """priorart PS-12, in counts: under none all rows in the window are fetched and asked, the more
    the more predicates there are; under p those of the answer are fetched, and not what others let
    through; under c none."""
    done: dict[str, dict[int, int]] = {}
    for predicates in (1, 2, 4):
        made = runner()
        asked = ["v > 40", "v < 230", "k > 0", "x < 0.8"][:predicates]
        text = f"SELECT k, v FROM s [RANGE 2047 MICROSECONDS] WHERE {' AND '.join(asked)}"
        queries = [made.query(f"{text} WITH (materialize = '{m}')", m) for m in MODES[:3]]
        others = "SELECT v FROM s [RANGE 2047 MICROSECONDS] WHERE v > {} WITH (materialize = 'p')"
        for i in range(4):
            made.query(others.format(i), f"other{i}")
        for since in range(0, 4096, 512):
            made.feed({"s": rows(since, since + 512)})
        counts = made.core.answers.fetching.counts
        for query in queries:
            query.invoke()
            counts.clear()
            answers = query.invoke().num_rows
            evaluations = sum(n for key, n in counts.items() if key.startswith("evaluations:"))
            work = counts["rows fetched"] + evaluations
            done.setdefault(query.name, {})[predicates] = work
            if query.name == "none":
                assert counts["rows fetched"] == 2048
            elif query.name == "p":
                assert work == answers
            else:
                assert work == 0
    assert done["none"][1] < done["none"][2] < done["none"][4]
    assert done["p"][1] > done["p"][2] > done["p"][4]
    assert done["none"][4] > 8 * done["p"][4]


@pytest.mark.parametrize("buckets", [1, 2])
def test_what_is_let_through_is_put_together(buckets: int) -> None:
    """However many epochs have put something out, an answer opens few packs; sets stay as they
    were, lists or bitmaps."""
    made = runner(buckets=buckets)
    shape = "SELECT k, v FROM s [RANGE 1 MINUTE] WHERE k = {} AND v > {}"
    plain = [made.query(shape.format(i % 4, 30 * i), f"plain{i}") for i in range(5)]
    kept = [
        made.query(f"{q.text} WITH (materialize = 'p')", f"kept{i}") for i, q in enumerate(plain)
    ]
    for since in range(0, 3000, 10):
        made.feed({"s": rows(since, since + 10)})
        if since == 1500:
            made.restart()
            kept[0].drop()
    packs = [p for k, ps in made.core.state.outputs.items() for p in ps
             if kind_of_output(k) == CONDITIONS]  # fmt: skip
    assert len(packs) < 8 * 4 * buckets
    for one, other in zip(plain[1:], kept[1:], strict=True):
        assert one.invoke().num_rows > 50
        assert difference(bag(one.invoke()), bag(other.invoke())) is None


def test_what_is_let_through_is_kept_as_long_as_the_stream() -> None:
    """priorart PS-9: rows beyond the largest window free their storage."""
    made = Runner()
    made.stream("s", rows(0, 0))
    query = made.query(
        "SELECT v FROM s [RANGE 19 MICROSECONDS] WHERE k < 3 WITH (materialize = 'p')", "q"
    )
    made.core.settings.results_retain = 0
    for t in range(0, 300, 10):
        made.clock = t
        made.feed({"s": rows(t, t + 10)})
        assert query.coverage.status == "COMPLETE"
        assert len(made.core.state.outputs) <= 5
    now = 298
    kept = [v for k, v, t in zip(*(pa.concat_tables([rows(t, t + 10) for t in range(0, 300, 10)])[c]
            .to_pylist() for c in ("k", "v", "ts")), strict=True) if k < 3
            and now - 19 <= int(pa.scalar(t, pa.timestamp("us", "UTC")).value) <= now]  # fmt: skip
    assert sorted(query.invoke()["v"].to_pylist(), key=str) == sorted(kept, key=str)


def test_auto_follows_how_often_it_is_invoked() -> None:
    made = runner()
    query = made.query(
        "SELECT v FROM s [RANGE 9 MICROSECONDS] WHERE k < 3 WITH (materialize = 'auto')", "q"
    )
    plain = made.query("SELECT v FROM s [RANGE 9 MICROSECONDS] WHERE k < 3", "plain")

    def mode() -> str:
        return made.core.state.queries["q"].definition.mode

    assert mode() == "p"
    at = 0
    for wanted, each in (("none", 0), ("c", 2), ("p", None), ("none", 0)):
        for i in range(3 * DECIDE_EVERY):
            made.feed({"s": rows(at, at + 2)})
            at += 2
            for _ in range(each if each is not None else int(i % 4 == 0)):
                assert difference(bag(plain.invoke()), bag(query.invoke())) is None
        assert mode() == wanted
    made.sql("ALTER QUERY q SET (materialize = 'c')")
    assert mode() == "c"
    assert difference(bag(plain.invoke()), bag(query.invoke())) is None


def test_refusals() -> None:
    made = runner()
    with pytest.raises(ConfigError, match="nothing to invoke"):
        made.query("SELECT ISTREAM k FROM s [NOW] WITH (materialize = 'p')")
    with pytest.raises(ConfigError, match="say materialize = 'c'"):
        made.query("SELECT k FROM s [ROWS 3] WITH (materialize = 'none')")
    with pytest.raises(ConfigError, match="say materialize = 'c'"):
        made.query("SELECT k FROM s [NOW] WHERE k / v > 1 WITH (materialize = 'p')")
    query = made.query("SELECT k FROM s [ROWS 3] WITH (materialize = 'auto')", "rows")
    assert made.core.state.queries["rows"].definition.mode == "c"
    with pytest.raises(ConfigError, match="use invoke"):
        query.results()
    made.feed({"s": rows(0, 10)})
    with pytest.raises(ConfigError, match="only the current answer"):
        query.invoke(3)
    p = made.query("SELECT k FROM s [NOW] WITH (materialize = 'p')", "p")
    with pytest.raises(ConfigError, match="knows nothing of"):
        p.invoke(10_000)
    emits = made.query("SELECT k FROM s [NOW]", "emits")
    with pytest.raises(ConfigError, match="emits its changes"):
        made.sql("ALTER QUERY emits SET (materialize = 'p')")
    assert emits.results().num_rows == 0


def test_kept_answers_know_what_was_there_before() -> None:
    """Over windows that are empty now: count is 0 in every mode, not missing."""
    made = runner()
    made.query("SELECT ISTREAM v FROM s", "other")
    made.feed({"s": rows(0, 50)})
    made.feed({"s": rows(900, 901)})
    text = "SELECT count(*) AS n FROM s [RANGE 20 MICROSECONDS] WHERE k < 9"
    queries = [made.query(f"{text} WITH (materialize = '{m}')", m) for m in MODES]
    found = {q.name: q.invoke(None).to_pylist() for q in queries}
    assert found["c"] == found["none"] == found["p"] == found["auto"] != []


def test_a_view_that_is_defined_anew_is_read_anew() -> None:
    made = runner()
    counted = "CREATE QUERY q AS SELECT count(*) AS n FROM seen WITH (materialize = 'p')"
    made.sql("CREATE VIEW seen AS SELECT v FROM s [RANGE 1 MINUTE] WHERE k < 3;" + counted)
    made.feed({"s": rows(0, 100)})
    k = rows(0, 100).column("k").to_pylist()
    before = made.queries["q"].invoke().to_pylist()
    made.sql("DROP QUERY q; DROP VIEW seen")
    made.sql("CREATE VIEW seen AS SELECT v FROM s [RANGE 1 MINUTE] WHERE k < 1;" + counted)
    after = made.queries["q"].invoke().to_pylist()
    last = k[-1]  # the instant of the last row is not over
    assert before == [{"n": sum(i < 3 for i in k) - (last < 3)}]
    assert after == [{"n": sum(i < 1 for i in k) - (last < 1)}]


@pytest.mark.parametrize("seed", range(20))
def test_not_in_answers_alike(seed: int) -> None:
    """priorart PS-13: also of rows whose partners are a relation of their own, with NULLs."""
    rng = Random(seed)

    def some(count: int) -> pa.Table:
        keys = [None if rng.random() < 0.02 else rng.randrange(12) for _ in range(count)]
        times = sorted(rng.randrange(60) for _ in range(count))
        return pa.table(
            {
                "k": pa.array(keys, pa.int64()),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
            }
        )

    tables = {"a": some(20), "b": some(6)}
    text = ("SELECT k FROM a [RANGE 50 MICROSECONDS] "
            "WHERE k NOT IN (SELECT k FROM b [RANGE 20 MICROSECONDS])")  # fmt: skip
    found = {}
    for mode in ("none", "c", None):
        made = Runner()
        for name, table in tables.items():
            made.stream(name, table.slice(0, 0), retain="1 hour")
        told = "" if mode is None else f" WITH (materialize = '{mode}')"
        query = made.query(text + told, "q")
        made.feed(tables)
        found[mode] = bag(query.invoke())
    assert difference(found[None], found["none"]) is None
    assert difference(found[None], found["c"]) is None
