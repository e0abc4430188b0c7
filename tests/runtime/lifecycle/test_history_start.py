"""Queries that see the past: what is kept of it, where it ends, and what they say about it."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from thalweg.instants import BEFORE_TIME
from thalweg.runtime.results.stream_history import history
from thalweg.testing.compare import column_values, difference, from_table
from thalweg.testing.generators import Case, random_case
from thalweg.testing.grid import load
from thalweg.testing.runner import Runner

FIRST, LAST = 40, 90
"""How long, in µs, streams are kept by the random cases; they last about 100."""


def stamped(times: list[int], **columns: list[int]) -> pa.Table:
    made = {name: pa.array(values, pa.int64()) for name, values in columns.items()}
    return pa.table({**made, "ts": pa.array(times, pa.timestamp("us", "UTC"))})


def numbers(since: int, until: int) -> pa.Table:
    times = list(range(since, until))
    return stamped(times, v=[t * 7 % 11 for t in times])


def kept_runner(retain: str = "20 microseconds", **how: object) -> Runner:
    made = Runner(**how)  # type: ignore[arg-type]
    made.stream("s", numbers(0, 0), retain=retain)
    return made


# -- random queries ----------------------------------------------------------------------------


def _late_comer(case: Case, retain: int, history: str) -> tuple[Runner, dict[str, int]]:
    """The case with streams kept for a while and its query registered when two thirds are over."""
    rng = Random(f"late {case.seed}")
    made = Runner(epochs=6, buckets=rng.choice((1, 2)), slice_rows=rng.choice((3, 20, 10**6)))
    for name, stream in case.streams.items():
        made.stream(
            name, stream.table, stream.timestamp, lateness=stream.lateness,
            retain=f"{retain} microseconds",
        )  # fmt: skip
    for name, table in case.tables.items():
        made.table(name, table)
    begins: dict[str, int] = {}

    def before_epoch(number: int) -> None:
        if number == min(4, made.feedings):
            text = case.sql
            if history != "replay":
                joined = text.removesuffix(")") + ", " if text.endswith(")") and "WITH (" in text \
                    else text + " WITH ("  # fmt: skip
                text = f"{joined}history = '{history}')"
            made.query(text, "q")
            begins.update(made.core.state.queries["q"].history.begins)

    made.run(before_epoch)
    return made, begins


def _from_the_beginning(case: Case, begins: dict[str, int]) -> Runner:
    """A run over the rows since then alone, with the query there from the start."""
    streams = {}
    for name, stream in case.streams.items():
        times = np.array([_micros(t) for t in column_values(stream.table[stream.timestamp])])
        rows = np.flatnonzero(times >= begins.get(name, BEFORE_TIME)) if len(times) else []
        streams[name] = type(stream)(stream.table.take(pa.array(rows, pa.int64())),
                                     stream.timestamp, stream.lateness)  # fmt: skip
    made = load(Runner(), Case(**{**_fields(case), "streams": streams}))
    made.query(case.sql, "q")
    made.run()
    return made


def _micros(value: object) -> int:
    return value if isinstance(value, int) else int(pa.scalar(value, pa.timestamp("us")).value)


def _fields(case: Case) -> dict[str, object]:
    return {name: getattr(case, name) for name in case.__dataclass_fields__}


@pytest.mark.parametrize("first", range(0, 200, 40))
def test_a_late_comer_is_a_query_that_began_where_the_past_begins(first: int) -> None:
    """priorart AU-3: no gap and no duplicate at the cut, whatever the query."""
    cut = 0
    for seed in range(first, first + 40):
        case = random_case(seed)
        made, begins = _late_comer(case, Random(seed).randrange(FIRST, LAST), "replay")
        cut += any(b > BEFORE_TIME for b in begins.values())
        found = from_table(made.queries["q"].results())
        expected = from_table(_from_the_beginning(case, begins).queries["q"].results())
        problem = difference(expected, found)
        assert problem is None, f"seed {seed}, since {begins}\n  {case.sql}\n{problem}"
    assert cut > 10, "most of the cases have lost some of their past"


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_seeding_fills_windows_silently(first: int) -> None:
    """What a seeded query says from the cut on is what one says that was there all the time; the
    answer of a relation is the same."""
    spoke = 0
    for seed in range(first, first + 40):
        case = random_case(seed)
        made, _ = _late_comer(case, 10**9, "seed")
        query = made.queries["q"]
        cut = made.core.state.queries["q"].history.silent_until
        whole = _from_the_beginning(case, {}).queries["q"]
        limit = pa.scalar(max(cut, -(2**61)), pa.int64()).cast(pa.timestamp("us", "UTC"))
        expected = whole.results()
        expected = expected.filter(pc.greater_equal(expected["__ts"], limit))
        problem = difference(from_table(expected), from_table(query.results()))
        assert problem is None, f"seed {seed}, cut {cut}\n  {case.sql}\n{problem}"
        spoke += expected.num_rows > 0
        if "__sign" in expected.column_names:
            at = pa.array([0] * whole.invoke().num_rows, pa.timestamp("us", "UTC"))
            answers = [q.invoke().append_column("__ts", at) for q in (whole, query)]
            assert difference(*map(from_table, answers)) is None, f"seed {seed}\n  {case.sql}"
    assert spoke > 10


# -- what is kept ------------------------------------------------------------------------------


def test_the_kept_past_is_what_is_said() -> None:
    """priorart AU-10: by default in the order of time; a closed range, as in [RANGE]."""
    made = kept_runner()
    for t in range(0, 100, 5):
        made.feed({"s": numbers(t, t + 5)})
    state = made.core.state
    found = history(made.storage, state, "s")
    assert found["ts"].cast(pa.int64()).to_pylist() == list(range(79, 100))
    some = history(made.storage, state, "s", 85, 91)
    assert some["ts"].cast(pa.int64()).to_pylist() == list(range(85, 91))
    assert some["v"].to_pylist() == [t * 7 % 11 for t in range(85, 91)]


def test_several_series_are_stored_and_read_by_range() -> None:
    """priorart C1: exactly the rows between two instants, of each of three series."""
    made = Runner()
    spans = {"fast": 1, "slow": 7, "uneven": 3}
    series = {}
    for name, step in spans.items():
        times = list(range(0, 300, step))
        series[name] = stamped(times, v=[t * step % 13 for t in times])
        made.stream(name, series[name].slice(0, 0), retain="1 hour")
    made.feed({n: t.slice(0, t.num_rows // 2) for n, t in series.items()})
    made.feed({n: t.slice(t.num_rows // 2) for n, t in series.items()})
    state = made.core.state
    for name, table in series.items():
        for low, high in ((0, 299), (21, 147), (42, 42), (150, 100)):
            found = history(made.storage, state, name, low, high + 1)
            times = table["ts"].cast(pa.int64())
            inside = pc.and_(pc.greater_equal(times, low), pc.less_equal(times, high))
            assert found.select(["v", "ts"]) == table.filter(inside)


def test_rows_may_be_kept_by_number() -> None:
    made = Runner()
    made.sql("CREATE STREAM s (v BIGINT, ts TIMESTAMP) TIMESTAMP BY ts RETAIN 30 ROWS")
    for t in range(0, 200, 5):
        made.feed({"s": numbers(t, t + 5)})
    assert 30 <= made.core.stats.kept_rows("s") < 40
    query = made.query("SELECT ISTREAM v FROM s", "q")
    made.close()
    assert 30 <= query.results().num_rows < 40


def test_a_window_longer_than_what_is_kept_says_from_when() -> None:
    """It is PARTIAL, with the time since which it has seen everything, until that is enough."""
    made = kept_runner()
    made.feed({"s": numbers(0, 60)})
    made.feed({"s": numbers(60, 100)})
    query = made.query("SELECT count(*) AS n FROM s [RANGE 49 MICROSECONDS]", "q")
    assert query.invoke()["n"].to_pylist() == [20]
    told = query.coverage
    assert (told.status, told.since, told.complete_at) == ("PARTIAL", 79, 79 + 49)
    assert told.share == 20 / 50
    assert "rows since '1970-01-01 00:00:00.000079'" in str(told)
    shown = made.sql("SHOW QUERIES").to_pylist()[0]
    assert shown["coverage"].startswith("PARTIAL")
    made.feed({"s": numbers(100, 130)})
    assert query.coverage.status == "COMPLETE"
    assert query.invoke()["n"].to_pylist() == [50]


@pytest.mark.parametrize("history", ["replay", "seed"])
def test_an_answer_covers_rows_from_before_and_after(history: str) -> None:
    """priorart PS-1: a query that comes late answers over all rows in its window."""
    made = kept_runner("1 hour", slice_rows=7)
    made.feed({"s": numbers(0, 50)})
    query = made.query(
        f"SELECT v FROM s [RANGE 19 MICROSECONDS] WHERE v > 3 WITH (history = '{history}')", "q"
    )
    for since, until in ((50, 50), (50, 58), (58, 71)):
        if since < until:
            made.feed({"s": numbers(since, until)})
        now = until - 2  # the newest instant is not over
        wanted = sorted(v for t in range(now - 19, now + 1) if (v := t * 7 % 11) > 3)
        assert sorted(query.invoke()["v"].to_pylist()) == wanted
    assert (query.results().num_rows > 30) == (history == "replay")


def test_none_sees_nothing_of_the_past() -> None:
    made = kept_runner("1 hour")
    made.feed({"s": numbers(0, 50)})
    query = made.query("SELECT v FROM s [RANGE 9 MICROSECONDS] WITH (history = 'none')", "q")
    assert query.invoke().num_rows == 0
    made.feed({"s": numbers(50, 55)})
    assert query.coverage.since == 50
    assert query.invoke().num_rows == 4


def test_the_past_takes_several_epochs_in_turn() -> None:
    """Slices: who came first is served first, and others go on with new rows meanwhile."""
    made = kept_runner("1 hour", slice_rows=10)
    live = made.query("SELECT ISTREAM v FROM s", "live")
    made.feed({"s": numbers(0, 100)})
    first = made.query("SELECT ISTREAM v AS a FROM s", "first")
    second = made.query("SELECT ISTREAM v AS b FROM s", "second")
    seen = []
    for t in range(100, 140):
        made.feed({"s": numbers(t, t + 1)})
        seen.append([q.results().num_rows for q in (live, first, second)])
        assert seen[-1][0] == t  # up to date all the time
    assert seen[0][1] == 10
    assert all(b == 0 or a >= 100 for _, a, b in seen)
    assert seen[-1][0] == seen[-1][1] == seen[-1][2]
    assert made.sql("SHOW QUERIES")["status"].to_pylist() == ["running"] * 3


def test_epochs_with_new_rows_leave_the_past_to_those_without() -> None:
    """Unless none is without: then they take a share, so that the past comes to an end."""
    made = kept_runner("1 hour")
    made.core.pace.rows, made.core.pace.fixed = 8_000, False
    live = made.query("SELECT ISTREAM v FROM s", "live")
    made.feed({"s": numbers(0, 30_000)})
    made.epoch([])
    late = made.query("SELECT ISTREAM v AS a FROM s", "late")

    def after(*epochs: bool) -> list[int]:
        found = []
        for has_rows in epochs:
            t = live.results().num_rows + 1
            if has_rows:
                made.feed({"s": numbers(t, t + 1)})
            else:
                made.epoch([])
            found.append(late.results().num_rows)
        return found

    assert after(True, True) == [0, 0]
    (slice_alone,) = after(False)
    assert slice_alone > 0
    assert after(True, True) == [slice_alone, slice_alone]
    (shared,) = after(True)
    assert 0 < shared - slice_alone < slice_alone


def test_detaching_leaves_others_alone() -> None:
    """priorart AU-3: an ad-hoc query that is taken off in the midst of its past."""
    made = kept_runner("1 hour", slice_rows=10)
    live = made.query("SELECT v, count(*) AS n FROM s [RANGE 20 MICROSECONDS] GROUP BY v", "live")
    made.feed({"s": numbers(0, 100)})
    adhoc = made.query("SELECT a.v FROM s [RANGE 5 MICROSECONDS] a, s [NOW] b WHERE a.v = b.v")
    made.feed({"s": numbers(100, 101)})
    assert made.core.registry.is_behind
    adhoc.drop()
    assert not made.core.registry.is_behind
    made.feed({"s": numbers(101, 120)})
    made.close()
    alone = kept_runner("1 hour")
    expected = alone.query(live.text, "live")
    alone.feed({"s": numbers(0, 120)})
    alone.close()
    assert difference(from_table(expected.results()), from_table(live.results())) is None


def test_a_global_aggregate_was_there_before_its_seed() -> None:
    """Also where no row of the past is kept: its first row is not news when the silence ends."""
    runner = Runner()
    runner.stream("s", numbers(0, 0))
    runner.query("SELECT ISTREAM v FROM s", name="other")
    runner.feed({"s": numbers(0, 10)})
    sql = "SELECT ISTREAM count(*) AS c FROM s [NOW] WHERE v < 0"
    runner.query(f"{sql} WITH (history = 'seed')", name="seeded")
    runner.query(f"{sql} WITH (history = 'none')", name="fresh")
    runner.feed({"s": numbers(10, 20)})
    runner.close()
    assert runner.queries["seeded"].results().num_rows == 0
    assert runner.queries["fresh"].results().num_rows == 1
