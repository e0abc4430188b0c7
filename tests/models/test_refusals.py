"""Bad input and what is refused, from the issue's list and `pulse.md` 17.10, 17.12, 17.15, 17.17,
17.18, 17.19 and 17.21. Each is a defined result, or a `ThalwegError` with a place and a remedy."""

from __future__ import annotations

import contextlib
import math

import pyarrow as pa
import pytest
from model_runs import (
    MS,
    Relation,
    S,
    counters,
    loaded,
    models,
    play,
    relation,
    result,
    rows_of,
    stamped,
    table,
)

from thalweg.errors import NotAvailableYet, ThalwegError

ROW = ("a", "p", 1.0, 2.0, 3.0, 0)
STREAMS = {
    "s": table("id g x y v", ROW, until=30 * S),
    "r": table("id g x y v", ROW, until=30 * S),
}


def refusal(sql: str, key: object = ("id",)) -> ThalwegError:
    """The refusal of a query: it has a place, a remedy, and is no "not yet"."""
    runner = loaded(STREAMS, key=key)  # type: ignore[arg-type]
    with pytest.raises(ThalwegError) as refused:
        runner.query(sql)
    error = refused.value
    assert not isinstance(error, NotAvailableYet), str(error)
    assert error.line is not None, str(error)
    assert error.column is not None, str(error)
    assert error.remedy.strip(), str(error)
    return error


LINE = "MODEL (x = x + v*t)"
PLANE = "MODEL (x = x + v*t, y = y + v*t)"


@pytest.mark.parametrize(
    "model",
    [
        "MODEL (x = x + v*t^9)",  # 17.12: polynomials to degree 8
        "MODEL (x = x + v*t^-1)",  # pulse #3
        "MODEL (x = x + v*t^0.5)",
        "MODEL (x = x + v*t^1.5)",
        "MODEL (x = x/t)",  # section 2: division by a polynomial
        "MODEL (x = sin(t))",  # 17.14: t is limited to + - * and ^k
        "MODEL (x = abs(t - 5))",
        "MODEL (x = x*t^v)",  # an exponent is a number
        "MODEL (x = missing*t)",
        "MODEL (x = r.v*t)",  # 17.14: MODEL sees its own source only
        "MODEL (x = g)",  # a coefficient is a number
        "MODEL (x = x, x = v)",  # one attribute twice
        "MODEL (FIT x DEGREE 6 WITHIN 1)",  # 17.12: DEGREE 0-5
        "MODEL (FIT x DEGREE -1 WITHIN 1)",
        "MODEL (FIT x DEGREE 1 WITHIN -1)",  # a bound below 0
        "MODEL (FIT missing DEGREE 1 WITHIN 1)",
        "MODEL (FIT g DEGREE 1 WITHIN 1)",
        "MODEL (FIT x DEGREE 1 WITHIN 1, y = y)",  # 17.12
        "MODEL (FIT x DEGREE 1 WITHIN 1 EVERY 1 SECOND, FIT y DEGREE 1 WITHIN 1 EVERY 2 SECONDS)",
        "MODEL (FIT x DEGREE 1 WITHIN 1 EVERY 0 SECONDS)",
    ],
)
def test_models(model: str) -> None:
    refusal(f"SELECT id, x FROM s {model}")


def test_an_unknown_fitter() -> None:
    """17.12: hull, swing, least squares."""
    refusal("SELECT x FROM s MODEL (FIT x DEGREE 1 WITHIN 1) WITH (fit = 'spline')")


@pytest.mark.parametrize("bound", ["-1", "-0.5%"])
def test_bounds_below_zero(bound: str) -> None:
    refusal(f"SELECT id, x FROM s {LINE} ERROR x WITHIN {bound}")


