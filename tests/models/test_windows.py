"""Aggregates over windows of functions: by definition, however a query runs."""

from __future__ import annotations

import random

import pytest
from model_rows import (
    MODEL,
    SECOND,
    T0,
    Answer,
    Row,
    answered,
    drawn,
    instant,
    micros,
    ran,
    segments,
)
from test_groups import CROSSING, END, GROUPS, instants, same_however_run

from thalweg.errors import ThalwegError

Values = list[tuple[float, float]]


def values(sql: str, rows: list[Row], at: list[float], name: str = "a") -> list[float | None]:
    """The one value at each instant; None: there is no row."""
    answer = Answer(answered(sql, rows, epochs=3))
    found = [answer.at(instant(t)) for t in at]
    assert all(len(some) < 2 for some in found)
    return [some[0][name] if some else None for some in found]


def known(answer: Answer, rng: random.Random, rows: list[Row]) -> list[int]:
    last = instant(rows[-1][0] + 110)
    return [ts for ts in instants(answer, rng) if ts < last]


@pytest.mark.parametrize("seed", range(6))
def test_integrals_means_and_coverage_are_those_of_what_is_covered(seed: int) -> None:
    rng = random.Random(seed)
    rows = drawn(rng, 40, 6, whole=seed % 3 == 0)
    horizon, window = rng.choice([None, 2.5]), rng.choice([1, 3, 7])
    lasts = "" if horizon is None else " FOR 2500 MILLISECONDS"
    answer = same_however_run(
        "SELECT g, integral(x) AS i, sum(x) AS s, avg(x) AS m, integral(1) AS c, coverage(x) AS v "
        f"FROM s [RANGE {window} SECONDS] {MODEL}{lasts} GROUP BY g",
        rows,
    )
    every = segments(rows, horizon)
    for ts in known(answer, rng, rows):
        found, since = {r["g"]: r for r in answer.at(ts)}, ts - window * SECOND
        for group in GROUPS:
            own = [s for s in every if s.group == group]
            covered = sum(s.covered(since, ts) for s in own) / SECOND
            assert (group in found) == (covered > 0)
            if not covered:
                continue
            row, whole = found[group], float(sum(s.integral(since, ts) for s in own))
            seen = len({s.key for s in own if s.start <= ts and s.end > since})
            size = 1 + window * max(abs(s.at(ts)) for s in own)
            assert row["i"] == pytest.approx(whole, abs=1e-9 * size)
            assert row["s"] == row["i"]
            assert row["c"] == pytest.approx(covered, abs=1e-9)
            assert row["v"] == pytest.approx(covered / window / seen, abs=1e-9)
            assert row["m"] == pytest.approx(whole / covered, abs=1e-9 * size / covered)


@pytest.mark.parametrize("seed", range(6))
def test_extremes_are_those_of_what_is_covered(seed: int) -> None:
    rng = random.Random(100 + seed)
    rows = drawn(rng, 40, 6, whole=seed % 3 == 0)
    horizon, window = rng.choice([None, 2.5]), rng.choice([1, 3, 7])
    lasts = "" if horizon is None else " FOR 2500 MILLISECONDS"
    answer = same_however_run(
        "SELECT g, max(x) AS hi, min(x) AS lo "
        f"FROM s [RANGE {window} SECONDS] {MODEL}{lasts} GROUP BY g",
        rows,
    )
    every = segments(rows, horizon)
    for ts in known(answer, rng, rows):
        found, since = {r["g"]: r for r in answer.at(ts)}, ts - window * SECOND
        for group in GROUPS:
            own = [s for s in every if s.group == group]
            there = [v for s in own for v in s.extremes(since, ts)]
            assert (group in found) == bool(there)
            if there:
                slope = max(abs(s.at(t + 2) - s.at(t)) for s in own for t in (ts, since))
                size = 1 + max(map(abs, there))
                assert found[group]["hi"] == pytest.approx(max(there), abs=slope + 1e-10 * size)
                assert found[group]["lo"] == pytest.approx(min(there), abs=slope + 1e-10 * size)


