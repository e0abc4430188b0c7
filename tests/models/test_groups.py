"""Aggregates over the rows that are there at each instant: by definition, however a query runs."""

from __future__ import annotations

import random

import pytest
from model_rows import (
    MODEL,
    SECOND,
    T0,
    WAYS,
    Answer,
    Row,
    answered,
    drawn,
    instant,
    micros,
    ran,
    segments,
)

from thalweg.errors import BindError, ThalwegError

GROUPS = ("g0", "g1", "g2")


def same_however_run(sql: str, rows: list[Row]) -> Answer:
    first, *others = (answered(sql, rows, **way) for way in WAYS)
    for way, other in zip(WAYS[1:], others, strict=True):
        assert other == first, way
    return Answer(first)


def instants(answer: Answer, rng: random.Random, until: float = 60) -> list[int]:
    """Those around what changes, and others."""
    near = [t + d for t in answer.breaks for d in (-1, 0, 1)]
    return near + [instant(rng.uniform(0, until)) for _ in range(80)]


@pytest.mark.parametrize("seed", range(6))
def test_sums_means_and_extremes_are_those_of_what_lives(seed: int) -> None:
    rng = random.Random(seed)
    rows = drawn(rng, 40, 6, whole=seed % 3 == 0)
    horizon = rng.choice([None, 2.5])
    lasts = "" if horizon is None else " FOR 2500 MILLISECONDS"
    own = segments(rows, horizon)
    answer = same_however_run(
        "SELECT g, sum(x) AS s, avg(x) AS m, min(x) AS lo, max(x) AS hi "
        f"FROM s {MODEL}{lasts} GROUP BY g",
        rows,
    )
    for ts in instants(answer, rng):
        found = {r["g"]: r for r in answer.at(ts)}
        for group in GROUPS:
            alive = [s for s in own if s.group == group and s.start <= ts < s.end]
            assert (group in found) == bool(alive)
            if not alive:
                continue
            values, row = [s.at(ts) for s in alive], found[group]
            size = 1 + max(map(abs, values))
            assert row["s"] == pytest.approx(sum(values), abs=1e-10 * size)
            assert row["m"] == pytest.approx(sum(values) / len(values), abs=1e-10 * size)
            # beside a crossing the other one may be taken for a tick
            tick = max(abs(s.at(ts + 2) - s.at(ts - 2)) for s in alive)
            assert row["lo"] == pytest.approx(min(values), abs=tick + 1e-10 * size)
            assert row["hi"] == pytest.approx(max(values), abs=tick + 1e-10 * size)


CROSSING: list[Row] = [(0, "a", "g", 0.0, 1.0, 0.0), (0, "b", "g", 4.0, -1.0, 0.0)]
END: list[Row] = [(4, "a", "g", None, 0.0, 0.0), (4, "b", "g", None, 0.0, 0.0)]


def test_the_largest_of_two_lines() -> None:
    """t and 4 - t on [0, 4) (pulse #11): 4 - t, then t."""
    answer = Answer(answered(f"SELECT max(x) AS m FROM s {MODEL}", CROSSING + END))
    assert [(t - T0) / SECOND for t in answer.breaks] == [0, 2, 4]
    assert [r["m"] for t in (0, 1, 2, 3.5) for r in answer.at(instant(t))] == [4, 3, 2, 3.5]
    assert answer.at(instant(4)) == []


def test_a_superseded_owner_leaves_what_it_owned_to_others() -> None:
    """The second key is 0 from t = 1 on (pulse #11): 4 - t on [0, 1), then t."""
    rows: list[Row] = [*CROSSING, (1, "b", "g", 0.0, 0.0, 0.0), *END]
    answer = Answer(answered(f"SELECT max(x) AS m FROM s {MODEL}", rows))
    assert [(t - T0) / SECOND for t in answer.breaks] == [0, 1, 4]
    assert [r["m"] for t in (0.5, 1, 3) for r in answer.at(instant(t))] == [3.5, 1, 3]


