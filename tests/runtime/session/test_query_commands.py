"""Queries that are added, changed, paused and dropped while data flow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from thalweg.errors import BindError, ConfigError, DuplicateName, StillRead, UnknownName
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

N = 60


def rows(since: int = 0, until: int = N) -> pa.Table:
    times = list(range(since, until))
    return pa.table(
        {
            "k": pa.array([t % 3 for t in times], pa.int64()),
            "v": pa.array([t * 7 % 11 for t in times], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def runner(**options: object) -> Runner:
    made = Runner()
    made.stream("s", rows(0, 0), **options)
    return made


def feed(made: Runner, since: int, until: int) -> None:
    """One epoch per row."""
    for t in range(since, until):
        made.feed({"s": rows(t, t + 1)})


FILTER = "SELECT ISTREAM k, v FROM s WHERE v > 4"
SUMS = "SELECT k, sum(v) AS t, count(*) AS n FROM s [RANGE 9 MICROSECONDS] GROUP BY k"


def test_a_query_comes_and_goes_without_a_trace_in_others() -> None:
    """priorart C2: it speaks from its first epoch on, nobody else notices, nothing is left."""
    alone = runner()
    expected = alone.query(SUMS, "sums")
    feed(alone, 0, 40)
    alone.close()

    made = runner()
    kept = made.query(SUMS, "sums")
    feed(made, 0, 10)
    other = made.query("SELECT ISTREAM a.v FROM s [RANGE 5 MICROSECONDS] a, s [NOW] b "
                       "WHERE a.k = b.k", "other")  # fmt: skip
    grouped = made.query("SELECT v, count(*) AS n FROM s [RANGE 1 HOUR] GROUP BY v", "grouped")
    feed(made, 10, 30)
    assert min(other.results()["__ts"].cast(pa.int64()).to_pylist()) == 10
    assert grouped.stats()["state_rows"] > 0
    other.drop()
    made.sql("DROP QUERY grouped")
    assert other.status == grouped.status == "dropped"
    feed(made, 30, 40)
    made.close()
    assert kept.results() == expected.results()
    left = made.core.state
    assert set(left.queries) == {"sums"}
    assert not [key for key in left.outputs if not key.startswith("sums/")]
    assert not [n for n in made.storage.listing("q") if n.startswith(("q/other", "q/grouped"))]
    with pytest.raises(UnknownName, match="unknown query other"):
        other.results()


def test_each_row_is_judged_by_one_version() -> None:
    """priorart C3: the threshold changes at an epoch boundary, not within."""
    made = runner()
    query = made.query(FILTER, "q")
    feed(made, 0, 20)
    cut = query.stats()["frontier"]
    query.alter("SELECT ISTREAM k, v FROM s WHERE v <= 4")
    feed(made, 20, 40)
    made.close()
    times = rows(0, 40)
    wanted = [
        (int(t.value), v)
        for t, v in zip(times["ts"], times["v"].to_pylist(), strict=True)
        if (v > 4 if t.value < cut else v <= 4)
    ]
    found = query.results()
    assert list(zip(found["__ts"].cast(pa.int64()).to_pylist(), found["v"].to_pylist(),
                    strict=True)) == wanted  # fmt: skip


@pytest.mark.parametrize("kept", [True, False])
def test_a_relation_goes_over_from_one_answer_to_the_other(kept: bool) -> None:
    """After the change the sum of all changes is the new version's answer."""
    made = runner(**({"retain": "1 hour"} if kept else {}))
    query = made.query(SUMS, "q")
    whole = made.query(SUMS.replace("9", "19"), "beside")
    feed(made, 0, 25)
    made.sql("ALTER QUERY q SET WINDOW s [RANGE 14 MICROSECONDS]")
    assert "[RANGE 14 MICROSECONDS]" in query.text
    feed(made, 25, 33)
    made.close()
    other = Runner()
    other.stream("s", rows(0, 33))
    expected = other.query(SUMS.replace("9", "14"), "q")
    other.run()
    answers = [from_table(q.invoke().append_column(
        "__ts", pa.array([0] * q.invoke().num_rows, pa.timestamp("us", "UTC"))))
        for q in (expected, query)]  # fmt: skip
    assert answers[0]
    assert difference(*answers) is None
    assert whole.status == "running"


def test_a_changed_query_may_be_changed_back_and_survives_a_restart() -> None:
    made = runner()
    query = made.query(FILTER, "q")
    feed(made, 0, 5)
    query.alter(FILTER.replace("4", "6"))
    made.restart()
    assert made.queries["q"].text.endswith("> 6")
    assert made.query(FILTER, "q").text.endswith("> 6")  # the text it came with attaches
    made.queries["q"].alter(FILTER)
    feed(made, 5, 30)
    made.close()
    assert all(v > 4 for v in query.results()["v"].to_pylist())
    with pytest.raises(DuplicateName, match="a different query q exists"):
        made.query(FILTER.replace("4", "9"), "q")


