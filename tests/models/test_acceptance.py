"""The acceptance list of `pulse.md` (section 13), items 1-16, 21 and 22, as corrected by X1-X6 and
by sections 16 and 17. Written before and without the implementation; through SQL alone.

Times in the list are offsets in seconds; streams here begin at 1970, so an offset is an instant.
The engine's results are microsecond ticks `[start, end)` (16.3.3).
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from model_runs import (
    MS,
    Relation,
    S,
    counters,
    emitted_changes,
    loaded,
    models,
    play,
    relation,
    result,
    rows_of,
    stamped,
    table,
)

from thalweg.errors import ThalwegError

CURVE = "MODEL (x = c0 + c1*t + c2*t^2)"


def curves(*rows: tuple[object, ...], until: int = 30) -> dict[str, object]:
    """A stream s(id, c0, c1, c2, ts) of rows with their time in seconds."""
    data = [(*row[:-1], int(row[-1] * S)) for row in rows]  # type: ignore[operator]
    return {"s": table("id c0 c1 c2", *data, until=until * S)}


def near(actual: float | None, wanted: float) -> bool:
    return actual is not None and abs(actual - wanted) <= 1e-9 * max(1.0, abs(wanted))


# --- 1-4: data model and language -------------------------------------------------------------


def test_pulse_1_a_successor_wins_from_its_start() -> None:
    """pulse #1: c = 1 on [0,10), then c = 2 from 6 on => 1 on [0,6), 2 from 6 (FOR is one length
    for all tuples, so the second ends at 16)."""
    data = {"s": table("id x", ("a", 1.0, 0), ("a", 2.0, 6 * S), until=30 * S)}
    for found in (relation, emitted_changes):
        answer = found("SELECT id, x FROM s MODEL (x = x) FOR 10 SECONDS", data)
        spans = [(m.start, m.end, m.row["x"]) for m in answer.lives]
        assert sorted(spans) == [(0, 6 * S, 1.0), (6 * S, 16 * S, 2.0)]


def test_pulse_1_without_a_horizon_until_superseded() -> None:
    """pulse #1 with 17.16: without FOR a model holds until it is superseded."""
    data = {"s": table("id x", ("a", 1.0, 0), ("a", 2.0, 600 * S), until=900 * S)}
    answer = relation("SELECT id, x FROM s MODEL (x = x)", data)
    assert answer.spans(x=1.0) == [(0, 600 * S)]
    assert answer.spans(x=2.0) == [(600 * S, None)]


def test_pulse_2_alignment() -> None:
    """pulse #2: 1 + 2t + 3t^2 at r = 0, seen from r = 2, is 17 + 14t + 3t^2. Differences are
    aligned to the later start (17.9)."""
    data = {
        "a": table("id c0 c1 c2", ("a", 1.0, 2.0, 3.0, 0), until=30 * S),
        "b": table("id y", ("a", 0.0, 2 * S), until=30 * S),
    }
    answer = relation(
        f"SELECT a.x - b.y AS d FROM a AS a {CURVE} FOR 10 SECONDS "
        "JOIN b AS b MODEL (y = y) FOR 10 SECONDS ON a.id = b.id",
        data,
    )
    (life,) = answer.lives
    assert (life.start, life.end) == (2 * S, 10 * S)
    assert life.row["d"] == pytest.approx(17.0, abs=1e-9)
    model = life.row["__model"]
    assert model["start"] == 2 * S
    assert model["d"][:3] == pytest.approx([17.0, 14.0, 3.0], abs=1e-9)
    for at in (2, 3, 7.5, 9.999999):
        assert near(answer.value(int(at * S), "d"), 1 + 2 * at + 3 * at * at)


def test_pulse_3_a_model_may_refer_to_itself() -> None:
    """pulse #3: the right side takes the tuple's value (1.2)."""
    data = {"s": table("id x v", ("a", 10.0, 2.0, S), until=30 * S)}
    answer = relation("SELECT x FROM s AS a MODEL (x = x + v*t) FOR 10 SECONDS", data)
    assert answer.spans() == [(S, 11 * S)]
    assert near(answer.value(4 * S, "x"), 16.0)


def test_pulse_3_power_binds_tightest() -> None:
    """16.3.1: `v*t + a*t^2` is v*t + a*(t^2)."""
    data = {"s": table("id v acc", ("a", 2.0, 3.0, 0), until=30 * S)}
    answer = relation("SELECT x FROM s MODEL (x = v*t + acc*t^2) FOR 10 SECONDS", data)
    assert near(answer.value(4 * S, "x"), 2 * 4 + 3 * 16)


@pytest.mark.parametrize("model", ["x = v*t^-1", "x = v*t^0.5", "x = v/t", "x = v/(1 + t)"])
def test_pulse_3_exponents(model: str) -> None:
    """pulse #3 and section 2: exponents -1 and 0.5 and division by a polynomial are rejected at
    planning."""
    runner = loaded({"s": table("id x v", ("a", 1.0, 1.0, 0))})
    with pytest.raises(ThalwegError) as refused:
        runner.query(f"SELECT x FROM s MODEL ({model})")
    assert refused.value.remedy
    assert refused.value.line == 1
    assert "available yet" not in str(refused.value)