def test_a_source_without_key() -> None:
    """17.15: refused, remedy `KEY (...)`."""
    error = refusal(f"SELECT id, x FROM s {LINE}", key=())
    assert "KEY" in error.remedy


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT a.id, r.g FROM s AS a {LINE} LEFT JOIN r [NOW] r ON a.id = r.id",
        f"SELECT a.id, b.x FROM s AS a {LINE} FULL JOIN r AS b {LINE} ON a.x < b.x",
        f"SELECT DISTINCT x FROM s {LINE}",
        f"SELECT x FROM s {LINE} UNION SELECT x FROM r {LINE}",
        f"SELECT x FROM s {LINE} EXCEPT SELECT x FROM r {LINE}",
        f"SELECT x FROM s {LINE} INTERSECT SELECT x FROM r {LINE}",
        f"SELECT count(x) AS n FROM s {LINE}",
        f"SELECT count(*) AS n FROM s [RANGE 5 SECONDS] {LINE}",
        f"SELECT median(x) AS n FROM s {LINE}",
        f"SELECT stddev(x) AS n FROM s [RANGE 5 SECONDS] {LINE}",
        f"SELECT x, sum(v) AS n FROM s {LINE} GROUP BY x",
    ],
)
def test_what_models_do_not_do(sql: str) -> None:
    """17.21: all else is refused with the remedy: sample in a subquery."""
    assert "sampl" in refusal(sql).remedy.lower()


@pytest.mark.parametrize(
    "expression",
    ["sin(x)", "x / y", "1 / x", "exp(x)", "sqrt(x*x*x)", "pow(x, 0.5)", "pow(x, y)", "x % 2"],
)
def test_functions_of_models(expression: str) -> None:
    """17.21: + - *, / by unmodeled, pow(., k), abs, sqrt of a quadratic; all else is refused.
    17.17: the list at sample instants may use any function."""
    error = refusal(f"SELECT id, {expression} AS m FROM s {PLANE}")
    assert "sampl" in error.remedy.lower()
    rows = result(f"SELECT id, {expression} AS m FROM s {PLANE} SAMPLE EVERY 10 SECONDS", STREAMS)
    assert [r["__ts"] for r in rows if r["__ts"] < 30 * S] == [0, 10 * S, 20 * S]


def test_conditions_on_functions_of_models() -> None:
    refusal(f"SELECT id FROM s {LINE} WHERE sin(x) > 0")


def test_high_degrees_by_products() -> None:
    """17.12: polynomials to degree 8; above refused."""
    refusal("SELECT id, pow(x, 5) AS m FROM s MODEL (x = x + v*t^2)")
    refusal("SELECT id FROM s MODEL (x = x + v*t^3) WHERE x*x*x > 1")


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        (f"SELECT ISTREAM x FROM s {LINE} SAMPLE EVERY 1 SECOND", "SAMPLE"),
        (f"SELECT DSTREAM x FROM s {LINE} SAMPLE EVERY 1 SECOND", "SAMPLE"),
        (f"SELECT x FROM s {LINE} SAMPLE RATE 7", ""),  # 1/7 s is no whole number of µs
        (f"SELECT x FROM s {LINE} SAMPLE RATE 0", ""),
        (f"SELECT x FROM s {LINE} SAMPLE RATE -1", ""),
        (f"SELECT x FROM s {LINE} SAMPLE EVERY 0 SECONDS", ""),
        (f"SELECT RSTREAM x FROM s {LINE}", "SAMPLE"),
    ],
)
def test_sampling(sql: str, word: str) -> None:
    """17.17."""
    assert word in str(refusal(sql))


@pytest.mark.parametrize(
    "sql",
    [
        # a product of modeled attributes
        f"SELECT id, x*y AS m FROM s {PLANE} ERROR m WITHIN 1",
        # sum and integral over several keys
        "SELECT integral(x) AS m FROM s [RANGE 5 SECONDS] MODEL (x = x) ERROR m WITHIN 1",
        "SELECT sum(x) AS m FROM s MODEL (x = x) ERROR m WITHIN 1",
        "SELECT g, sum(x) AS m FROM s MODEL (x = x) GROUP BY g ERROR m WITHIN 1",
    ],
)
def test_bounds_that_do_not_exist(sql: str) -> None:
    """17.10: refused: state it on the sources, or group by key."""
    remedy = refusal(sql).remedy.lower()
    assert "source" in remedy or "group" in remedy or "key" in remedy