def test_windows_are_inserted_removed_and_resized() -> None:
    """priorart C5, C6, U8, AU-9: shared rows of the largest window, coverage, what is freed."""
    made = runner()
    ten = made.query("SELECT count(*) AS n FROM s [RANGE 9 MICROSECONDS]", "ten")
    made.query("SELECT count(*) AS n FROM s [RANGE 2 MICROSECONDS]", "three")
    feed(made, 0, 30)

    def kept() -> int:
        return made.core.stats.kept_rows("s")

    assert kept() == 10 + 1  # the newest instant waits until it is over
    seed = "WITH (history = 'seed')"
    six = made.query(f"SELECT count(*) AS n FROM s [RANGE 5 MICROSECONDS] {seed}", "six")
    twenty = made.query(f"SELECT count(*) AS n FROM s [RANGE 19 MICROSECONDS] {seed}", "twenty")
    assert six.invoke()["n"].to_pylist() == [6]
    assert twenty.invoke()["n"].to_pylist() == [10]
    assert six.coverage.status == "COMPLETE"
    assert twenty.coverage.status == "PARTIAL"
    assert twenty.coverage.share == 0.5
    assert twenty.invoke().schema.metadata[b"thalweg.status"] == b"PARTIAL"
    now = twenty.stats()["frontier"] - 1
    assert twenty.coverage.complete_at == now + 10
    for step in range(1, 11):
        feed(made, 29 + step, 30 + step)
        assert (twenty.coverage.status == "COMPLETE") == (step == 10)
        assert six.invoke()["n"].to_pylist() == [6]
        assert twenty.invoke()["n"].to_pylist() == [10 + step]
    assert kept() == 20 + 1
    twenty.drop()
    feed(made, 40, 41)
    assert kept() == 10 + 1
    ten.alter("SELECT count(*) AS n FROM s [RANGE 4 MICROSECONDS]")
    feed(made, 41, 42)
    assert kept() == 6 + 1
    assert ten.invoke()["n"].to_pylist() == [5]
    ten.alter("SELECT count(*) AS n FROM s [RANGE 11 MICROSECONDS]")
    assert ten.coverage.share == 0.5
    feed(made, 42, 50)
    assert ten.coverage.status == "COMPLETE"
    assert ten.invoke()["n"].to_pylist() == [12]


@pytest.mark.parametrize("crash", [False, True])
def test_insertion_beside_a_replayed_batch(crash: bool) -> None:
    """priorart C7: an epoch that is lost with the process and done again counts each row once."""
    made = runner(retain="1 hour")
    made.query(SUMS, "q")
    feed(made, 0, 12)
    entry = made.entry({"s": rows(12, 20)})
    late = made.query(SUMS, "late")
    if crash:
        made.restart()  # the registration was not committed: it is made again
    made.epoch([entry])
    if crash:
        made.restart()
    made.close()
    assert difference(from_table(made.queries["q"].results()), from_table(late.results())) is None
    assert late.results().num_rows


def test_a_paused_query_misses_nothing() -> None:
    made = runner()
    query, other = made.query(SUMS, "q"), made.query(SUMS, "other")
    feed(made, 0, 10)
    query.pause()
    assert query.status == "paused"
    before = query.results()
    feed(made, 10, 30)
    assert query.results() == before
    made.sql("RESUME q")
    made.close()
    assert difference(from_table(other.results()), from_table(query.results())) is None


def test_what_others_read_stays() -> None:
    made = runner()
    made.sql("CREATE VIEW high AS SELECT ISTREAM k, v FROM s WHERE v > 4")
    made.query("SELECT k FROM high", "reader")
    made.query("SELECT k FROM reader", "second")
    made.table("names", pa.table({"k": pa.array([1], pa.int64())}))
    made.query("SELECT ISTREAM s.k FROM s, names WHERE s.k = names.k", "joined")
    with pytest.raises(StillRead, match="high cannot be dropped: reader, second read it"):
        made.sql("DROP VIEW high")
    with pytest.raises(StillRead, match="reader cannot be dropped: second reads it"):
        made.sql("DROP QUERY reader")
    with pytest.raises(StillRead, match="reader cannot be changed"):
        made.queries["reader"].alter("SELECT k FROM s WHERE k = 1")
    with pytest.raises(StillRead, match="joined"):
        made.sql("DROP TABLE names")
    made.sql("DROP QUERY second; DROP QUERY reader; DROP VIEW high; DROP QUERY joined")
    made.sql("DROP TABLE names")
    with pytest.raises(UnknownName):
        made.query("SELECT k FROM high")
    with pytest.raises(UnknownName):
        made.sql("DROP TABLE names")
    with pytest.raises(UnknownName):
        made.sql("DROP VIEW high")
    made.sql("CREATE VIEW high AS SELECT ISTREAM v FROM s")  # the name is free again


