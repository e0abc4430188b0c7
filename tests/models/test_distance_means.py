"""Means and integrals of distances over windows that slide (`pulse.md` 16.4, 17.21 and 17.10), with
values worked out by hand; random ones are in `test_against_oracle.py`."""

from __future__ import annotations

from math import asinh, sqrt
from typing import Any

import pyarrow as pa
import pytest
from model_runs import S, loaded, play, relation, result, rows_of, stamped, table

from thalweg import col, fn
from thalweg.errors import ThalwegError

MOVE = "MODEL (x = x + v*t, y = y + w*t) FOR 10 SECONDS"
DISTANCE = "sqrt(pow(a.x - b.x, 2) + pow(a.y - b.y, 2))"
PAIR = f"FROM s {{0}} AS a {MOVE} JOIN s {{0}} AS b {MOVE} ON a.id < b.id"
SLIDING = "[SIZE 6 SECONDS ADVANCE 2 SECONDS]"


def movers() -> dict[str, pa.Table]:
    """a stands at (0, 3), b passes along the x axis: distance sqrt((t-5)^2 + 9)."""
    rows = [("a", 0.0, 3.0, 0.0, 0.0, 0), ("b", -5.0, 0.0, 1.0, 0.0, 0)]
    return {"s": table("id x y v w", *rows, until=30 * S)}


def passed(low: float, high: float) -> float:
    """The integral of that distance between two instants."""

    def whole(u: float) -> float:
        return (u * sqrt(u * u + 9) + 9 * asinh(u / 3)) / 2

    return whole(high - 5) - whole(low - 5)


def pairs(columns: str, more: str = "", window: str = SLIDING) -> str:
    return f"SELECT {columns} {PAIR.format(window)} {more}"


def below(columns: str, more: str = "", window: str = SLIDING) -> str:
    inner = f"SELECT a.id AS i, b.id AS j, {DISTANCE} AS d {PAIR.format('')}"
    return f"SELECT {columns} FROM ({inner}) {window} AS p {more}"


def refusal(sql: str) -> ThalwegError:
    with pytest.raises(ThalwegError) as refused:
        loaded(movers()).query(sql)
    return refused.value


WANTED = {b: (max(b - 6, 0), min(b, 10)) for b in (2, 4, 6, 8, 10, 12, 14)}