def test_pulse_3_count_names_the_limitation() -> None:
    """pulse #3: count(*) over a modeled stream is rejected with a message naming the limitation
    (5.7: frequency-based aggregates); the remedy is to sample in a subquery (17.21)."""
    runner = loaded({"s": table("id x", ("a", 1.0, 0))})
    with pytest.raises(ThalwegError) as refused:
        runner.query("SELECT count(*) AS n FROM s [RANGE 5 SECONDS] MODEL (x = x)")
    assert "count" in str(refused.value).lower()
    assert "sampl" in refused.value.remedy.lower()


def test_pulse_4_a_change_of_an_unmodeled_value_cuts() -> None:
    """pulse #4 with 17.6: a tuple within the bound whose unmodeled column has changed cuts and
    starts anew from that tuple: [0,3) and from 3 on."""
    rows = [("a", "p", 0.0, 1.0, 0), ("a", "q", 3.25, 1.0, 3 * S)]
    data = {"s": table("id g x v", *rows, until=30 * S)}
    sql = "SELECT g, x FROM s MODEL (x = x + v*t) FOR 10 SECONDS ERROR x WITHIN 0.5"
    answer = relation(sql, data)
    assert answer.spans(g="p") == [(0, 3 * S)]
    assert answer.spans(g="q") == [(3 * S, 13 * S)]
    assert near(answer.value(5 * S, "x"), 3.25 + 2)


def test_pulse_4_a_column_that_is_not_read_does_not_cut() -> None:
    """17.6: "... and no unmodeled column that the query reads has changed"."""
    rows = [("a", "p", 0.0, 1.0, 0), ("a", "q", 3.25, 1.0, 3 * S)]
    data = {"s": table("id g x v", *rows, until=30 * S)}
    sql = "SELECT id, x FROM s MODEL (x = x + v*t) FOR 10 SECONDS ERROR x WITHIN 0.5"
    answer = relation(sql, data)
    assert answer.spans() == [(0, 10 * S)]
    assert near(answer.value(5 * S, "x"), 5.0)


def test_pulse_4_without_error_every_tuple_supersedes() -> None:
    """17.6: without ERROR every tuple supersedes."""
    rows = [("a", 0.0, 1.0, 0), ("a", 3.0, 1.0, 3 * S)]
    data = {"s": table("id x v", *rows, until=30 * S)}
    answer = relation("SELECT id, x FROM s MODEL (x = x + v*t) FOR 10 SECONDS", data)
    assert sorted((m.start, m.end) for m in answer.lives) == [(0, 3 * S), (3 * S, 13 * S)]


# --- 5: fitting -------------------------------------------------------------------------------


def walk(points: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """A random walk at every 10 ms."""
    values = np.cumsum(np.random.default_rng(seed).normal(size=points))
    return np.arange(points, dtype=np.int64) * 10 * MS, values


@pytest.mark.parametrize("fit", ["swing", "hull"])
def test_pulse_5_fits_hold_their_bound(fit: str) -> None:
    """pulse #5: of 10^6 points of a random walk every one is within the bound of its segment,
    segments tile the range, and a tenfold bound does not need more of them."""
    stamps, values = walk(1_000_000)
    rows = pa.table(
        {
            "id": pa.array([*["a"] * len(stamps), "~"]),
            "x": pa.array([*values.tolist(), None], pa.float64()),
            "ts": pa.array([*stamps.tolist(), 4 * 3600 * S], pa.timestamp("us", "UTC")),
        }
    )
    counts = []
    for bound in (2.0, 20.0):
        query = play(
            f"SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN {bound} EVERY 1 HOUR) "
            f"WITH (fit = '{fit}')",
            {"s": rows},
            epochs=3,
        )
        counts.append(check_pieces(query.models(), stamps, values, bound))
    assert counts[1] <= counts[0]


def check_pieces(found: object, stamps: np.ndarray, values: np.ndarray, bound: float) -> int:
    """Segments tile from the first tuple on (17.4) and hold the bound at all tuples."""
    start = np.array(found["start"].cast("int64"))  # type: ignore[index]
    order = np.argsort(start)
    start = start[order]
    end = np.array(found["end"].cast("int64").fill_null(1 << 62))[order]  # type: ignore[index]
    cells = start // (3600 * S)
    inside = cells[1:] == cells[:-1]
    assert start[0] == stamps[0]
    assert (end[:-1][inside] == start[1:][inside]).all()
    assert (end[:-1][~inside] == start[1:][~inside]).all()  # no cell is silent
    coefficients = found["x"].to_pylist()  # type: ignore[index]
    lines = np.zeros((len(order), 2))
    for i, place in enumerate(order):
        lines[i, : len(coefficients[place])] = coefficients[place]
    owner = np.searchsorted(start, stamps, side="right") - 1
    offsets = (stamps - start[owner]) / S
    off = np.abs(lines[owner, 0] + lines[owner, 1] * offsets - values)
    assert off.max() <= bound * (1 + 1e-9)
    return len(order)


# --- 6-9: filters and joins -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("x < 4", [(3 * S + 1, 10 * S)]),
        ("x <= 4", [(3 * S, 10 * S)]),
        ("x = 4", [(3 * S, 3 * S + 1)]),
        ("x <> 4", [(0, 3 * S), (3 * S + 1, 10 * S)]),
        ("x > 20", []),
        ("x >= 4", [(0, 3 * S + 1)]),
        ("x > 4", [(0, 3 * S)]),
        ("NOT x < 4", [(0, 3 * S + 1)]),
        ("4 > x", [(3 * S + 1, 10 * S)]),
        ("x BETWEEN 2 AND 4", [(3 * S, 4 * S + 1)]),
        ("abs(x - 4) <= 2", [(2 * S, 4 * S + 1)]),
        ("pow(x - 4, 2) <= 4", [(2 * S, 4 * S + 1)]),
    ],
)
def test_pulse_6_filter(condition: str, expected: list[tuple[int, int]]) -> None:
    """pulse #6: 10 - 2t < 4 on [0,10) => (3,10); <= => [3,10); = => the point 3;
    <> => [0,3) and (3,10); > 20 => nothing. Ticks: 16.3.3, 17.8; [ts, ts+d) of FOR: 17.16."""
    data = curves(("a", 10.0, -2.0, 0.0, 0))
    sql = f"SELECT id, x FROM s {CURVE} FOR 10 SECONDS WHERE {condition}"
    for found in (relation, emitted_changes):
        answer = found(sql, data)
        assert answer.spans() == expected
        for since, _ in expected:
            assert near(answer.value(since, "x"), 10 - 2 * since / S)