def test_refusals() -> None:
    made = runner()
    query = made.query(FILTER, "q")
    for statement in ("DROP QUERY x", "PAUSE x", "RESUME x", "ALTER QUERY x AS SELECT k FROM s"):
        with pytest.raises(UnknownName, match="unknown query x"):
            made.sql(statement)
    with pytest.raises(ConfigError, match="would change from"):
        query.alter("SELECT ISTREAM k FROM s")
    with pytest.raises(UnknownName, match="has no source t"):
        made.sql("ALTER QUERY q SET WINDOW t [NOW]")
    made.query("SELECT a.k FROM s [NOW] a, s [NOW] a2 WHERE a.k = a2.k", "two")
    made.sql("ALTER QUERY two SET WINDOW a2 [RANGE 3 SECONDS]")
    with pytest.raises(DuplicateName, match="s is already defined"):
        made.query(FILTER, "s")
    assert query.status == "running"


def test_a_thousand_registrations_in_one_epoch() -> None:
    made = runner(retain="1 hour")
    feed(made, 0, 10)
    before = made.core.state.epoch
    for i in range(1_000):
        made.query(f"SELECT ISTREAM v FROM s WHERE k = {i % 4} AND v > {i % 9}", f"q{i}")
    made.feed({"s": rows(10, 20)})
    made.close()
    assert made.core.state.epoch <= before + 3
    table = rows(0, 20)
    for i in (0, 1, 17, 500, 999):
        wanted = [v for k, v in zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True)
                  if k == i % 4 and v > i % 9]  # fmt: skip
        assert made.queries[f"q{i}"].results()["v"].to_pylist() == wanted


def test_case_makes_no_difference_to_names() -> None:
    made = runner()
    query = made.query("SELECT count(*) AS n FROM s [RANGE 9 MICROSECONDS]", "Counted")
    feed(made, 0, 5)
    assert made.sql("INVOKE counted").to_pylist() == [{"n": 4}]
    made.sql("PAUSE QUERY COUNTED")
    assert query.status == "paused"
    made.sql("RESUME QUERY counted; ALTER QUERY counted SET WINDOW s [RANGE 1 MICROSECOND]")
    feed(made, 5, 9)
    assert made.sql("INVOKE COUNTED").to_pylist() == [{"n": 2}]
    assert "[RANGE 1 µs]" in made.sql("SHOW PLANS counted")["plan"][0].as_py()
    made.sql("CREATE VIEW Seen AS SELECT v FROM s; DROP VIEW seen; DROP QUERY counted")
    assert query.status == "dropped"
    assert made.sql("SHOW QUERIES").num_rows == 0


@pytest.mark.parametrize("name", ["", "x" * 260, "\u6f22" * 60])
def test_what_nothing_can_be_called(name: str) -> None:
    """Files are called after it: refused before an epoch has to fail."""
    made = runner()
    with pytest.raises(ConfigError, match=r"must not be empty|too long"):
        made.sql(f"CREATE QUERY `{name}` AS {FILTER}")


@pytest.mark.parametrize(
    "options", ["state_limit = 0", "state_limit = -1", "history = 'seed', history = 'none'"]
)
def test_options_that_say_nothing_sensible(options: str) -> None:
    with pytest.raises(BindError, match=r"above 0|given twice"):
        runner().query(f"{FILTER} WITH ({options})", "q")


@pytest.mark.parametrize("sharing", [1, 2])
def test_a_window_of_rows_is_complete_when_it_is_full(sharing: int) -> None:
    """priorart C5: what came before the query would not be in it any more."""
    made = Runner(buckets=2)
    made.stream("s", rows(0, 0))
    made.query("SELECT ISTREAM v FROM s", "other")
    made.feed({"s": rows(0, 10)})
    queries = [made.query("SELECT k, v FROM s [ROWS 8]", f"q{i}") for i in range(sharing)]
    seen = []
    for at in range(10, 40, 5):
        made.feed({"s": rows(at, at + 5)})
        seen += [(at, q.coverage.status) for q in queries]
    assert {status for at, status in seen if at < 15} == {"PARTIAL"}
    # what is shared is brought forward when half as much has come: so long it cannot be told
    assert {status for at, status in seen if at >= 15 * sharing} == {"COMPLETE"}