@pytest.mark.parametrize(
    "sql",
    [pairs(f"RSTREAM avg({DISTANCE}) AS m, integral({DISTANCE}) AS g"),
     below("RSTREAM avg(d) AS m, sum(d) AS g")],
)  # fmt: skip
def test_means_and_integrals_are_over_what_is_covered(sql: str) -> None:
    got = {r["__ts"] // S: (r["m"], r["g"]) for r in result(sql, movers())}
    assert sorted(got) == sorted(WANTED)
    for at, (low, high) in WANTED.items():
        whole = passed(low, high)
        assert got[at] == pytest.approx((whole / (high - low), whole), rel=1e-12), at


FOLLOWING = """
    {} id1, id2{} FROM (
      select S1.id as id1, S2.id as id2, sqrt(pow(S1.x-S2.x,2)+pow(S1.y-S2.y,2)) as dist
      from s [size 10 seconds advance 1 second] as S1 model (x = x + v*t, y = y + w*t)
      join s [size 10 seconds advance 1 second] as S2 model (x = x + v*t, y = y + w*t)
      on S1.id <> S2.id) [size 6 seconds advance 1 second] as candidates
    group by id1, id2 having avg(dist) < 4"""


def test_who_follows_whom() -> None:
    """The second reference query of the note, word by word but for units: within 4 from the
    boundary at 6 to that at 10, whichever way round."""
    near = [b for b in range(1, 16) if passed(max(b - 6, 0), b) / min(b, 6) < 4]
    assert near == [6, 7, 8, 9, 10]
    answer = relation(FOLLOWING.format("select", ", avg(dist) as mean"), movers())
    assert answer.spans(id1="a") == [(6 * S, 11 * S)]
    for b in near:
        wanted = passed(b - 6, b) / 6
        for at in (b * S, b * S + 999_999):
            assert [r["mean"] for r in answer.at(at)] == pytest.approx([wanted] * 2)
    rows = result(FOLLOWING.format("select rstream", ""), movers())
    both = [("a", "b"), ("b", "a")]
    assert stamped(rows, "id1", "id2") == [(b * S, *pair) for b in near for pair in both]
    for word, at in (("istream", 6), ("dstream", 11)):
        rows = result(FOLLOWING.format(f"select {word}", ""), movers())
        assert stamped(rows, "id1", "id2") == [(at * S, *pair) for pair in both]


def test_a_sample_reads_what_the_last_boundary_said() -> None:
    rows = result(below("avg(d) AS m", "SAMPLE EVERY 1 SECOND"), movers())
    got = {r["__ts"] // S: r["m"] for r in rows}
    assert sorted(got) == list(range(2, 16))
    assert all(got[b] == got[b + 1] for b in range(2, 15, 2))


def test_distances_beside_other_aggregates() -> None:
    """Each column is what it is by itself."""
    columns = [f"avg({DISTANCE})", "avg(a.x - b.x)", f"coverage({DISTANCE})", f"max({DISTANCE})"]
    listed = ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
    rows = result(pairs(f"RSTREAM {listed}"), movers())
    assert len(rows) == len(WANTED)
    for i, column in enumerate(columns):
        alone = result(pairs(f"RSTREAM {column} AS c"), movers())
        assert [(r["__ts"], r[f"c{i}"]) for r in rows] == [(r["__ts"], r["c"]) for r in alone]


def test_pairs_of_a_group_are_weighted_by_coverage() -> None:
    """16.3.7: three pairs, one of which is there for half the window."""
    rows: list[tuple[Any, ...]] = [("a", 0.0, 0.0, 0.0, 0.0, 0), ("b", 3.0, 4.0, 0.0, 0.0, 0)]
    rows.append(("c", 0.0, 8.0, 0.0, 0.0, 3 * S))
    data = {"s": table("id x y v w", *rows, until=30 * S)}
    got = result(pairs(f"RSTREAM avg({DISTANCE}) AS m"), data)
    assert [r["m"] for r in got if r["__ts"] == 6 * S] == [
        pytest.approx((6 * 5 + 3 * 8 + 3 * 5) / 12)
    ]


def test_without_a_value_there_is_no_distance() -> None:
    """17.19: NULL ends a segment; of a group of which nothing is left nothing is said."""
    rows = [("a", 3.0, 4.0, 0.0, 0.0, 0), ("a", None, 0.0, 0.0, 0.0, S)]
    data = {"s": table("id x y v w", *rows, until=30 * S)}
    sql = f"SELECT RSTREAM id, avg(sqrt(x*x + y*y)) AS m FROM s {SLIDING} {MOVE} GROUP BY id"
    assert stamped(result(sql, data), "m") == [(2 * S, 5.0), (4 * S, 5.0), (6 * S, 5.0)]


def test_distances_without_a_value_count_for_nothing() -> None:
    """Of two places in a table one is not known: the mean is that to the other, and NULL where
    there is no other."""
    data = {"s": table("id x v", ("a", 3.0, 0.0, 0), ("b", 3.0, 0.0, 0), until=30 * S)}
    places = pa.table({"key": ["a", "a", "b"], "lim": [1.0, None, None]})
    sql = (
        "SELECT RSTREAM a.id, avg(sqrt(pow(a.x - l.lim, 2))) AS m FROM s [SIZE 2 SECONDS ADVANCE "
        "2 SECONDS] AS a MODEL (x = x + v*t) FOR 2 SECONDS JOIN lim l ON a.id = l.key GROUP BY a.id"
    )
    assert stamped(result(sql, data, tables={"lim": places}), "id", "m") == [
        (2 * S, "a", 2.0), (2 * S, "b", None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "bound"), [("x WITHIN 0.3, y WITHIN 0.4", 0.5), ("m WITHIN 1", sqrt(0.5))]
)
def test_means_have_the_bound_of_the_distance(error: str, bound: float) -> None:
    """17.10: L = 1 in the Euclidean norm, and a mean moves no more than what it is of."""
    seen = set()
    for level in (5 - bound - 1e-6, 5 - bound + 1e-6, 5 + bound - 1e-6, 5 + bound + 1e-6):
        data = {"s": table("id x y", ("a", 3.0, 4.0, 0), until=30 * S)}
        sql = (
            f"SELECT RSTREAM id, avg(sqrt(x*x + y*y)) AS m FROM s {SLIDING} MODEL (x = x, y = y) "
            f"FOR 6 SECONDS GROUP BY id HAVING avg(sqrt(x*x + y*y)) < {level} ERROR {error}"
        )
        seen.add(tuple({r["__maybe"] for r in result(sql, data)}))
    assert seen == {(), (True,), (False,)}


def test_of_a_distance_more_than_needed_is_refused_with_a_remedy() -> None:
    assert "SLIDE" in refusal(below("avg(d) AS m", window="[RANGE 6 SECONDS]")).remedy
    assert "SAMPLE" in refusal(pairs(f"avg({DISTANCE}) AS m", window="")).remedy
    assert "/ 1000" in refusal(pairs(f"avg({DISTANCE} / 2) AS m")).remedy
    assert "/ 1000" in refusal(below("avg(d / 2) AS m")).remedy
    curved = "MODEL (x = x + v*t + w*t^2)"
    error = refusal(f"SELECT avg(sqrt(x*x + 1)) AS m FROM s {SLIDING} {curved}")
    assert "degree 4" in str(error)
    assert "straight lines" in error.remedy


def test_built_in_python() -> None:
    """The same rows as of the text."""
    runner = loaded(movers())
    apart = fn.sqrt(fn.pow(col("x"), 2) + fn.pow(col("y"), 2))
    source = runner["s"].range("6 s", slide="2 s").model(x="x + v*t", y="y + w*t", horizon="10 s")
    built = source.group_by("id").having(fn.avg(apart) < 4).agg(m=fn.avg(apart)).rstream()
    written = (
        f"SELECT RSTREAM id, avg(sqrt(pow(x, 2) + pow(y, 2))) AS m FROM s {SLIDING} {MOVE} "
        "GROUP BY id HAVING avg(sqrt(pow(x, 2) + pow(y, 2))) < 4"
    )
    rows = result(built.sql(), movers())
    assert rows == result(written, movers())
    assert {r["id"] for r in rows} == {"a", "b"}


def test_explained() -> None:
    said = loaded(movers()).explain(below("i, avg(d) AS m", "GROUP BY i"))
    assert "(the mean over time of a square root)" in said
    assert "by p.i, over the last 6 s" in said
    assert "in closed form at the multiples of 2 s since 1970; each answer holds until" in said


def test_what_has_left_the_window_leaves_nothing_behind() -> None:
    """A pair that came before, and is long gone, changes no bit of the answer for one like it."""
    late = [("a", 0.0, 3.0, 0.0, 0.0, 5000 * S), ("b", -5.0, 0.0, 1.0, 0.0, 5000 * S)]
    early = [("a", 0.1, 3.7, 0.3, 0.9, 0), ("b", -5.3, 0.0, 1.7, 0.7, S)]
    sql, answers = below("RSTREAM i, j, avg(d) AS m", "GROUP BY i, j"), []
    for rows, epochs in ((late, 1), ([*early, *late], 1), ([*early, *late], 9)):
        data = {"s": table("id x y v w", *rows, until=5030 * S)}
        found = rows_of(play(sql, data, epochs=epochs).results())
        answers.append([(r["__ts"], r["m"]) for r in found if r["__ts"] > 5000 * S])
    assert len(answers[0]) == 7
    assert answers[0] == answers[1] == answers[2]


def test_work_follows_changes_and_boundaries() -> None:
    """However many segments a window holds, at a boundary the one that is there is integrated, the
    one that was there a window ago, and the group looked at."""
    rows = [("a", 3.0 + i % 7, 4.0, i * S) for i in range(100)]
    sql = "SELECT RSTREAM avg(sqrt(x*x + y*y)) AS m FROM s [SIZE 50 SECONDS ADVANCE 1 SECOND]"
    query = play(f"{sql} MODEL (x = x, y = y) FOR 9 SECONDS", {"s": table("id x y", *rows)})
    assert query.results().num_rows >= 99
    assert query.stats()["counts"]["roots integrated"] <= 4 * 100 + 3 * 160