@pytest.mark.parametrize("attribute", ["z", "missing"])
def test_error_on_what_cannot_be_validated(attribute: str) -> None:
    """17.6: ERROR on a left side that is no column of the stream is refused; so is an unknown
    one."""
    refusal(f"SELECT id, z FROM s MODEL (z = x + v*t) ERROR {attribute} WITHIN 1")


def test_relative_bounds_of_results_that_may_be_zero() -> None:
    """17.18: on results refused where the range may include 0."""
    refusal(
        f"SELECT a.id, a.x - b.x AS m FROM s AS a {LINE} JOIN r AS b {LINE} ON a.id = b.id "
        "ERROR m WITHIN 1%"
    )


# --- bad input: defined results ---------------------------------------------------------------


def test_a_relative_bound_is_of_each_tuple() -> None:
    """17.18: `e%` is of each tuple's |v|; a tuple with v = 0 is met exactly."""
    rows = [("a", 100.0, 0), ("a", 100.9, S), ("a", 98.0, 2 * S), ("a", 0.0, 3 * S)]
    rows += [("a", 0.0, 4 * S), ("a", 0.001, 5 * S)]
    data = {"s": table("id x", *rows, until=30 * S)}
    answer = relation("SELECT id, x FROM s MODEL (x = x) ERROR x WITHIN 1%", data)
    starts = [m.start for m in sorted(answer.lives, key=lambda m: m.start)]
    assert starts == [0, 2 * S, 3 * S, 5 * S]


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -math.inf])
def test_values_that_are_none_end_a_segment(bad: float | None) -> None:
    """17.19: NULL, NaN or infinity in any modeled attribute or coefficient ends the whole segment
    at that instant."""
    for column in (0, 1):
        cells: list[float | None] = [5.0, 1.0]
        cells[column] = bad
        rows = [("a", 1.0, 1.0, 0), ("a", *cells, 3 * S), ("a", 7.0, 0.0, 6 * S)]
        data = {"s": table("id x v", *rows, until=30 * S)}
        answer = relation(f"SELECT id, x FROM s {LINE} FOR 10 SECONDS", data)
        assert sorted((m.start, m.end) for m in answer.lives) == [(0, 3 * S), (6 * S, 16 * S)]


@pytest.mark.parametrize("bad", [None, math.nan, math.inf])
def test_one_bad_attribute_ends_all(bad: float | None) -> None:
    """17.19: "the whole segment"."""
    rows = [("a", 1.0, 1.0, 0), ("a", 2.0, bad, 3 * S)]
    data = {"s": table("id x y", *rows, until=30 * S)}
    answer = relation("SELECT id, x FROM s MODEL (x = x, y = y)", data)
    assert answer.spans() == [(0, 3 * S)]


@pytest.mark.parametrize("bad", [None, math.nan, math.inf])
def test_a_bad_value_ends_a_piece_of_a_fit(bad: float | None) -> None:
    rows = [("a", 1.0, 0), ("a", 1.0, S), ("a", bad, 2 * S), ("a", 1.0, 4 * S), ("a", 1.0, 5 * S)]
    data = {"s": table("id x", *rows, until=90 * S)}
    answer = relation("SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5)", data)
    assert answer.spans() == [(0, 2 * S), (4 * S, 60 * S)]


def test_identical_polynomials() -> None:
    """= holds all along, <> and < never (4.2: `[l,u)` if p is 0 identically)."""
    rows = [("a", 1.5, 0.25, 0), ("b", 1.5, 0.25, 0)]
    data = {"s": table("id x v", *rows, until=30 * S)}
    sql = (
        f"SELECT a.id FROM s AS a {LINE} FOR 10 SECONDS JOIN s AS b {LINE} FOR 10 SECONDS "
        "ON a.id < b.id AND a.x {} b.x"
    )
    for operator, wanted in (("=", True), ("<=", True), (">=", True), ("<>", False), ("<", False)):
        spans = relation(sql.format(operator), data).spans()
        assert spans == ([(0, 10 * S)] if wanted else []), operator