def test_groups_are_as_queries_of_their_own() -> None:
    """pulse #15"""
    rows = drawn(random.Random(11), 40, 6)
    columns = "sum(x) AS s, avg(x) AS m, max(x) AS hi"
    together = answered(f"SELECT g, {columns} FROM s {MODEL} GROUP BY g", rows)
    for group in GROUPS:
        alone = answered(f"SELECT {columns} FROM s {MODEL} WHERE g = '{group}'", rows)
        own = [{n: v for n, v in r.items() if n != "g"} for r in together if r["g"] == group]
        assert sorted(own, key=repr) == alone


def test_conditions_on_groups_are_solved_for_time() -> None:
    """The spread of t and 4 - t is above 2 before 1 and behind 3."""
    sql = (
        f"SELECT max(x) - min(x) AS spread, avg(x) AS m FROM s {MODEL} "
        "HAVING max(x) - min(x) > 2 AND avg(x) < 3"
    )
    answer = same_however_run(sql, CROSSING + END)
    assert answer.at(instant(0.999999))[0]["spread"] == pytest.approx(2.000002)
    assert answer.at(instant(1)) == []
    assert answer.at(instant(3)) == []
    assert answer.at(instant(3.000001))[0] == pytest.approx({"spread": 2.000002, "m": 2})


def test_alarms_begin_once() -> None:
    """Rows without modeled columns are rows: one for each time that the condition begins."""
    sql = f"SELECT ISTREAM g FROM s {MODEL} GROUP BY g HAVING max(x) > 3"
    rows = answered(sql, CROSSING + END)
    assert sorted((r["__ts"].second, r["g"]) for r in rows) == [(0, "g"), (3, "g")]


def test_total_power_now() -> None:
    """The last value of each key counts until the next."""
    rows: list[Row] = [
        (0, "a", "g", 1.5, 0, 0), (1, "b", "g", 2.5, 0, 0), (2, "a", "g", 4.0, 0, 0),
        (3, "b", "g", None, 0, 0),
    ]  # fmt: skip
    sql = "SELECT sum(x) AS total FROM s MODEL (x = x) SAMPLE EVERY 500 MILLISECONDS"
    rows_ = answered(sql, rows, epochs=3)
    found = sorted(((micros(r["__ts"]) - T0) / SECOND, r["total"]) for r in rows_)
    assert found[:8] == [
        (0, 1.5), (0.5, 1.5), (1, 4), (1.5, 4), (2, 6.5), (2.5, 6.5), (3, 4), (3.5, 4),
    ]  # fmt: skip


def test_sums_leave_nothing_behind() -> None:
    """Whatever came and went: 0.1 + 1e20 - 1e20 is 0.1."""
    rows: list[Row] = [
        (0, "a", "g", 0.1, 0.1, 0.1), (1, "b", "g", 1e20, 1e5, -1e9),
        (2, "b", "g", None, 0, 0), (3, "b", "g", 0.2, 0.3, 0),
    ]  # fmt: skip
    by_time = sorted(
        answered(f"SELECT ISTREAM sum(x) AS s FROM s {MODEL}", rows), key=lambda r: r["__ts"]
    )
    third = by_time[2]["__model"]["s"]
    exact = [0.1 + 0.1 * 2 + 0.1 * 4, 0.1 + 2 * 0.1 * 2, 0.1]
    assert third == pytest.approx(exact, rel=1e-15)


def test_values_that_are_missing_do_not_count() -> None:
    rows: list[Row] = [(0, "a", "g", 1.0, 0, 0), (0, "b", "g", 2.0, 0, 0)]
    sql = f"SELECT avg(x / nullif(v, 0)) AS none, avg(x) AS m FROM s {MODEL}"
    answer = same_however_run(sql, rows)
    assert answer.at(instant(1))[0]["m"] == 1.5
    assert answer.at(instant(1))[0]["none"] is None