def test_the_largest_of_a_window() -> None:
    """25 - (t - 5)² on [0, 10), 3 seconds: e(t) before 5, 25 up to 8, then e(t - 3) (pulse #12)."""
    rows: list[Row] = [(0, "a", "g", 0.0, 10.0, -1.0), (10, "a", "g", None, 0, 0)]
    at = [0, 3, 4, 5, 6.5, 7.999999, 8, 9, 9.5, 12.999999, 13]
    wanted = [0, 21, 24, 25, 25, 25, 25, 24, 22.75]
    found = values(f"SELECT max(x) AS a FROM s [RANGE 3 SECONDS] {MODEL}", rows, at)
    assert found[: len(wanted)] == wanted
    assert found[9] == pytest.approx(10e-6)  # from 10 - 1 tick on, where it ended
    assert found[10] is None


def test_the_smallest_of_a_window_over_an_envelope() -> None:
    """min(t, 4 - t) over 1 second: t - 1 on [1, 2.5), then 4 - t (pulse #12)."""
    at = [0, 0.5, 1, 1.5, 2, 2.25, 2.5, 2.75, 3, 3.5, 4, 4.5]
    found = values(f"SELECT min(x) AS a FROM s [RANGE 1 SECOND] {MODEL}", CROSSING + END, at)
    assert found == [0, 0, 0, 0.5, 1, 1.25, 1.5, 1.25, 1, 0.5, 0, 0]


def test_a_window_within_one_segment() -> None:
    """x = t on [0, 10), 2 seconds: 2t - 2, mean t - 1, from 2 on (pulse #13); before that over what
    is covered. The antiderivative alone is not the answer (X3)."""
    rows: list[Row] = [(0, "a", "g", 0.0, 1.0, 0.0), (10, "a", "g", None, 0, 0)]
    at = [0.0, 1, 2, 3, 7.25, 10, 11, 12]
    sql = f"FROM s [RANGE 2 SECONDS] {MODEL}"
    assert values(f"SELECT sum(x) AS a {sql}", rows, at) == [
        None, 0.5, 2, 4, 12.5, 18, 9.5, None,
    ]  # fmt: skip
    assert values(f"SELECT avg(x) AS a {sql}", rows, at) == [None, 0.5, 1, 2, 6.25, 9, 9.5, None]


def test_a_window_over_several_segments() -> None:
    """1 on [0, 4), t - 3 on [4, 6), 5 on [6, 12), 5 seconds: 4t - 17 on [6, 9) and -57.5 + 13t -
    0.5t² on [9, 11) (pulse #14, X4)."""
    rows: list[Row] = [
        (0, "a", "g", 1.0, 0, 0), (4, "a", "g", 1.0, 1.0, 0), (6, "a", "g", 5.0, 0, 0),
        (12, "a", "g", None, 0, 0),
    ]  # fmt: skip
    answer = Answer(answered(f"SELECT integral(x) AS a FROM s [RANGE 5 SECONDS] {MODEL}", rows))
    for t in (6, 6.5, 7.75, 8.5):
        assert answer.at(instant(t))[0]["a"] == 4 * t - 17
    for t in (9, 9.5, 10.25, 10.999999):
        wanted = -57.5 + 13 * t - 0.5 * t * t
        assert answer.at(instant(t))[0]["a"] == pytest.approx(wanted, abs=1e-12)
    assert {(t - T0) / SECOND for t in answer.breaks if t > T0 + 1} == {4, 5, 6, 9, 11, 12, 17}


def test_a_gap_is_not_covered() -> None:
    """1 on [0, 2), nothing, 3 from 5 on."""
    rows: list[Row] = [
        (0, "a", "g", 1.0, 0, 0), (2, "a", "g", None, 0, 0), (5, "a", "g", 3.0, 0, 0),
    ]  # fmt: skip
    sql = "FROM s [RANGE 4 SECONDS] MODEL (x = x)"
    at = [2, 5, 5.5, 6, 8]
    assert values(f"SELECT integral(x) AS a {sql}", rows, at) == [2, 1, 2, 3, 9]
    assert values(f"SELECT avg(x) AS a {sql}", rows, at) == [1, 1, 2, 3, 3]
    assert values(f"SELECT coverage(x) AS a {sql}", rows, at) == [0.5, 0.25, 0.25, 0.25, 0.75]
    # nothing between 6, when what was is 4 seconds old, and its first tick
    assert values("SELECT avg(x) AS a FROM s [RANGE 3 SECONDS] MODEL (x = x)", rows, [5, 5.5]) == [
        None,
        3,
    ]