def test_a_gap() -> None:
    """A key is silent for longer than its horizon: no row in between, and none is invented."""
    data = {"s": table("id x v", ("a", 1.0, 1.0, 0), ("a", 1.0, 1.0, 20 * S), until=60 * S)}
    answer = relation(f"SELECT id, x FROM s {LINE} FOR 5 SECONDS", data)
    assert answer.spans() == [(0, 5 * S), (20 * S, 25 * S)]
    total = relation(f"SELECT sum(x) AS m FROM s {LINE} FOR 5 SECONDS", data)
    assert total.value(10 * S, "m") is None


def test_a_key_that_never_returns() -> None:
    """17.16: without FOR it stays for ever, one per key; others go on."""
    rows = [("gone", 1.0, 0.0, 0), *(("a", float(i), 0.0, i * S) for i in range(20))]
    data = {"s": table("id x v", *rows, until=3600 * S)}
    answer = relation(f"SELECT id, x FROM s {LINE}", data)
    assert answer.spans(id="gone") == [(0, None)]
    assert len([m for m in answer.lives if m.row["id"] == "a"]) == 20


def test_a_key_that_never_breaks() -> None:
    """With EVERY a cell ends although the bound never breaks, so that time can pass (16.3.2)."""
    rows = [("a", 1.0, i * S) for i in range(100)]
    data = {"s": table("id x", *rows, until=300 * S)}
    query = play(
        "SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5 EVERY 10 SECONDS)", data, epochs=5
    )
    assert [(m["start"], m["end"]) for m in models(query)] == [
        (i * 10 * S, (i + 1) * 10 * S) for i in range(10)
    ]


def test_degrees_of_a_circle_wrap() -> None:
    """A track that goes from 359 to 1 is cut there; the curve stays within its bound at every tuple
    and is never drawn through 180 (values are numbers, no angles: a defined result)."""
    values = [355.0, 356.0, 357.0, 358.0, 359.0, 0.0, 1.0, 2.0, 3.0]
    rows = [("a", v, i * S) for i, v in enumerate(values)]
    data = {"s": table("id x", *rows, until=90 * S)}
    answer = relation("SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.25)", data)
    for i, v in enumerate(values):
        assert abs(answer.one(i * S)["x"] - v) <= 0.25 * (1 + 1e-9)
    assert len(answer.lives) == 2


def test_equal_stamps_the_last_in_the_order_of_the_stream() -> None:
    """D5 and 17.19: by content; the order of arrival never matters."""
    rows = [("a", 3.0, 0.0, S), ("a", 1.0, 9.0, S), ("a", 2.0, 0.0, S)]
    for order in (rows, rows[::-1]):
        data = {"s": table("id x v", *order, until=30 * S)}
        answer = relation(f"SELECT id, x FROM s {LINE} FOR 5 SECONDS", data)
        assert [(m.start, m.row["x"]) for m in answer.lives] == [(S, 3.0)]


@pytest.mark.parametrize(("spread", "conflicts"), [(0.9, 0), (1.1, 1)])
def test_equal_stamps_of_a_fit(spread: float, conflicts: int) -> None:
    """16.3.8 and 17.19: within 2e both are met, wider the last counts and the other is counted."""
    rows = [("a", 1.0, 0), ("a", 1.0, S), ("a", 1.0 + spread, S)]
    data = {"s": table("id x", *rows, until=90 * S)}
    query = play("SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5)", data)
    got = Relation(rows_of(query.results())).one(S)["x"]
    assert abs(got - (1.0 + spread)) <= 0.5 * (1 + 1e-9)
    assert conflicts or abs(got - 1.0) <= 0.5 * (1 + 1e-9)
    assert conflicts in counters(query.stats(), "conflict")


