"""Section 17 of `pulse.md` (which wins over everything before) and 16.3, decision by decision, with
values worked out by hand."""

from __future__ import annotations

from itertools import pairwise
from math import cos, hypot, radians, sqrt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from model_runs import (
    MS,
    Relation,
    S,
    bag,
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

LINE = "MODEL (x = x + v*t)"
CURVE = "MODEL (x = c0 + c1*t + c2*t^2)"


def lines(*rows: tuple[Any, ...], until: int = 30) -> dict[str, pa.Table]:
    """s(id, x, v, ts) with times in seconds."""
    return {"s": table("id x v", *((*r[:-1], int(r[-1] * S)) for r in rows), until=until * S)}


def near(actual: Any, wanted: float, tolerance: float = 1e-9) -> bool:
    return actual is not None and abs(actual - wanted) <= tolerance * max(1.0, abs(wanted))


# --- 17.1: predictions ------------------------------------------------------------------------

EAGER = (
    "SELECT id, x FROM s MODEL (x = x + v*t) FOR 10 SECONDS WHERE x < 4 WITH (release = 'eager')"
)


def test_predictions_come_with_the_tuple_that_caused_them() -> None:
    rows = result(EAGER, lines(("a", 10.0, -2.0, 0)))
    assert stamped(rows, "id", "valid_from", "valid_until") == [(0, "a", 3 * S + 1, 10 * S)]


def test_an_alarm_goes_off_again() -> None:
    """ "If a change leaves nothing, one row with NULL validity says so (the alarm is off)"."""
    rows = result(EAGER, lines(("a", 10.0, -2.0, 0), ("a", 10.0, 0.0, 2)))
    assert stamped(rows, "id", "valid_from", "valid_until") == [
        (0, "a", 3 * S + 1, 10 * S),
        (2 * S, "a", None, None),
    ]


def test_null_is_an_alarm_off_too() -> None:
    rows = result(EAGER, lines(("a", 10.0, -2.0, 0), ("a", None, 0.0, 2)))
    assert (2 * S, "a", None, None) in stamped(rows, "id", "valid_from", "valid_until")


def test_predictions_are_made_as_of_each_change_never_per_epoch() -> None:
    data = lines(
        ("a", 10.0, -2.0, 0), ("b", 10.0, -1.0, 0.5), ("a", 10.0, 0.0, 1), ("a", 5.0, -1.0, 1.5)
    )
    wanted = [
        (0, "a", 3 * S + 1, 10 * S),
        (500 * MS, "b", 6_500 * MS + 1, 10_500 * MS),
        (S, "a", None, None),
        (1_500 * MS, "a", 2_500 * MS + 1, 11_500 * MS),
    ]
    bags = []
    for epochs in (1, 2, 5):
        query = play(EAGER, data, epochs=epochs)
        rows = rows_of(query.results())
        assert stamped(rows, "id", "valid_from", "valid_until") == wanted
        bags.append(bag(query.results()))
    assert bags[0] == bags[1] == bags[2]


def test_predictions_of_two_spans() -> None:
    """(t-5)^2 > 4 on [0,10): [0,3) and (7,10)."""
    data = {"s": table("id c0 c1 c2", ("a", 25.0, -10.0, 1.0, 0), until=30 * S)}
    rows = result(
        f"SELECT id FROM s {CURVE} FOR 10 SECONDS WHERE x > 4 WITH (release = 'eager')", data
    )
    assert stamped(rows, "valid_from", "valid_until") == [(0, 0, 3 * S), (0, 7 * S + 1, 10 * S)]


def test_predictions_of_a_pair() -> None:
    """Two aircraft on one line: a at 2t, b at 22 - 2t, within 4 of each other from 4.5 to 6.5; b
    turns at 3 and it is off. "The newest row per output key (all keys of a join) wins"."""
    data = lines(("a", 0.0, 2.0, 0), ("b", 20.0, -2.0, 1), ("b", 30.0, 2.0, 3))
    sql = (
        "SELECT a.id AS i, b.id AS j FROM s AS a MODEL (x = x + v*t) FOR 20 SECONDS "
        "JOIN s AS b MODEL (x = x + v*t) FOR 20 SECONDS ON a.id < b.id "
        "WHERE abs(a.x - b.x) <= 4 WITH (release = 'eager')"
    )
    # b = 20 - 2(t-1): |4t - 22| <= 4 from 4.5 to 6.5, both ends in
    rows = [r for r in result(sql, data) if r["valid_from"] is not None or r["__ts"] == 3 * S]
    assert stamped(rows, "i", "j", "valid_from", "valid_until") == [
        (S, "a", "b", 4_500 * MS, 6_500 * MS + 1),
        (3 * S, "a", "b", None, None),
    ]


# --- 17.2, 17.3: rows -------------------------------------------------------------------------


def test_one_row_per_beginning_of_a_condition() -> None:
    """17.2: rows without modeled columns are netted; a tuple under which the condition goes on
    gives nothing."""
    data = lines(("a", 10.0, -2.0, 0), ("a", 1.0, 0.0, 5), ("a", 9.0, 0.0, 7), ("a", 0.0, 0.0, 8))
    sql = f"SELECT ISTREAM id FROM s {LINE} FOR 10 SECONDS WHERE x < 4"
    assert stamped(result(sql, data), "id") == [(3 * S + 1, "a"), (8 * S, "a")]
    gone = result(sql.replace("ISTREAM", "DSTREAM"), data)
    assert stamped(gone, "id") == [(7 * S, "a"), (18 * S, "a")]
    assert "__model" not in result(sql, data)[0]


def test_total_power_now() -> None:
    """17.3: without a window sum is over the keys alive at the instant."""
    data = lines(("a", 1.0, 1.0, 0), ("b", 10.0, -1.0, 2), ("a", 5.0, 0.0, 4))
    answer = relation(f"SELECT sum(x) AS m FROM s {LINE} FOR 10 SECONDS", data)
    for at, wanted in ((1, 2), (3, 4 + 9), (5, 5 + 7), (11.5, 5 + 0.5), (13, 5)):
        assert near(answer.value(int(at * S), "m"), wanted), at
    assert answer.value(14 * S, "m") is None
    mean = relation(f"SELECT avg(x) AS m FROM s {LINE} FOR 10 SECONDS", data)
    assert near(mean.value(3 * S, "m"), 6.5)


def test_a_window_without_an_aggregate_changes_the_instants_only() -> None:
    """17.3."""
    data = lines(("a", 1.0, 1.0, 0.5), ("a", None, None, 7))
    sql = f"SELECT RSTREAM id, x FROM s [SIZE 4 SECONDS ADVANCE 2 SECONDS] {LINE}"
    rows = [r for r in result(sql, data) if r["id"] == "a"]
    assert stamped(rows, "x") == [(2 * S, 2.5), (4 * S, 4.5), (6 * S, 6.5)]


def test_macd() -> None:
    """17.3: a modeled subquery under a window, joined: the two means of section 2. x = t on
    [0,20): means over 2 s and 6 s are t-1 and t-3 from 6 on."""
    data = {"s": table("id x v", ("a", 0.0, 1.0, 0), ("a", None, None, 20 * S), until=40 * S)}
    mean = (
        "(SELECT id, avg(x) AS m FROM s [SIZE {} SECONDS ADVANCE 2 SECONDS] MODEL (x = x + v*t) "
        "GROUP BY id)"
    )
    answer = relation(
        f"SELECT a.id, a.m - b.m AS d FROM {mean.format(2)} AS a JOIN {mean.format(6)} AS b "
        "ON a.id = b.id WHERE a.m > b.m",
        data,
    )
    for at in range(6, 19):
        assert near(answer.value(at * S + MS, "d"), 2.0), at


def test_a_model_over_a_subquery() -> None:
    """17.15: of a subquery the key is the projected KEY."""
    data = lines(("a", 10.0, -2.0, 0))
    sql = f"SELECT id, x FROM (SELECT id, x * 2 AS x, v FROM s) AS d {LINE} FOR 10 SECONDS"
    answer = relation(sql, data)
    assert near(answer.value(3 * S, "x"), 14.0)
    with pytest.raises(ThalwegError) as refused:
        loaded(data).query("SELECT x FROM (SELECT x, v FROM s) AS d MODEL (x = x + v*t)")
    assert "KEY" in refused.value.remedy


def test_equal_rows_of_a_view_and_of_text() -> None:
    """A relation and its ISTREAM and DSTREAM are the same changes."""
    data = lines(("a", 10.0, -2.0, 0), ("a", 0.0, 1.0, 5), ("b", 3.0, 0.5, 1), ("b", 9.0, -3.0, 2))
    sql = f"SELECT id, x FROM s {LINE} FOR 6 SECONDS WHERE x < 4"
    both = [found(sql, data) for found in (relation, emitted_changes)]
    assert both[0].changes() == both[1].changes()


# --- 17.4, 17.12, 17.13, 17.22: fits ----------------------------------------------------------


def test_segments_as_a_table() -> None:
    """17.22: source, key columns, start, end, one array per attribute, bound."""
    rows = [("a", 1.0, 0), ("a", 2.0, S), ("a", 3.0, 2 * S), ("a", 0.0, 3 * S), ("a", -1.0, 4 * S)]
    data = {"s": table("id x", *rows, until=90 * S)}
    query = play("SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.25)", data)
    found = query.models()
    assert {"source", "id", "start", "end", "x", "bound"} <= set(found.column_names)
    assert found["x"].type.value_type == pa.float64()
    assert [(m["start"], m["end"]) for m in models(query)] == [(0, 3 * S), (3 * S, 60 * S)]


def test_several_fits_are_cut_together() -> None:
    """17.12."""
    rows = [("a", float(i), 0.0 if i < 5 else 9.0, i * S) for i in range(10)]
    data = {"s": table("id x y", *rows, until=90 * S)}
    sql = "SELECT id, x, y FROM s MODEL (FIT x DEGREE 1 WITHIN 0.25, FIT y DEGREE 0 WITHIN 0.25)"
    found = models(play(sql, data))
    assert [(m["start"], m["end"]) for m in found] == [(0, 5 * S), (5 * S, 60 * S)]


def test_a_fit_with_a_horizon() -> None:
    """17.13: FOR d extrapolates the newest piece by d. (Whether from its last tuple or from the
    end of its cell is not said: asked where both agree.)"""
    rows = [("a", float(i), i * S) for i in range(6)]
    data = {"s": table("id x", *rows, until=90 * S)}
    sql = "SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.1) FOR 3 SECONDS"
    answer = relation(sql, data)
    assert near(answer.value(7_500 * MS, "x"), 7.5, 0.1)
    assert answer.value(63_001 * MS, "x") is None


def test_a_piece_may_begin_with_its_cell() -> None:
    """17.4: with a tuple in the cell before, a piece is valid from the cell's start, though its
    first tuple comes later; without, from its first tuple."""
    stamps = (7.0, 12.0, 19.0, 44.0)
    data = {"s": table("id x", *(("a", 1.0, int(t * S)) for t in stamps), until=90 * S)}
    answer = relation(
        "SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5 EVERY 10 SECONDS)", data
    )
    assert answer.spans() == [(7 * S, 20 * S), (44 * S, 50 * S)]


def test_time_weighted_means_at_once() -> None:
    """17.20: `MODEL (x = x)` holds the last value: 1 for 3 s, 5 for 1 s."""
    data = {"s": table("id x", ("a", 1.0, 0), ("a", 5.0, 3 * S), until=30 * S)}
    sql = "SELECT RSTREAM id, avg(x) AS m FROM s [SIZE 4 SECONDS ADVANCE 4 SECONDS] MODEL (x = x) "
    rows = result(sql + "GROUP BY id", data)
    assert [r["m"] for r in rows if r["__ts"] == 4 * S] == [2.0]


# --- 17.5: coverage ---------------------------------------------------------------------------


def test_coverage_over_keys() -> None:
    """17.5: covered time / (window x keys seen in it): (2 + 1) / (2 x 2)."""
    data = lines(("a", 1.0, 0.0, 0), ("b", 4.0, 0.0, 1))
    sql = f"SELECT RSTREAM {{}} AS m FROM s [SIZE 2 SECONDS ADVANCE 2 SECONDS] {LINE}"
    at_2 = [r["m"] for r in result(sql.format("coverage(x)"), data) if r["__ts"] == 2 * S]
    assert at_2 == [pytest.approx(0.75)]
    at_2 = [r["m"] for r in result(sql.format("avg(x)"), data) if r["__ts"] == 2 * S]
    assert at_2 == [pytest.approx(2.0)]


def test_keys_that_begin_at_a_boundary_are_not_seen_in_the_window_before() -> None:
    """[SIZE w ADVANCE a] holds what is before its boundary (16.3.1, 17.5)."""
    data = lines(("a", 0.0, 1.0, 0), ("b", 0.0, 1.0, 2), ("a", 0.0, 1.0, 4), ("c", 1.0, 0.0, 4))
    sql = (
        f"SELECT RSTREAM coverage(x) AS m FROM s [SIZE 2 SECONDS ADVANCE 2 SECONDS] {LINE} "
        "FOR 20 SECONDS"
    )
    found = {r["__ts"]: r["m"] for r in result(sql, data)}
    assert {t: found[t * S] for t in (2, 4, 6)} == {2: 1.0, 4: 1.0, 6: 1.0}
    late = lines(("a", 0.0, 1.0, 0), ("b", 0.0, 1.0, 3))
    assert [r["m"] for r in result(sql, late) if r["__ts"] == 4 * S] == [0.75]


def test_coverage_in_having() -> None:
    data = lines(("a", 1.0, 0.0, 1), ("a", None, None, 9))
    sql = (
        f"SELECT RSTREAM id, avg(x) AS m FROM s [SIZE 4 SECONDS ADVANCE 1 SECOND] {LINE} "
        "GROUP BY id HAVING coverage(x) >= 1"
    )
    assert [r["__ts"] // S for r in result(sql, data)] == [5, 6, 7, 8, 9]


# --- 17.14: coefficients and time -------------------------------------------------------------


def test_coefficients_are_any_expression_of_the_row() -> None:
    data = {"s": table("id speed track", ("a", 100.0, 60.0, S), until=30 * S)}
    sql = "SELECT n FROM s MODEL (n = speed*cos(radians(track))*t) FOR 10 SECONDS"
    assert near(relation(sql, data).value(5 * S, "n"), 100 * cos(radians(60)) * 4)


def test_a_column_t_is_written_with_its_alias() -> None:
    data = {"s": table("id t v", ("a", 7.0, 2.0, S), until=30 * S)}
    answer = relation("SELECT x FROM s AS a MODEL (x = a.t + v*t) FOR 10 SECONDS", data)
    assert near(answer.value(4 * S, "x"), 7 + 2 * 3)


def test_the_event_time_is_the_instant_of_evaluation() -> None:
    data = lines(("a", 1.0, 1.0, 0.5))
    rows = result(f"SELECT ts, x FROM s {LINE} FOR 3 SECONDS SAMPLE EVERY 1 SECOND", data)
    assert stamped(rows, "ts", "x") == [(n * S, n * S, n + 0.5) for n in (1, 2, 3)]


# --- 17.16, 17.17: horizon and samples --------------------------------------------------------


def test_a_horizon_has_no_extra_tick() -> None:
    answer = relation(f"SELECT x FROM s {LINE} FOR 3 SECONDS", lines(("a", 1.0, 1.0, 1)))
    assert answer.spans() == [(S, 4 * S)]


def test_a_rate_is_per_second() -> None:
    data = lines(("a", 0.0, 4.0, 0.3), ("a", None, None, 1.5))
    rows = result(f"SELECT x FROM s {LINE} SAMPLE RATE 4", data)
    assert [r["__ts"] for r in rows] == [500 * MS, 750 * MS, S, 1_250 * MS]
    assert [r["x"] for r in rows] == pytest.approx([0.8, 1.8, 2.8, 3.8])


def test_points_come_at_their_own_instant() -> None:
    """17.17: x = 4 at 3 s, off a grid of 2 s."""
    sql = f"SELECT x FROM s {LINE} FOR 10 SECONDS WHERE x = 4 SAMPLE EVERY 2 SECONDS"
    assert [r["__ts"] for r in result(sql, lines(("a", 10.0, -2.0, 0)))] == [3 * S]


def test_a_tuple_stream_reads_a_model_at_its_own_times() -> None:
    data = lines(("a", 10.0, -2.0, 0), ("b", 1.0, 0.0, 0))
    stamps = ((500, "a"), (2_250, "a"), (2_250, "c"), (9_999, "b"), (10_000, "a"))
    data["r"] = table("id", *((k, at * MS) for at, k in stamps), until=30 * S)
    for word in ("ISTREAM", "RSTREAM"):
        sql = (
            f"SELECT {word} s.id, m.x FROM r [NOW] s JOIN s m {LINE} FOR 10 SECONDS ON s.id = m.id"
        )
        rows = result(sql, data)
        assert stamped(rows, "id", "x") == [
            (500 * MS, "a", 9.0), (2_250 * MS, "a", 5.5), (9_999 * MS, "b", 1.0),
        ]  # fmt: skip


def test_resampling_and_aligning_sensors() -> None:
    """Sensors that report at unequal times, side by side on one grid."""
    data = {
        "a": table("id x", ("k", 1.0, 0), ("k", 5.0, 2_500 * MS), until=30 * S),
        "b": table("id x", ("k", 2.0, 700 * MS), ("k", 4.0, 3_100 * MS), until=30 * S),
    }
    sql = (
        "SELECT a.x AS p, b.x AS q FROM a AS a MODEL (x = x) FOR 4 SECONDS "
        "JOIN b AS b MODEL (x = x) FOR 4 SECONDS ON a.id = b.id SAMPLE EVERY 1 SECOND"
    )
    wanted = [(S, 1.0, 2.0), (2 * S, 1.0, 2.0), (3 * S, 5.0, 2.0), (4 * S, 5.0, 4.0)]
    wanted += [(5 * S, 5.0, 4.0), (6 * S, 5.0, 4.0)]
    assert stamped(result(sql, data), "p", "q") == wanted


# --- 17.21: what may be said of models --------------------------------------------------------


def curve(c0: float, c1: float, c2: float) -> dict[str, pa.Table]:
    return {"s": table("id c0 c1 c2", ("a", c0, c1, c2, 0), until=30 * S)}


def test_derivatives() -> None:
    """25 - (t-5)^2 rises until 5."""
    data = curve(0.0, 10.0, -1.0)
    answer = relation(f"SELECT derivative(x) AS m FROM s {CURVE} FOR 10 SECONDS", data)
    assert near(answer.value(3 * S, "m"), 4.0)
    rising = relation(f"SELECT id FROM s {CURVE} FOR 10 SECONDS WHERE derivative(x) > 0", data)
    assert rising.spans() == [(0, 5 * S)]


def test_time_spent_above_a_threshold() -> None:
    """`integral(1)` over a filter: x = t above 4 in the 3 s before 6: two seconds."""
    data = lines(("a", 0.0, 1.0, 0))
    sql = (
        f"SELECT RSTREAM id, integral(1) AS m FROM s [SIZE 3 SECONDS ADVANCE 1 SECOND] {LINE} "
        "FOR 10 SECONDS WHERE x > 4 GROUP BY id"
    )
    got = {r["__ts"] // S: r["m"] for r in result(sql, data)}
    wanted = {5: 1, 6: 2, 7: 3, 8: 3, 9: 3, 10: 3, 11: 2, 12: 1}
    assert got == pytest.approx(wanted, abs=1e-5)


PAIR = (
    "FROM s AS a MODEL (x = x + v*t, y = y + w*t) FOR 10 SECONDS "
    "JOIN s AS b MODEL (x = x + v*t, y = y + w*t) FOR 10 SECONDS ON a.id < b.id"
)


def movers() -> dict[str, pa.Table]:
    """a stands at (0, 3), b passes along the x axis: distance sqrt((t-5)^2 + 9)."""
    rows = [("a", 0.0, 3.0, 0.0, 0.0, 0), ("b", -5.0, 0.0, 1.0, 0.0, 0)]
    return {"s": table("id x y v w", *rows, until=30 * S)}


@pytest.mark.parametrize(
    "distance",
    ["sqrt(pow(a.x - b.x, 2) + pow(a.y - b.y, 2))", "sqrt((a.x-b.x)*(a.x-b.x) + (a.y-b.y)^2)"],
)
def test_distances(distance: str) -> None:
    """17.21: sqrt of a quadratic; section 2 (a): compared, it is that of the squares: within 5 from
    1 to 9."""
    distance = distance.replace("(a.y-b.y)^2", "pow(a.y-b.y, 2)")
    near_ = relation(f"SELECT a.id {PAIR} WHERE {distance} < 5", movers())
    assert near_.spans() == [(S + 1, 9 * S)]
    rows = result(f"SELECT {distance} AS m {PAIR} SAMPLE EVERY 1 SECOND", movers())
    assert [r["m"] for r in rows] == pytest.approx([hypot(t - 5, 3) for t in range(10)])


def test_a_mean_distance_in_closed_form() -> None:
    """16.4: sqrt of a quadratic has a closed-form integral; only the mean of the distance is right
    for avg(dist) (section 2). The integral of sqrt(u^2 + 9) from -5 to 5 is
    5 sqrt(34) + 9 asinh(5/3)."""
    from math import asinh

    sql = (
        "SELECT RSTREAM i, j, avg(d) AS m FROM (SELECT a.id AS i, b.id AS j, "
        f"sqrt(pow(a.x - b.x, 2) + pow(a.y - b.y, 2)) AS d {PAIR}) "
        "[SIZE 10 SECONDS ADVANCE 10 SECONDS] AS p GROUP BY i, j"
    )
    rows = result(sql, movers())
    wanted = (5 * sqrt(34) + 9 * asinh(5 / 3)) / 10
    assert [r["m"] for r in rows if r["__ts"] == 10 * S] == pytest.approx([wanted], rel=1e-9)


def test_division_by_an_unmodeled_column() -> None:
    rows = [("a", 10.0, -2.0, 4.0, 0)]
    data = {"s": table("id x v n", *rows, until=30 * S)}
    answer = relation(f"SELECT x / n AS m FROM s {LINE} FOR 10 SECONDS WHERE x / n < 1", data)
    assert answer.spans() == [(3 * S + 1, 10 * S)]
    assert near(answer.value(5 * S, "m"), 0.0)


def test_a_model_with_a_table() -> None:
    data = lines(("a", 10.0, -2.0, 0), ("b", 0.0, 1.0, 0))
    limits = pa.table({"key": ["a", "b", "b"], "lim": [4.0, 2.0, 6.0]})
    sql = (
        f"SELECT a.id, l.lim, a.x FROM s AS a {LINE} FOR 10 SECONDS JOIN lim l ON a.id = l.key "
        "WHERE a.x < l.lim"
    )
    answer = relation(sql, data, tables={"lim": limits})
    assert answer.spans(id="a") == [(3 * S + 1, 10 * S)]
    assert answer.spans(id="b", lim=2.0) == [(0, 2 * S)]
    assert answer.spans(id="b", lim=6.0) == [(0, 6 * S)]


def test_invoked_at_any_instant() -> None:
    """The issue: INVOKE at any instant: the value there."""
    runner = loaded(lines(("a", 10.0, -2.0, 0), ("b", 1.0, 0.0, 0)))
    query = runner.query(f"SELECT id, x FROM s {LINE} FOR 10 SECONDS WHERE x < 4", name="q")
    runner.run()
    for at, wanted in ((2_999_999, []), (4_250_000, [("a", 1.5)]), (10 * S, [])):
        rows = query.invoke(at).to_pylist()
        got = [(r["id"], r["x"]) for r in rows if r["id"] == "a"]
        assert got == [(k, pytest.approx(v)) for k, v in wanted], at


# --- 17.22: sweeps ----------------------------------------------------------------------------


def test_a_sweep_is_the_queries_one_by_one() -> None:
    """17.22: placeholders for constants, durations and bounds; one Arrow table with the parameters
    as columns; Runner has it too."""
    values = [0.0, 2.0, 1.0, 5.0, 3.0, 4.0, 0.0, 1.0]
    rows = [("a", v, i * S) for i, v in enumerate(values)]
    data = {"s": table("id x", *rows, until=90 * S)}
    sql = "SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5) WHERE x > :level"
    for parameters in ([{"level": 1.0}, {"level": 3.5}], pa.table({"level": [1.0, 3.5]})):
        runner = loaded(data)
        swept = runner.sweep(sql, parameters)
        assert "level" in swept.column_names
        for level in (1.0, 3.5):
            alone = relation(sql.replace(":level", str(level)), data)
            mine = swept.filter(pc.equal(swept["level"], level)).drop_columns(["level"])
            both = Relation(rows_of(mine))
            assert both.changes() == alone.changes()
            for at in range(0, 9 * S, 333 * MS):
                assert both.at(at) == alone.at(at)


def test_a_picture() -> None:
    """The issue, 7: `q.plot()` is SVG."""
    query = play(f"SELECT id, x FROM s {LINE} FOR 10 SECONDS", lines(("a", 10.0, -2.0, 0)))
    assert "<svg" in str(query.plot())


def test_explain_says_what_a_sum_is() -> None:
    """16.3.7: `sum` over a modeled attribute under a window is the integral, and EXPLAIN says so;
    17.4: the frontier lags by at most EVERY, EXPLAIN says so."""
    runner = loaded(lines(("a", 10.0, -2.0, 0)))
    said = runner.explain("SELECT sum(x) AS m FROM s [RANGE 5 SECONDS] MODEL (x = x)").lower()
    assert "integral" in said
    said = runner.explain("SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 1 EVERY 7 SECONDS)")
    assert "7 s" in said


def test_a_view_that_holds_segments() -> None:
    """16.4: a view with RETAIN is "fit once, read often": what reads it has the rows of the query
    over the model itself."""
    values = [0.0, 2.0, 1.0, 5.0, 3.0, 4.0, 0.0, 1.0]
    data = {"s": table("id x", *((("a", v, i * S)) for i, v in enumerate(values)), until=90 * S)}
    fit = "SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5)"
    alone = relation(f"{fit} WHERE x > 1", data)
    runner = loaded(data)
    runner.sql(f"CREATE VIEW fits RETAIN 1 DAY AS {fit}")
    query = runner.query("SELECT id, x FROM fits WHERE x > 1", name="q")
    runner.run()
    read = Relation(rows_of(query.results()))
    for at in range(0, 9 * S, 333 * MS):
        assert read.at(at) == alone.at(at)


# --- how it all goes together -----------------------------------------------------------------


def test_the_remedy_works() -> None:
    """17.21: what models do not do is done to samples in a subquery: count, DISTINCT, outer joins,
    set operations, any function."""
    data = lines(("a", 0.0, 1.0, 0), ("b", 10.0, -1.0, 0), until=20)
    samples = f"(SELECT id, x FROM s {LINE} FOR 10 SECONDS SAMPLE EVERY 1 SECOND)"
    rows = result(f"SELECT ISTREAM id, sin(x) AS m FROM {samples} [NOW] d WHERE x > 8", data)
    assert [(r["__ts"] // S, r["id"]) for r in rows] == [(0, "b"), (1, "b"), (9, "a")]
    sql = f"SELECT RSTREAM count(*) AS n FROM {samples} [RANGE 2 SECONDS SLIDE 2 SECONDS] d"
    got = {r["__ts"] // S: r["n"] for r in result(sql, data)}
    assert {b: n for b, n in got.items() if n} == {2: 4, 4: 4, 6: 4, 8: 4, 10: 4}


def test_time_passes_without_data() -> None:
    """16.4: a root decides an appearance epochs ahead: it comes when time gets there, not when the
    next tuple does."""
    data = {"s": table("id x v", ("a", 10.0, -2.0, 0))}
    runner = loaded(data)
    query = runner.query(f"SELECT ISTREAM id FROM s {LINE} FOR 10 SECONDS WHERE x < 4", name="q")
    gone = runner.query(f"SELECT DSTREAM id FROM s {LINE} FOR 10 SECONDS WHERE x < 4", name="p")
    runner.feed(data)
    runner.heartbeat("s", 3 * S)
    assert query.results().num_rows == 0
    runner.restart()
    runner.heartbeat("s", 5 * S)
    assert stamped(rows_of(runner.queries["q"].results()), "id") == [(3 * S + 1, "a")]
    assert gone.results().num_rows == 0
    runner.heartbeat("s", 10 * S + 1)
    assert stamped(rows_of(runner.queries["p"].results()), "id") == [(10 * S, "a")]


def test_all_columns() -> None:
    """`*`: the columns of the source, modeled ones as models."""
    data = lines(("a", 10.0, -2.0, 0))
    answer = relation(f"SELECT * FROM s {LINE} FOR 10 SECONDS WHERE x < 4", data)
    row = answer.one(4 * S)
    assert (row["id"], row["v"]) == ("a", -2.0)
    assert near(row["x"], 2.0)


def test_samples_are_sure_or_maybe() -> None:
    """17.7: every discrete result is sure or maybe."""
    data = lines(("a", 10.0, -2.0, 0))
    sql = f"SELECT x FROM s {LINE} FOR 10 SECONDS WHERE x < 4 ERROR x WITHIN 0.5 "
    rows = result(sql + "SAMPLE EVERY 1 SECOND", data)
    wanted = [(3 * S, 4.0, True), *((n * S, 10.0 - 2 * n, False) for n in range(4, 10))]
    assert stamped(rows, "x", "__maybe") == wanted


def test_predictions_are_sure_or_maybe() -> None:
    """17.1 with 17.7: the superset is predicted: from 2.75 on."""
    data = lines(("a", 10.0, -2.0, 0), ("a", 9.2, -2.0, 0.5))
    rows = result(EAGER.replace("WITH (", "ERROR x WITHIN 0.5 WITH ("), data)
    assert {r["__ts"] for r in rows} == {0}
    spans = sorted((r["valid_from"], r["valid_until"]) for r in rows)
    assert abs(spans[0][0] - 2_750_001) <= 1
    assert spans[-1][1] == 10 * S
    assert all(a[1] == b[0] for a, b in pairwise(spans))


def test_rows_of_unequal_references_keep_one_start() -> None:
    """17.9: differences are aligned to the later start; ties: first in FROM. The row's value is
    that at its start whatever the references."""
    data = {
        "a": table("id x v", ("k", 0.0, 1.0, 0), until=30 * S),
        "b": table("id x v", ("k", 9.0, -1.0, 3 * S), until=30 * S),
    }
    answer = relation(
        f"SELECT a.x AS p, b.x AS q, a.x + b.x AS u FROM a AS a {LINE} FOR 20 SECONDS "
        f"JOIN b AS b {LINE} FOR 20 SECONDS ON a.id = b.id WHERE a.x > b.x",
        data,
    )
    (life,) = answer.lives
    assert life.start == 6 * S + 1
    assert life.row["__model"]["start"] == 3 * S
    assert near(life.row["p"], 6.000001)
    for at in (7 * S, 12 * S):
        row = answer.one(at)
        assert near(row["p"], at / S)
        assert near(row["q"], 9 - (at / S - 3))
        assert near(row["u"], 12.0)


def test_a_filter_of_unmodeled_columns_below_another() -> None:
    """1.2: unmodeled attributes are processed beside the modeled ones, in a subquery too."""
    data = {
        "s": table("id g x v", ("a", "p", 10.0, -2.0, 0), ("b", "q", 1.0, 0.0, 0), until=30 * S)
    }
    below = f"SELECT id, x FROM s {LINE} FOR 10 SECONDS WHERE g = 'p'"
    answer = relation(f"SELECT id, x FROM ({below}) AS d WHERE x < 4", data)
    assert answer.spans() == [(3 * S + 1, 10 * S)]


def test_boundaries_of_another_source() -> None:
    """17.17: RSTREAM over models is refused "without SAMPLE, SLIDE or a tuple stream": a source
    that slides gives the instants (docs/language.md: "where a source slides, at its
    boundaries")."""
    data = lines(("a", 10.0, -2.0, 0))
    data["r"] = table("id n", ("a", 1.0, S), until=30 * S)
    sql = (
        f"SELECT RSTREAM a.id, a.x, r.n FROM s AS a {LINE} FOR 10 SECONDS "
        "JOIN r [RANGE 4 SECONDS SLIDE 2 SECONDS] r ON a.id = r.id"
    )
    assert stamped(result(sql, data), "x") == [(2 * S, 6.0), (4 * S, 2.0)]


def test_counters_are_a_stream_too() -> None:
    """The issue, 7: tuples absorbed, violations and the bound in force in stats and SysStream."""
    rows = [("a", 0.0, 1.0, 0), ("a", 1.2, 1.0, S), ("a", 9.0, 1.0, 2 * S)]
    runner = loaded({"s": table("id x v", *rows, until=30 * S)})
    query = runner.query(f"SELECT id, x FROM s {LINE} ERROR x WITHIN 0.5", name="q")
    metrics = runner.query(
        "SELECT entity, property, value FROM SysStream WHERE kind = 'query'", name="metrics"
    )
    runner.run()
    runner.tick(1)
    runner.close()
    assert 1 in counters(query.stats(), "absorbed")
    seen = {r["property"]: r["value"] for r in metrics.results().to_pylist() if r["entity"] == "q"}
    for word in ("absorbed", "violations", "bound"):
        assert any(word in name for name in seen), (word, seen)


def test_the_event_time_in_a_relation() -> None:
    """17.14 and 17.2: the event-time column is the instant of evaluation, a row shows it at its
    start; so the thesis' own `SELECT *` (section 2) is a query."""
    rows = result(f"SELECT ISTREAM id, ts FROM s {LINE} FOR 10 SECONDS WHERE x < 4",
                  lines(("a", 10.0, -2.0, 0)))  # fmt: skip
    assert stamped(rows, "ts") == [(3 * S + 1, 3 * S + 1)]


@pytest.mark.parametrize(
    ("aggregate", "at_4"), [("max(x)", 1.0), ("min(x)", 1.0), ("avg(x)", 1.0), ("coverage(x)", 0.5)]
)
def test_a_window_that_slides_ends_before_its_boundary(aggregate: str, at_4: float) -> None:
    """16.3.1: `[SIZE w ADVANCE a]` equals `[RANGE w SLIDE a]`, which holds b-d <= t < b
    (docs/language.md): what begins at b is in the next window. All aggregates have the same rows:
    none where nothing is covered (17.5), so none at 0."""
    data = {"s": table("id x", ("a", 1.0, 0), ("a", 9.0, 4 * S), until=30 * S)}
    sql = (
        f"SELECT RSTREAM id, {aggregate} AS m FROM s [SIZE 2 SECONDS ADVANCE 2 SECONDS] "
        "MODEL (x = x) FOR 3 SECONDS GROUP BY id"
    )
    got = {r["__ts"] // S: r["m"] for r in result(sql, data)}
    assert sorted(got) == [2, 4, 6, 8]
    assert near(got[4], at_4)


def test_a_mean_that_is_a_polynomial_has_its_coefficients() -> None:
    """17.2: `__model` holds start and the ascending coefficients of the column: pulse #13's t - 1
    on [2,10) is [1, 1] from 2 on. (Of means that are no polynomial, as where a window is covered in
    part, the notes do not say what it holds.)"""
    data = lines(("a", 0.0, 1.0, 0))
    rows = result(f"SELECT avg(x) AS m FROM s [RANGE 2 SECONDS] {LINE} FOR 10 SECONDS", data)
    (model,) = [r["__model"] for r in rows if r["__ts"] == 2 * S and r["__sign"] > 0]
    start, c = model["start"] / S, model["m"]
    for at in (2.0, 5.0, 9.0):
        assert near(sum(k * (at - start) ** i for i, k in enumerate(c)), at - 1)


def test_absolute_values_in_the_list() -> None:
    """17.21 allows abs over modeled columns, not in conditions alone: |6 - 2t| on [0,10)."""
    data = lines(("a", 10.0, -2.0, 0))
    answer = relation(f"SELECT id, abs(x - 4) AS m FROM s {LINE} FOR 10 SECONDS", data)
    for at in (0.0, 2.5, 3.5, 9.0):
        assert near(answer.value(int(at * S), "m"), abs(6 - 2 * at))


@pytest.mark.parametrize(("aggregate", "at_4"), [("avg", 1.0), ("integral", 2.0), ("max", 2.0)])
def test_absolute_values_in_aggregates(aggregate: str, at_4: float) -> None:
    """17.21: |6 - 2t| over [2, 4): two triangles of height 2."""
    sql = (
        f"SELECT RSTREAM id, {aggregate}(abs(x - 4)) AS m "
        f"FROM s [SIZE 2 SECONDS ADVANCE 2 SECONDS] {LINE} FOR 10 SECONDS GROUP BY id"
    )
    rows = result(sql, lines(("a", 10.0, -2.0, 0)))
    assert [r["m"] for r in rows if r["__ts"] == 4 * S] == pytest.approx([at_4], abs=1e-5)


def test_aggregates_of_groups_below() -> None:
    """17.3: the largest of the groups' sums: p is 11 - t, q is 5 from 1 on."""
    rows = [("a", "p", 10.0, -2.0, 0), ("b", "p", 1.0, 1.0, 0), ("c", "q", 5.0, 0.0, S)]
    data = {"s": table("id g x v", *rows, until=30 * S)}
    below = f"SELECT g, sum(x) AS u FROM s {LINE} FOR 9 SECONDS GROUP BY g"
    answer = relation(f"SELECT max(u) AS m FROM ({below}) AS d", data)
    for at, wanted in ((0.5, 10.5), (3.0, 8.0), (7.0, 5.0), (8.5, 5.0)):
        assert near(answer.value(int(at * S), "m"), wanted), at