def test_supersession_within_a_window() -> None:
    """A prediction that was wrong leaves no trace behind its end."""
    rows: list[Row] = [(0, "a", "g", 0.0, 100.0, 50.0), (1, "a", "g", 2.0, 0, 0)]
    sql = f"FROM s [RANGE 3 SECONDS] {MODEL}"
    at = [1, 2, 3.5, 4.5]
    before = 50 + 50 / 3
    left = [before, before, before - (50 * 0.25 + 50 / 3 * 0.125), 0]
    wanted = [b + 2 * min(t - 1, 3) for b, t in zip(left, at, strict=True)]
    assert values(f"SELECT integral(x) AS a {sql}", rows, at) == pytest.approx(wanted, abs=1e-12)


def test_time_spent_above_a_threshold() -> None:
    """t and 4 - t above 2 within 3 seconds."""
    sql = (
        f"SELECT RSTREAM k, integral(1) AS above FROM s [RANGE 3 SECONDS SLIDE 1 SECOND] {MODEL} "
        "WHERE x > 2 GROUP BY k"
    )
    rows = answered(sql, CROSSING + END, epochs=4)
    found = {(r["k"], r["__ts"].second): r["above"] for r in rows}
    assert [found["b", t] for t in (1, 2, 3, 4)] == [1, 2, 2, 1]
    assert [found["a", t] for t in (3, 4, 5, 6)] == pytest.approx([1, 2, 2, 1], abs=2e-6)


def test_moving_averages_that_cross() -> None:
    """MACD: the mean of 2 seconds above that of 6, with and without a predicate in the join."""
    rng = random.Random(8)
    rows = drawn(rng, 60, 3, degree=1)
    means = {
        w: f"(SELECT k, avg(x) AS ap FROM s [SIZE {w} SECONDS ADVANCE 1 SECOND] {MODEL} GROUP BY k)"
        for w in (2, 6)
    }
    sql = (
        f"SELECT {{kind}} S.k, S.ap - L.ap AS diff FROM {means[2]} AS S JOIN {means[6]} AS L "
        "ON S.k = L.k WHERE S.ap > L.ap"
    )
    answer = same_however_run(sql.format(kind=""), rows)
    every = segments(rows)

    def mean(key: str, ts: int, window: int) -> float | None:
        own, since = [s for s in every if s.key == key], ts - window * SECOND
        covered = sum(s.covered(since, ts) for s in own) / SECOND
        return float(sum(s.integral(since, ts) for s in own)) / covered if covered else None

    for ts in known(answer, rng, rows):
        found = {r["k"]: r["diff"] for r in answer.at(ts)}
        for key in ("k0", "k1", "k2"):
            short, long = (mean(key, ts, w) for w in (2, 6))
            difference = None if short is None or long is None else short - long
            if difference is None:
                assert key not in found
            elif key in found or difference > 1e-4:
                assert found[key] == pytest.approx(difference, abs=1e-7)
    sampled = answered(sql.format(kind="RSTREAM"), rows, epochs=5)
    assert sampled
    assert {micros(r["__ts"]) % SECOND for r in sampled} == {0}
    for row in sampled:
        there = {r["k"]: r["diff"] for r in answer.at(micros(row["__ts"]))}
        assert there[row["k"]] == pytest.approx(row["diff"], abs=1e-12)


def test_slides_say_when_answers_are_emitted() -> None:
    """Every 2 seconds (pulse #16); without an aggregate the window changes nothing else."""
    rows: list[Row] = [(0.5, "a", "g", 0.0, 1.0, 0), (9, "a", "g", None, 0, 0)]
    sql = f"SELECT RSTREAM {{}} AS a FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] {MODEL}"

    def found(what: str) -> list[tuple[float, float]]:
        rows_ = answered(sql.format(what), rows, epochs=2)
        return sorted(((micros(r["__ts"]) - T0) / SECOND, r["a"]) for r in rows_)

    assert found("x") == [(2, 1.5), (4, 3.5), (6, 5.5), (8, 7.5)]
    assert found("avg(x)") == [(2, 0.75), (4, 1.75), (6, 3.5), (8, 5.5), (10, 7), (12, 8)]