def test_unmodeled_columns_are_aggregated_beside() -> None:
    rows: list[Row] = [(0, "a", "g", 1.0, 3.0, 0), (0, "b", "g", 2.0, 5.0, 0)]
    answer = Answer(answered("SELECT sum(v) AS v, sum(x) AS x FROM s MODEL (x = x)", rows))
    assert answer.at(instant(1)) == [{"v": 8.0, "x": 3.0}]


@pytest.mark.parametrize(
    ("what", "message", "remedy"),
    [
        ("count(*)", "count counts rows", "SAMPLE EVERY"),
        ("count(x)", "count counts rows", "SAMPLE EVERY"),
        ("stddev(x)", "not solved over models", "SAMPLE EVERY"),
        ("sum(DISTINCT x)", "DISTINCT", "SAMPLE EVERY"),
        ("sum(x) FILTER (WHERE v > 0)", "FILTER", "WHERE"),
        ("integral(x)", "over how long", "RANGE 1 MINUTE"),
        ("coverage(x)", "over how long", "RANGE 1 MINUTE"),
        ("sum(exp(x))", "EXP", "SAMPLE EVERY"),
        ("avg(1 / x)", "division", "SAMPLE EVERY"),
        ("max(k)", "max(s.k) is STRING", "CAST"),
    ],
)
def test_what_is_not_aggregated_is_refused(what: str, message: str, remedy: str) -> None:
    with pytest.raises(ThalwegError) as refused:
        ran(f"SELECT {what} AS c FROM s {MODEL}", CROSSING)
    assert message in str(refused.value)
    assert remedy in str(refused.value)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT x, sum(v) AS s FROM s MODEL (x = x) GROUP BY x", "cannot be grouped by"),
        ("SELECT g FROM s MODEL (x = x) GROUP BY g", "without an aggregate"),
        ("SELECT k, sum(x) AS s FROM s MODEL (x = x) GROUP BY g", "neither aggregated"),
        ("SELECT g, sum(x) AS s FROM s MODEL (x = x) GROUP BY ROLLUP (g)", "ROLLUP"),
        ("SELECT sum(x) AS s FROM s MODEL (x = x) ERROR s WITHIN 1", "over several keys"),
        ("SELECT sum(x) AS s FROM s MODEL (x = x) WITH (release = 'eager')", "predictions of"),
        ("SELECT sum(o.x) AS s FROM s [NOW] t JOIN s o MODEL (x = x) ON t.k = o.k", "single"),
        ("SELECT integral(v) AS i FROM s [RANGE 1 SECOND]", "functions of time"),
        ("SELECT derivative(v) AS d FROM s", "modeled column"),
        ("SELECT derivative(v) AS d FROM s MODEL (x = x)", "modeled column"),
    ],
)
def test_what_does_not_go_together_is_refused(sql: str, message: str) -> None:
    with pytest.raises(ThalwegError, match=message):
        ran(sql, CROSSING)


def test_derivatives() -> None:
    """Of columns, of sums, and where samples are taken, inside other functions."""
    rows: list[Row] = [(0, "a", "g", 1.0, 2.0, 3.0), (0, "b", "g", 5.0, -1.0, 0.0)]
    answer = Answer(answered(f"SELECT k, derivative(x) AS d FROM s {MODEL}", rows))
    assert sorted(r["d"] for r in answer.at(instant(2))) == [-1, 14]
    answer = Answer(answered(f"SELECT derivative(sum(x)) AS d FROM s {MODEL}", rows))
    assert [r["d"] for r in answer.at(instant(2))] == [13]
    sql = (
        f"SELECT exp(derivative(derivative(x)) / 6) AS e, derivative(x) AS d FROM s {MODEL} "
        "WHERE k = 'a' SAMPLE EVERY 1 MINUTE"
    )
    first = answered(sql, rows)[0]
    assert first["e"] == pytest.approx(2.718281828459045)
    assert first["d"] == 2
    with pytest.raises(BindError, match="EXP"):
        ran(f"SELECT derivative(exp(x)) AS d FROM s {MODEL} SAMPLE EVERY 1 MINUTE", rows)