def test_pulse_6_rows_carry_the_value_at_their_start() -> None:
    """17.2: a modeled column is its value at the row's start; both signs carry the same row. 17.9:
    a cut changes neither coefficients nor the instant they refer to."""
    data = curves(("a", 10.0, -2.0, 0.0, 0))
    rows = result(f"SELECT id, x FROM s {CURVE} FOR 10 SECONDS WHERE x <= 4", data)
    assert [(r["__ts"], r["__sign"], r["x"]) for r in rows] == [(3 * S, 1, 4.0), (10 * S, -1, 4.0)]
    assert rows[0]["__model"] == rows[1]["__model"]
    assert rows[0]["__model"]["start"] == 0
    assert rows[0]["__model"]["x"][:2] == [10.0, -2.0]


@pytest.mark.parametrize(("condition", "expected"), [("<= 0", [(5 * S, 5 * S + 1)]), ("< 0", [])])
def test_pulse_7_tangency(condition: str, expected: list[tuple[int, int]]) -> None:
    """pulse #7: (t-5)^2 <= 0 => the point 5; < 0 => nothing."""
    data = curves(("a", 25.0, -10.0, 1.0, 0))
    answer = relation(f"SELECT x FROM s {CURVE} FOR 10 SECONDS WHERE x {condition}", data)
    assert answer.spans() == expected


TWO = (
    "SELECT a.id, a.x, b.y FROM a AS a MODEL (x = x + v*t) FOR 10 SECONDS "
    "JOIN b AS b MODEL (y = v*t + acc*t^2) FOR 10 SECONDS ON a.x {} b.y"
)


def two_movers() -> dict[str, object]:
    return {
        "a": table("id x v", ("a", 10.0, 2.0, 0), until=30 * S),
        "b": table("id v acc", ("b", 1.0, 1.0, 0), until=30 * S),
    }


def test_pulse_8_the_join_of_figure_2_1() -> None:
    """pulse #8: A.x = 10, A.v = 2, B.v = 1, B.a = 1 on [0,10) => (3.7015621187, 10): the first tick
    at which 10 + 2t < t + t^2. Equality => that point only, at the tick nearest (17.8)."""
    root = (1 + sqrt(41)) / 2
    assert abs(root - 3.7015621187) < 1e-10
    assert relation(TWO.format("<"), two_movers()).spans() == [(3_701_563, 10 * S)]
    assert relation(TWO.format("="), two_movers()).spans() == [(3_701_562, 3_701_563)]


def test_pulse_8_not_without_the_power_0() -> None:
    """X1: the row is 10 + t - t^2 < 0. The vector of times printed without the power 0 either
    loses the constant (t - t^2 < 0) or has all powers one too high (t*(10 + t - t^2) = 0)."""
    row = np.array([10.0, 1.0, -1.0])
    lost = np.roots([*row[:0:-1], 0.0])
    high = np.roots([*row[::-1], 0.0])
    less = relation(TWO.format("<"), two_movers()).spans()[0][0] / S
    equal = [span[0] / S for span in relation(TWO.format("="), two_movers()).spans()]
    assert all(abs(less - r) > 1e-3 for r in lost)
    assert equal == pytest.approx([3.7015621187], abs=2e-6)
    assert sorted(r for r in high if r >= 0) != pytest.approx(equal, abs=2e-6)