@pytest.mark.parametrize("fit", ["FIT x DEGREE 1 WITHIN 0", "FIT x DEGREE 0 WITHIN 0"])
def test_a_bound_of_zero(fit: str) -> None:
    """17.20: straight lines from tuple to tuple; DEGREE 0 holds the last value."""
    values = [(0, 1.0), (1, 3.0), (4, 0.0), (5, 0.0)]
    data = {"s": table("id x", *((("a", v, at * S)) for at, v in values), until=90 * S)}
    answer = relation(f"SELECT id, x FROM s MODEL ({fit})", data)
    for at, v in values:
        assert answer.one(at * S)["x"] == pytest.approx(v, abs=1e-9)
    middle = {500 * MS: 2.0, 2_500 * MS: 1.5} if "1 WITHIN" in fit else {500 * MS: 1.0, 3 * S: 3.0}
    for at, v in middle.items():
        assert answer.one(at)["x"] == pytest.approx(v, abs=1e-9)


def test_an_error_of_zero_absorbs_only_what_is_exact() -> None:
    """17.20."""
    rows = [("a", 1.0, 0.5, 0), ("a", 2.0, 0.5, 2 * S), ("a", 3.0000001, 0.5, 4 * S)]
    data = {"s": table("id x v", *rows, until=30 * S)}
    answer = relation(f"SELECT id, x FROM s {LINE} ERROR x WITHIN 0", data)
    assert [m.start for m in answer.lives] == [0, 4 * S]


def test_a_row_of_key_null() -> None:
    """Not fixed by the notes: whatever it is, other keys are not touched and nothing fails."""
    rows = [(None, 1.0, 0.0, 0), ("a", 2.0, 0.0, S)]
    data = {"s": table("id x v", *rows, until=30 * S)}
    query = play(f"SELECT id, x FROM s {LINE} FOR 5 SECONDS", data)
    got = [m for m in Relation(rows_of(query.results())).lives if m.row["id"] == "a"]
    assert [(m.start, m.end) for m in got] == [(S, 6 * S)]


def test_integer_columns_are_models_too() -> None:
    """17.14: coefficients are any scalar expression of the row."""
    stamps = pa.array([0, 0], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ["a", "b"], "x": [3, 9], "v": [-1, 2], "ts": stamps})
    found = result(f"SELECT ISTREAM id FROM s {LINE} FOR 5 SECONDS WHERE x <= 0", {"s": rows})
    assert stamped(found, "id") == []  # at 3 s, which never came
    end = pa.table({"id": ["~"], "x": [None], "v": [None], "ts": pa.array([9 * S], stamps.type)},
                   schema=rows.schema)  # fmt: skip
    rows = pa.concat_tables([rows, end])
    found = result(f"SELECT ISTREAM id FROM s {LINE} FOR 5 SECONDS WHERE x <= 0", {"s": rows})
    assert stamped(found, "id") == [(3 * S, "a")]


def test_a_horizon_of_zero() -> None:
    """17.16: valid on [ts, ts+0), so nothing: that, or a refusal."""
    lives = []
    with contextlib.suppress(ThalwegError):
        lives = relation(f"SELECT id, x FROM s {LINE} FOR 0 SECONDS", STREAMS).lives
    assert lives == []


def test_what_stored_segments_cannot_honour() -> None:
    """16.3.4: a bound tighter than that of the fit is refused."""
    refusal("SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5) ERROR x WITHIN 0.1")


def test_membership_of_a_modeled_column() -> None:
    """17.21: what is not listed is refused (a value that moves through those of a subquery would
    need a root for each of them)."""
    sql = f"SELECT id FROM s {LINE} WHERE x IN (SELECT x FROM r [RANGE 20 SECONDS])"
    assert "sampl" in refusal(sql).remedy.lower()


@pytest.mark.parametrize(
    "window", ["[ROWS 1]", "[PARTITION BY id ROWS 2]", "[SESSION GAP 3 SECONDS]"]
)
def test_windows_of_rows_over_models(window: str) -> None:
    """17.3 gives windows over modeled sources a meaning in time alone; nothing is ignored without
    a word (D12)."""
    refusal(f"SELECT id, x FROM s {window} {LINE}")
