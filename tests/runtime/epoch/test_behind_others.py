"""Streams whose rows arrive at most so far behind those of another (the notes' delta_ij)."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from timed_rows import SECOND, batch, late_of, reasons, rows_of, runner

from thalweg.errors import ThalwegError
from thalweg.plan.catalog import SourceSpec
from thalweg.runtime.state.stream_definitions import described, read_stream
from thalweg.testing.compare import canonical, from_table
from thalweg.testing.runner import Runner

PAIRS = "SELECT ISTREAM a.v, b.v AS w FROM s [RANGE 1 DAY] a, r [RANGE 9 SECONDS] b WHERE a.v = b.v"


def pair(behind: str | int = "3 seconds", **options: Any) -> Runner:
    """`s`, and `r`, which is waited for always but comes at most so far behind `s`."""
    made = runner("s", idle=None)
    made.stream("r", batch(), idle=None, behind={"s": behind}, **options)
    return made


def reached(query: Any) -> float:
    return float(query.stats()["frontier"]) / SECOND


def test_a_silent_stream_holds_nobody_back() -> None:
    """streamon #4, between streams: after τ of s, what is before τ - delta is out at once."""
    made = pair()
    query = made.query("SELECT ISTREAM a.v FROM s [RANGE 1 DAY] a LEFT JOIN r [NOW] b ON a.v = b.v")
    made.feed({"s": batch((10, 1), (20, 2))})
    assert rows_of(query) == []
    made.tick(SECOND // 2)
    assert rows_of(query) == [(10, 1, (1,))]  # r will bring nothing before 17 s
    assert reached(query) == 17


def test_without_the_clause_it_does() -> None:
    made = runner("s", "r", idle=None)
    query = made.query(PAIRS)
    made.feed({"s": batch((10, 1), (20, 2)), "r": batch((1, 1))})
    made.tick(9 * SECOND)
    assert reached(query) == 1.000001  # a stream in order closes its newest instant


def test_it_goes_on_from_its_own_rows_too() -> None:
    made = pair()
    query = made.query(PAIRS)
    made.feed({"s": batch((10, 1), (20, 2)), "r": batch((19, 2))})
    made.tick(SECOND // 2)
    assert reached(query) == 19


@pytest.mark.parametrize(("seconds", "late"), [(17, 0), (16.999999, 1)])
def test_rows_that_break_the_bound_are_late(seconds: float, late: int) -> None:
    made = pair()
    query = made.query("SELECT v FROM r")
    joined = made.query(PAIRS)
    made.feed({"s": batch((20, 2))})
    made.tick(SECOND // 2)
    report = made.feed({"r": batch((seconds, 2))})
    assert report is not None
    assert report.late == late
    assert late_of(query, "r") == late_of(joined, "r") == late
    assert made.rejects("r").num_rows == late
    assert not late or reasons(made, "r") == ["late"]
    made.close()
    assert len(rows_of(query)) == len(rows_of(joined)) == 1 - late


def test_an_idle_stream_keeps_its_bound() -> None:
    made = runner("s", idle=None)
    made.stream("r", batch(), idle="2 seconds", behind={"s": "3 seconds"})
    query = made.query("SELECT v FROM r")
    made.feed({"r": batch((1, 1))})
    made.tick(5 * SECOND)  # silent
    made.feed({"s": batch((50, 2))})
    made.tick(5 * SECOND + 1)
    made.feed({"r": batch((46, 2), (47, 3))})
    assert late_of(query, "r") == 1


def test_the_other_stream_is_not_bound() -> None:
    made = pair()
    query = made.query("SELECT v FROM s")
    made.feed({"r": batch((50, 1))})
    made.tick(SECOND // 2)
    made.feed({"s": batch((1, 1))})
    assert late_of(query) == 0


def test_what_a_run_reads_lies_in_no_order_of_arrival() -> None:
    """Sources are read one faster than the other: nothing is late for that."""
    made = pair()
    query = made.query(PAIRS)
    made.feed({"s": batch((10, 1), (20, 2))})
    made.feed({"r": batch((2, 1), (12, 1))})
    made.close()
    assert late_of(query, "r") == 0
    assert [r[2] for r in rows_of(query)] == [(1, 1), (1, 1)]


def test_the_nearest_of_several_others_counts() -> None:
    made = runner("s", "q", idle=None)
    made.sql(
        "CREATE STREAM r (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts IDLE NEVER "
        "BEHIND s 3 SECONDS, Q INTERVAL '1' SECOND"
    )
    assert made.session.catalog.streams["r"].behind == (("s", 3 * SECOND), ("q", SECOND))
    query = made.query("SELECT v FROM r")
    made.feed({"r": batch((1, 1)), "s": batch((20, 1)), "q": batch((19, 1))})
    made.tick(SECOND // 2)
    assert reached(query) == 18


# -- any cut

SQL = "SELECT ISTREAM a.v, count(*) AS c FROM s [RANGE 4 SECONDS] a, r [RANGE 6 SECONDS] b " \
      "WHERE a.v = b.v GROUP BY a.v"  # fmt: skip


def arrivals(rng: Random) -> tuple[list[tuple[str, tuple[int, int]]], int]:
    """Rows of s and r, each in order, as they arrive, and how far r is behind s at most."""
    rows: dict[str, list[tuple[int, int]]] = {
        name: [(t, rng.randrange(3)) for t in sorted(rng.choices(range(40), k=25))] for name in "sr"
    }
    found, latest, most = [], -100, 0
    while rows["s"] or rows["r"]:
        name = rng.choice([n for n in rows if rows[n]])
        row = rows[name].pop(0)
        found.append((name, row))
        if name == "s":
            latest = row[0]
        else:
            most = max(most, latest - row[0])
    return found, most


def fed(made: Runner, rows: list[tuple[str, tuple[int, int]]], rng: Random | None) -> None:
    while rows:
        count = len(rows) if rng is None else rng.randint(1, 5)
        taken, rows = rows[:count], rows[count:]
        made.feed({n: batch(*(r for name, r in taken if name == n)) for n in "sr"})
        if rng is not None and rng.random() < 0.6:
            made.tick(made.clock + 1)
        if rng is not None and rng.random() < 0.1:
            made.restart()


@pytest.mark.parametrize("seed", range(12))
def test_rows_that_keep_the_bound_give_the_same_in_every_cut(seed: int) -> None:
    """streamon #4, between streams: nothing is released before it is safe."""
    rng = Random(f"behind {seed}")
    rows, most = arrivals(rng)
    plain = runner("s", "r", idle=None)
    wanted = plain.query(SQL)
    fed(plain, rows, None)
    plain.close()
    made = pair(f"{most} seconds")
    query = made.query(SQL)
    fed(made, rows, rng)
    made.close()
    query = made.queries[query.name]
    assert late_of(query, "r") == 0
    assert canonical(from_table(query.results())) == canonical(from_table(wanted.results()))


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_the_least_bound_that_holds_is_the_least_that_loses_nothing(seed: int) -> None:
    rows, most = arrivals(Random(f"behind {seed}"))
    late = []
    for bound in (most, most - 1):
        made = pair(f"{bound} seconds")
        query = made.query("SELECT v FROM r")
        for name, row in rows:
            made.feed({name: batch(row)})
            made.tick(made.clock + 1)
        late.append(late_of(query, "r"))
    assert late[0] == 0 < late[1]


# -- what is declared


def test_it_is_kept_and_resumed() -> None:
    made = pair()
    query = made.query(PAIRS)
    made.feed({"s": batch((20, 2))})
    made.restart()
    made.tick(SECOND // 2)
    assert reached(made.queries[query.name]) == 17
    again = Runner(storage=made.storage)
    again.stream("s", batch(), idle=None)
    with pytest.raises(ThalwegError, match="another definition"):
        again.stream("r", batch(), idle=None)
    assert again.stream("r", batch(), idle=None, behind={"S": 3 * SECOND}).behind == (
        ("s", 3 * SECOND),
    )


def test_a_definition_is_read_as_it_was_written() -> None:
    stream = pair().session.catalog.streams["r"]
    assert read_stream(described(stream)) == replace(stream, source=SourceSpec("frame"))


def test_explain_tells_it() -> None:
    made = pair()
    assert "in order, at most 3 s behind s, waited for always" in made.explain(PAIRS)


@pytest.mark.parametrize(
    ("clause", "said"),
    [
        ("BEHIND nosuch 1 SECOND", "unknown stream nosuch"),
        ("BEHIND R 1 SECOND", "cannot be BEHIND itself"),
        ("BEHIND s -1 SECOND", "duration"),
        ("BEHIND s", "duration"),
        ("BEHIND s 1 SECOND, S 2 SECONDS", "stands twice"),
        ("BEHIND s 1 SECOND BEHIND s 1 SECOND", "stands twice"),
        ("BEHIND v 1 SECOND", "not a stream whose rows arrive"),
        ("BEHIND SysStream 1 SECOND", "not a stream whose rows arrive"),
        ("BEHIND t 1 SECOND", "not a stream whose rows arrive"),
    ],
)
def test_what_is_refused(clause: str, said: str) -> None:
    made = runner("s")
    made.table("t", batch((1, 1)))
    made.sql("CREATE VIEW v RETAIN 1 DAY AS SELECT v FROM s")
    with pytest.raises(ThalwegError, match=said) as refused:
        made.sql(f"CREATE STREAM r (ts TIMESTAMP, v BIGINT) TIMESTAMP BY ts {clause}")
    assert refused.value.line == 1
    assert refused.value.remedy
    assert "r" not in made.session.catalog.streams


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ThalwegError, match="nothing behind s"):
        pair(-1)


def test_a_stream_that_another_is_behind_is_not_dropped() -> None:
    made = pair()
    with pytest.raises(ThalwegError, match="r is declared BEHIND s"):
        made.sql("DROP STREAM s")
    made.sql("DROP STREAM r; DROP STREAM s")
    assert not made.session.catalog.streams