def test_pulse_9_only_where_both_sides_are_valid() -> None:
    """pulse #9: sides on [0,4) and [2,9) => results only inside [2,4)."""
    data = {
        "a": table("id x", ("a", 1.0, 0), until=30 * S),
        "b": table("id y", ("b", 2.0, 2 * S), until=30 * S),
    }
    sql = (
        "SELECT a.x, b.y FROM a AS a MODEL (x = x) FOR 4 SECONDS "
        "JOIN b AS b MODEL (y = y) FOR 7 SECONDS ON a.x < b.y"
    )
    assert relation(sql, data).spans() == [(2 * S, 4 * S)]


@pytest.mark.parametrize("reference", [0, 0.25, 1.5, 2.999])
def test_pulse_9_the_instant_a_model_refers_to_does_not_matter(reference: float) -> None:
    """pulse #9: a different r gives the same absolute result. x = t crosses y = 7 - t at 3.5 from
    wherever x is written down."""
    r = int(reference * S)
    data = {
        "a": table("id x v", ("a", r / S, 1.0, r), until=30 * S),
        "b": table("id y v", ("b", 7.0, -1.0, 0), until=30 * S),
    }
    sql = (
        "SELECT a.x, b.y FROM a AS a MODEL (x = x + v*t) "
        "JOIN b AS b MODEL (y = y + v*t) FOR 10 SECONDS ON a.x > b.y"
    )
    ((since, until),) = relation(sql, data).spans()
    assert abs(since - 3_500_001) <= 1
    assert until == 10 * S


def test_pulse_9_state_is_kept_by_its_end() -> None:
    """X2: kept by start time (t_lo > t_y) the side [0,10) would be gone when the other arrives at
    5; kept by end time it is there."""
    wrong = [lo for lo in (0,) if lo > 5]
    data = {
        "a": table("id x", ("a", 1.0, 0), ("other", 9.0, 4 * S), until=30 * S),
        "b": table("id y", ("b", 2.0, 5 * S), until=30 * S),
    }
    sql = (
        "SELECT a.id, a.x, b.y FROM a AS a MODEL (x = x) FOR 10 SECONDS "
        "JOIN b AS b MODEL (y = y) FOR 10 SECONDS ON a.x < b.y"
    )
    for epochs in (1, 3):
        spans = relation(sql, data, epochs=epochs).spans(id="a")
        assert spans == [(5 * S, 10 * S)]
        assert len(spans) != len(wrong)


# --- 10: systems ------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_pulse_10_two_rows_against_brute_force(word: str) -> None:
    """pulse #10: AND and OR of two comparisons match their evaluation at 10^5 random times away
    from roots (random systems of degree up to 4)."""
    rng, times = np.random.default_rng(10), 2_000
    names = [f"{c}{i}" for c in "pq" for i in range(5)]
    keys = [f"k{i:02}" for i in range(50)]
    coefficients = rng.normal(size=(50, 10)) * ([4, 4, 2, 0.5, 0.05] * 2)
    coefficients[rng.random((50, 10)) < 0.2] = 0.0
    rows = [(k, *c.tolist(), 0) for k, c in zip(keys, coefficients, strict=True)]
    data = {"s": table(" ".join(["id", *names]), *rows, until=30 * S)}
    x, y = ("+".join(f"{c}{i}*t^{i}" for i in range(5)) for c in "pq")
    answer = relation(
        f"SELECT id FROM s MODEL (x = {x}, y = {y}) FOR 10 SECONDS WHERE x < 1 {word} y >= -1", data
    )
    for key, c in zip(keys, coefficients, strict=True):
        at = rng.integers(0, 10 * S, times)
        first, second = (np.polynomial.polynomial.polyval(at / S, c[i : i + 5]) for i in (0, 5))
        far = (np.abs(first - 1) > 1e-3) & (np.abs(second + 1) > 1e-3)
        true = ((first < 1) & (second >= -1)) if word == "AND" else ((first < 1) | (second >= -1))
        held = np.zeros(times, bool)
        for since, until in answer.spans(id=key):
            held |= (at >= since) & (at < (until or 1 << 62))
        assert (held == true)[far].all(), key


# --- 11, 12: min and max ----------------------------------------------------------------------


def check_curve(answer: Relation, column: str, pieces: list[tuple[float, float, object]]) -> None:
    """The column over time: (since, until, function of seconds), at both ends and inside."""
    for since, until, function in pieces:
        for at in np.linspace(since * S, until * S - 1, 41).round().astype(int).tolist():
            got, wanted = answer.value(at, column), function(at / S)  # type: ignore[operator]
            assert near(got, wanted) or near_tick(answer, at, column, wanted), (at, got, wanted)


def near_tick(answer: Relation, at: int, column: str, wanted: float) -> bool:
    """The engine is within one tick (what must hold: "engine within one tick")."""
    beside = [answer.value(at + d, column) for d in (-1, 1)]
    return any(b is not None and abs(b - wanted) < 5e-5 for b in beside)