def test_several_slides_are_all_emitted_at() -> None:
    rows: list[Row] = [(0, "a", "g", 0.0, 1.0, 0), (8, "a", "g", None, 0, 0)]
    sql = (
        f"SELECT RSTREAM p.x AS a FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] p {MODEL} "
        f"JOIN s [RANGE 4 SECONDS SLIDE 3 SECONDS] o {MODEL} ON p.k = o.k"
    )
    times = sorted((micros(r["__ts"]) - T0) / SECOND for r in answered(sql, rows))
    assert times == [0, 2, 3, 4, 6]


def test_windows_of_a_modeled_subquery() -> None:
    """The mean of twice the value; the key goes along as a column."""
    rows: list[Row] = [(0, "a", "g", 0.0, 1.0, 0.0), (10, "a", "g", None, 0, 0)]
    sql = (
        f"SELECT k, avg(y) AS a FROM (SELECT k, 2 * x AS y FROM s {MODEL} WHERE x > 1) "
        "[RANGE 2 SECONDS] AS q GROUP BY k"
    )
    assert values(sql, rows, [1, 2, 4]) == pytest.approx([None, 3, 6], abs=1e-5)


def test_everything_leaves_in_the_end() -> None:
    """Nothing is kept once windows are empty."""
    rows = drawn(random.Random(3), 30, 4)
    rows += [(200 + i, f"k{i}", "g0", None, 0.0, 0.0) for i in range(4)]
    sql = (
        "SELECT g, avg(x) AS m, coverage(x) AS c, max(x) AS hi "
        f"FROM s [RANGE 5 SECONDS] {MODEL} GROUP BY g"
    )
    answer = Answer(answered(sql, rows, epochs=7))
    assert answer.at(instant(203)) != []
    assert answer.at(instant(230)) == []


def test_a_final_run_goes_on_until_windows_are_empty() -> None:
    from model_rows import table

    from thalweg.testing import Runner

    rows: list[Row] = [(0, "a", "g", 1.0, 0.0, 0.0), (4, "a", "g", None, 0.0, 0.0)]
    runner = Runner()
    runner.stream("s", table(rows), key=["k"])
    query = runner.query("SELECT max(x) AS m, sum(x) AS s FROM s [RANGE 9 SECONDS] MODEL (x = x)")
    runner.run(final=True)
    answer = Answer(query.results().to_pylist())
    assert answer.at(instant(13) - 1)[0]["m"] == 1
    assert answer.at(instant(13)) == []


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("[ROWS 5]", "no single rows to count"),
        ("[NOW]", "no single rows to count"),
        ("[UNBOUNDED]", "no single rows to count"),
        ("[SESSION GAP 5 SECONDS]", "no single rows to count"),
        ("[SIZE 4 SECONDS ADVANCE 0 SECONDS]", "advance by nothing"),
    ],
)
def test_other_windows_are_refused(window: str, message: str) -> None:
    for what in ("avg(x) AS a", "x"):
        with pytest.raises(ThalwegError, match=message):
            ran(f"SELECT {what} FROM s {window} {MODEL}", CROSSING)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            f"SELECT avg(a.x) AS m FROM s [RANGE 1 SECOND] a {MODEL} "
            f"JOIN s [RANGE 2 SECONDS] b {MODEL} ON a.k = b.k",
            "different windows",
        ),
        ("SELECT avg(pow(x, 8)) AS m FROM s [RANGE 1 SECOND] MODEL (x = x + v*t)", "degree 9"),
        (
            f"SELECT coverage(x) AS c FROM (SELECT x FROM s {MODEL}) [RANGE 1 SECOND] AS q",
            "does not know its keys",
        ),
        (
            f"SELECT avg(m) AS c FROM (SELECT avg(x) AS m FROM s [RANGE 1 SECOND] {MODEL}) "
            "[RANGE 1 SECOND] AS q",
            "quotient of polynomials",
        ),
    ],
)
def test_what_windows_cannot_do_is_refused(sql: str, message: str) -> None:
    with pytest.raises(ThalwegError, match=message):
        ran(sql, CROSSING)