def test_pulse_11_max_across_keys() -> None:
    """pulse #11: max of t and 4 - t (two keys) on [0,4) => 4 - t on [0,2), t on [2,4)."""
    data = curves(("a", 0.0, 1.0, 0.0, 0), ("b", 4.0, -1.0, 0.0, 0))
    answer = relation(f"SELECT max(x) AS m FROM s {CURVE} FOR 4 SECONDS", data)
    check_curve(answer, "m", [(0, 2, lambda t: 4 - t), (2, 4, lambda t: t)])
    assert answer.value(4 * S, "m") is None


def test_pulse_11_superseded() -> None:
    """pulse #11: superseding the second key from 1 on with the constant 0 => 4 - t on [0,1), t on
    [1,4): the envelope is rebuilt from the other living segments (5.4)."""
    data = curves(("a", 0.0, 1.0, 0.0, 0), ("b", 4.0, -1.0, 0.0, 0), ("b", 0.0, 0.0, 0.0, 1))
    answer = relation(f"SELECT max(x) AS m FROM s {CURVE} FOR 4 SECONDS", data)
    check_curve(answer, "m", [(0, 1, lambda t: 4 - t), (1, 4, lambda t: t), (4, 5, lambda t: 0)])
    least = relation(f"SELECT min(x) AS m FROM s {CURVE} FOR 4 SECONDS", data)
    check_curve(least, "m", [(0, 1, lambda t: t), (1, 4, lambda t: 0)])


def test_pulse_12_the_maximum_in_a_window() -> None:
    """pulse #12: 25 - (t-5)^2 on [0,10), w = 3 => e(t) on [3,5), 25 on [5,8), e(t-3) on [8,10);
    before 3 over what is covered (17.5): e(t)."""
    e = lambda t: 25 - (t - 5) ** 2  # noqa: E731
    data = curves(("a", 0.0, 10.0, -1.0, 0))
    answer = relation(f"SELECT max(x) AS m FROM s [RANGE 3 SECONDS] {CURVE} FOR 10 SECONDS", data)
    pieces = [(3, 5, e), (5, 8, lambda t: 25.0), (8, 10, lambda t: e(t - 3)), (0, 3, e)]
    check_curve(answer, "m", pieces)


def test_pulse_12_the_minimum_in_a_window_of_an_envelope() -> None:
    """pulse #12: window min (w = 1) of the envelope min(t, 4-t) => t-1 on [1,2.5), 4-t on
    [2.5,4)."""
    data = curves(("a", 0.0, 1.0, 0.0, 0), ("b", 4.0, -1.0, 0.0, 0))
    answer = relation(f"SELECT min(x) AS m FROM s [RANGE 1 SECOND] {CURVE} FOR 4 SECONDS", data)
    check_curve(answer, "m", [(1, 2.5, lambda t: t - 1), (2.5, 4, lambda t: 4 - t)])


@pytest.mark.parametrize("function", ["max", "min"])
def test_pulse_12_a_window_that_slides(function: str) -> None:
    """`[SIZE w ADVANCE a]` equals `[RANGE w SLIDE a]` (16.3.1): the answer at multiples of a."""
    data = curves(("a", 0.0, 10.0, -1.0, 0))
    sql = f"SELECT RSTREAM {function}(x) AS m FROM s {{}} {CURVE} FOR 10 SECONDS"
    rows = result(sql.format("[SIZE 3 SECONDS ADVANCE 1 SECOND]"), data)
    same = result(sql.format("[RANGE 3 SECONDS SLIDE 1 SECOND]"), data)
    assert rows == same
    got = {r["__ts"]: r["m"] for r in rows if r["m"] is not None}
    e = lambda t: 10 * t - t * t  # noqa: E731
    for b in range(3, 11):
        low, high = b - 3, b
        top = 25.0 if low <= 5 <= high else max(e(low), e(high))
        wanted = top if function == "max" else min(e(low), e(high))
        assert got[b * S] == pytest.approx(wanted, abs=5e-5), b


# --- 13, 14: integrals ------------------------------------------------------------------------


def test_pulse_13_sum_and_mean() -> None:
    """pulse #13: x = t on [0,10), w = 2 => sum 2t - 2 on [2,10), avg t - 1. `sum` is the integral
    under a window, `integral` its honest name (16.3.7, 17.3)."""
    data = curves(("a", 0.0, 1.0, 0.0, 0))
    for name in ("sum", "integral"):
        sql = f"SELECT {name}(x) AS m FROM s [RANGE 2 SECONDS] {CURVE} FOR 10 SECONDS"
        answer = relation(sql, data)
        check_curve(answer, "m", [(2, 10, lambda t: 2 * t - 2)])
        # X3: the printed right side is the antiderivative alone.
        assert not near(answer.value(4 * S, "m"), 4 * 4 / 2)
    mean = relation(f"SELECT avg(x) AS m FROM s [RANGE 2 SECONDS] {CURVE} FOR 10 SECONDS", data)
    check_curve(mean, "m", [(2, 10, lambda t: t - 1)])


def test_pulse_13_partial_windows() -> None:
    """17.5: avg and integral are over what is covered: on [0,2) t^2/2 and t/2; from 10 on
    (100 - (t-2)^2)/2, and nothing from 12 on."""
    data = curves(("a", 0.0, 1.0, 0.0, 0))
    sql = f"SELECT {{}} AS m FROM s [RANGE 2 SECONDS] {CURVE} FOR 10 SECONDS"
    answer = relation(sql.format("integral(x)"), data)
    check_curve(answer, "m", [(0.5, 2, lambda t: t * t / 2)])
    check_curve(answer, "m", [(10, 11.9, lambda t: (100 - (t - 2) ** 2) / 2)])
    assert answer.value(12 * S + 2, "m") is None
    covered = relation(sql.format("coverage(x)"), data)
    check_curve(covered, "m", [(0.5, 2, lambda t: t / 2), (2, 10, lambda t: 1.0)])
    check_curve(covered, "m", [(10, 11.9, lambda t: (12 - t) / 2)])
    rows = result(
        f"SELECT RSTREAM avg(x) AS m FROM s [SIZE 2 SECONDS ADVANCE 1 SECOND] {CURVE} "
        "FOR 10 SECONDS",
        data,
    )
    got = {r["__ts"]: r["m"] for r in rows if r["m"] is not None}
    assert near(got[S], 0.5)
    assert near(got[11 * S], 9.5)
    assert 12 * S not in got


def fourteen() -> dict[str, object]:
    """1 on [0,4), t - 3 on [4,6), 5 on [6,12)."""
    return curves(("a", 1.0, 0.0, 0.0, 0), ("a", 1.0, 1.0, 0.0, 4), ("a", 5.0, 0.0, 0.0, 6))


def test_pulse_14_a_sum_over_several_segments() -> None:
    """pulse #14: w = 5 => 4t - 17 on [6,9), -57.5 + 13t - 0.5t^2 on [9,11)."""
    sql = f"SELECT integral(x) AS m FROM s [RANGE 5 SECONDS] {CURVE} FOR 6 SECONDS"
    answer = relation(sql, fourteen())
    pieces = [(6, 9, lambda t: 4 * t - 17), (9, 11, lambda t: -57.5 + 13 * t - t * t / 2)]
    check_curve(answer, "m", pieces)


@pytest.mark.parametrize("at", [6.5, 8.0, 9.5, 10.5])
def test_pulse_14_not_with_the_printed_limit(at: float) -> None:
    """X4: the upper limit of the tail's integral printed as its start (or as t) gives another
    value than its end."""
    sql = f"SELECT integral(x) AS m FROM s [RANGE 5 SECONDS] {CURVE} FOR 6 SECONDS"
    got = relation(sql, fourteen()).value(int(at * S), "m")
    tail, low, high = (lambda t: t, 0.0, 4.0) if at < 9 else (lambda t: (t - 3) ** 2 / 2, 4.0, 6.0)
    right = tail(high) - tail(at - 5)
    whole = 4 * at - 17 if at < 9 else -57.5 + 13 * at - at * at / 2
    assert near(got, whole)
    for limit in (low, at):
        wrong = whole - right + (tail(limit) - tail(at - 5))
        assert not near(got, wrong)


def test_pulse_14_against_quadrature() -> None:
    """pulse #14: equal to quadrature at random t for random inputs (exact: Simpson's rule per piece
    of degree two)."""
    rng = Random(14)
    starts = [0, *sorted(rng.sample(range(1, 19), 6))]
    pieces = [tuple(round(rng.uniform(-3, 3), 2) for _ in range(3)) for _ in starts]
    rows = [("a", *c, at) for c, at in zip(pieces, starts, strict=True)]
    sql = f"SELECT integral(x) AS m FROM s [RANGE 5 SECONDS] {CURVE}"
    answer = relation(sql, curves(*rows))
    for _ in range(60):
        at = rng.randrange(5 * S, 25 * S)
        wanted = quadrature(starts, pieces, Fraction(at, S) - 5, Fraction(at, S))
        assert answer.value(at, "m") == pytest.approx(float(wanted), rel=1e-9, abs=1e-9)


def quadrature(
    starts: list[int], pieces: list[tuple[float, ...]], low: Fraction, high: Fraction
) -> Fraction:
    total = Fraction(0)
    for i, c in enumerate(pieces):
        a = max(low, Fraction(starts[i]))
        b = min(high, Fraction(starts[i + 1]) if i + 1 < len(starts) else high)
        if a < b:
            f = [sum(Fraction(k) * (u - starts[i]) ** n for n, k in enumerate(c))
                 for u in (a, (a + b) / 2, b)]  # fmt: skip
            total += (b - a) * (f[0] + 4 * f[1] + f[2]) / 6
    return total


# --- 15, 16: groups and samples ---------------------------------------------------------------


@pytest.mark.parametrize("aggregate", ["sum", "max", "min", "avg"])
def test_pulse_15_groups_are_separate_queries(aggregate: str) -> None:
    """pulse #15: GROUP BY gives the same result as separate queries per group."""
    rng, rows = Random(15), []
    for i in range(20):
        c = [round(rng.uniform(-3, 3), 1) for _ in range(2)]
        rows.append((f"k{i % 5}", "pq"[i % 5 % 2], *c, i * 700 * MS))
    data = {"s": table("id g c0 c1", *rows, until=30 * S)}
    select = f"{aggregate}(x) AS m FROM s MODEL (x = c0 + c1*t) FOR 5 SECONDS"
    grouped = relation(f"SELECT g, {select} GROUP BY g", data)
    for g in "pq":
        alone = relation(f"SELECT {select} WHERE g = '{g}'", data)
        for _ in range(100):
            at = rng.randrange(0, 19 * S)
            both = [r["m"] for r in grouped.at(at) if r["g"] == g]
            one = [r["m"] for r in alone.at(at) if r["m"] is not None]
            assert both == pytest.approx(one, rel=1e-9, abs=1e-9), (g, at)


def test_pulse_16_samples() -> None:
    """pulse #16: period 2 on [3,9) => 4, 6, 8; splitting at 5 gives the same tuples (NULL ends the
    segment at 9: 17.19; the grid is that of multiples since 1970: 17.17)."""
    end = ("a", None, None, None, 9)
    whole = curves(("a", 3.0, 1.0, 0.0, 3), end)
    split = curves(("a", 3.0, 1.0, 0.0, 3), ("a", 5.0, 1.0, 0.0, 5), end)
    for data in (whole, split):
        rows = result(f"SELECT id, x FROM s {CURVE} SAMPLE EVERY 2 SECONDS", data)
        assert stamped(rows, "id", "x") == [(n * S, "a", float(n)) for n in (4, 6, 8)]


def test_pulse_16_an_aggregate_is_emitted_at_multiples_of_its_slide() -> None:
    """pulse #16: an aggregate with slide 2 emits at multiples of 2 (window closings: 5.8)."""
    data = curves(("a", 0.0, 1.0, 0.0, 1), ("a", None, None, None, 9))
    rows = result(
        f"SELECT RSTREAM avg(x) AS m FROM s [SIZE 4 SECONDS ADVANCE 2 SECONDS] {CURVE}", data
    )
    got = {r["__ts"]: r["m"] for r in rows if r["m"] is not None}
    # x = t - 1 on [1,9); the means over what is covered of [b-4, b).
    means = {2: 0.5, 4: 1.5, 6: 3.0, 8: 5.0, 10: 6.5, 12: 7.5}
    assert sorted(got) == [b * S for b in means]
    for b, wanted in means.items():
        assert near(got[b * S], wanted), b


# --- 21, 22: precision ------------------------------------------------------------------------

WITHIN = "SELECT id, x FROM s MODEL (x = x + v*t) FOR 10 SECONDS ERROR x WITHIN 0.5"


@pytest.mark.parametrize(("off", "absorbed"), [(0.4, 1), (-0.5, 1), (0.5, 1), (0.51, 0), (-3, 0)])
def test_pulse_21_a_tuple_within_its_bound_changes_nothing(off: float, absorbed: int) -> None:
    """pulse #21: a tuple within bounds triggers no work: no row, no segment; one outside gives
    exactly one new segment, and the violation is counted."""
    rows = [("a", 0.0, 1.0, 0), ("a", 3.0 + off, 1.0, 3 * S)]
    query = play(WITHIN, {"s": table("id x v", *rows, until=30 * S)})
    found = models(query)
    assert len(found) == 2 - absorbed
    changes = Relation(rows_of(query.results())).changes()
    assert changes == ([0, 10 * S] if absorbed else [0, 3 * S, 13 * S])
    assert absorbed in counters(query.stats(), "absorbed")
    assert 1 - absorbed in counters(query.stats(), "violations")


def test_pulse_21_a_bound_of_the_query() -> None:
    """16.3.5: bounds belong to the query: another one's never change its rows."""
    rows = [("a", 0.0, 1.0, 0), ("a", 3.4, 1.0, 3 * S), ("a", 4.0, 1.0, 4 * S)]
    data = {"s": table("id x v", *rows, until=30 * S)}
    alone = play(WITHIN, data).results()
    tight = WITHIN.replace("0.5", "0.001")
    beside = play(WITHIN, data, beside=[tight, WITHIN.split(" ERROR")[0]]).results()
    assert alone.equals(beside)


def uniform(points: int = 400, step: int = 50 * MS) -> list[tuple[object, ...]]:
    values = np.round(np.cumsum(np.random.default_rng(22).normal(size=points)), 3).tolist()
    return [("a", v, i * step) for i, v in enumerate(values)]


@pytest.mark.parametrize("aggregate", ["avg", "min", "max"])
def test_pulse_22_windows_against_the_discrete_query(aggregate: str) -> None:
    """pulse #22: with uniformly spaced tuples, at all window closings, the difference from the
    discrete query is within the bound. Values that are held between tuples (`x = x`) and windows
    of a whole number of steps have no discretisation term."""
    bound, rows = 0.75, uniform()
    data = {"s": table("id x", *rows, until=25 * S)}
    window = "[RANGE 2 SECONDS SLIDE 1 SECOND]"
    sql = f"SELECT RSTREAM id, {aggregate}(x) AS m FROM s {window} {{}} GROUP BY id {{}}"
    modeled = result(sql.format("MODEL (x = x)", f"ERROR m WITHIN {bound}"), data)
    discrete = result(sql.format("", ""), data)
    got = {r["__ts"]: r["m"] for r in modeled if r["id"] == "a"}
    wanted = {r["__ts"]: r["m"] for r in discrete if r["id"] == "a"}
    both = [b for b in wanted if b in got and b <= 20 * S]
    assert len(both) >= 19
    assert max(abs(got[b] - wanted[b]) for b in both) <= bound * (1 + 1e-9)


def test_pulse_22_sums_after_division_by_the_rate() -> None:
    """pulse #22, 5.5: the integral equals a sum of tuples times the step. X6: over w = 2 s a bound
    of 1 on the integral allows 0.5 on x, not 1."""
    rows = uniform()
    data = {"s": table("id x", *rows, until=25 * S)}
    window = "[RANGE 2 SECONDS SLIDE 1 SECOND]"
    sql = f"SELECT RSTREAM id, {{}} AS m FROM s {window} {{}} GROUP BY id {{}}"
    modeled = result(sql.format("integral(x)", "MODEL (x = x)", "ERROR m WITHIN 1"), data)
    discrete = result(sql.format("sum(x)", "", ""), data)
    got = {r["__ts"]: r["m"] for r in modeled if r["id"] == "a"}
    wanted = {r["__ts"]: r["m"] * 0.05 for r in discrete if r["id"] == "a" and r["m"] is not None}
    both = [b for b in wanted if b in got and b <= 20 * S]
    assert len(both) >= 19
    assert max(abs(got[b] - wanted[b]) for b in both) <= 1 + 1e-9


def test_pulse_22_a_linear_map() -> None:
    """pulse #22 and 7.4: the bound of a linear map is shared by |a_i|: 2x within 1 is x within
    0.5."""
    rows = uniform(200)
    data = {"s": table("id x", *rows, until=25 * S)}
    sql = "SELECT id, 2*x + 1 AS m FROM s MODEL (x = x) ERROR m WITHIN 1"
    answer = relation(sql, data)
    for _, value, at in rows:
        got = [r["m"] for r in answer.at(at) if r["id"] == "a"]  # type: ignore[arg-type]
        assert len(got) == 1
        assert abs(got[0] - (2 * value + 1)) <= 1 + 1e-9  # type: ignore[operator]


# --- X5, X6: splitting bounds -----------------------------------------------------------------


def test_bounds_are_not_divided_by_the_sum_of_models() -> None:
    """X5: the printed share d(x)/dt / (x + y) exceeds the whole bound where x + y is near 0: at 0.1
    with x = 10 + 3t, y = -10 + t it would allow x an error of 7.5 for a bound of 1 on x + y."""
    printed = 3 / ((10 + 0.3) + (-10 + 0.1)) * 1
    off = 5.0
    assert off < printed
    data = {
        "a": table("id x v", ("a", 10.0, 3.0, 0), ("a", 10.3 + off, 3.0, 100 * MS), until=30 * S),
        "b": table("id y v", ("a", -10.0, 1.0, 0), until=30 * S),
    }
    answer = relation(
        "SELECT a.id, a.x + b.y AS m FROM a AS a MODEL (x = x + v*t) FOR 10 SECONDS "
        "JOIN b AS b MODEL (y = y + v*t) FOR 10 SECONDS ON a.id = b.id ERROR m WITHIN 1",
        data,
    )
    got = [r["m"] for r in answer.at(100 * MS)]
    assert len(got) == 1
    assert abs(got[0] - (10.3 + off - 9.9)) <= 1


@pytest.mark.parametrize(("off", "segments"), [(0.05, 1), (0.5, 2)])
def test_a_sum_amplifies_by_its_window(off: float, segments: int) -> None:
    """X6: over 10 s a bound of 1 on the integral allows 0.1 on x. Undivided, 0.5 would be
    absorbed, and the integral be wrong by up to 5."""
    rows = [("a", 1.0, 0), ("a", 1.0 + off, S)]
    query = play(
        "SELECT RSTREAM id, integral(x) AS m FROM s [SIZE 10 SECONDS ADVANCE 1 SECOND] "
        "MODEL (x = x) GROUP BY id ERROR m WITHIN 1",
        {"s": table("id x", *rows, until=30 * S)},
    )
    assert len(models(query)) == segments
    rows_ = rows_of(query.results())
    at_11 = [r["m"] for r in rows_ if r["__ts"] == 11 * S and r["id"] == "a"]
    assert len(at_11) == 1
    assert abs(at_11[0] - 10 * (1.0 + off)) <= 1 + 1e-9
