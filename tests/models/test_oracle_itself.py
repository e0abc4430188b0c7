"""The oracle of model queries, by itself: cases worked out by hand, and whether its random cases
have what they are meant to have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import oracle
import pytest
from oracle import MS, Answer, Case, Modeled, Num, Piece, S, Windowed

ONE = Fraction(1)
LINE = {"x": (("c0", ONE), ("c1", ONE))}


def row(key: str, c0: float | None, c1: float, at: int, **more: object) -> dict[str, object]:
    return {"id": key, "g": None, "n": None, "c0": c0, "c1": c1, "c2": 0.0, "ts": at, **more}


def spans(segments: list[oracle.Segment]) -> list[tuple[int, int | None]]:
    return sorted((s.start, s.end) for s in segments)


def test_a_row_governs_until_the_next_of_its_key() -> None:
    source = Modeled("s", "a", LINE, 10 * S)
    rows = [row("a", 1.0, 0.0, 0), row("a", 2.0, 0.0, 6 * S), row("b", 3.0, 0.0, S)]
    assert spans(source.segments(rows)) == [(0, 6 * S), (S, 11 * S), (6 * S, 16 * S)]


def test_null_ends_and_the_last_of_equal_stamps_governs() -> None:
    source = Modeled("s", "a", LINE, None)
    rows = [row("a", 2.0, 0.0, 0), row("a", 1.0, 9.0, 0), row("a", None, 0.0, S)]
    (segment,) = source.segments(rows)
    assert (segment.start, segment.end, segment.curves["x"][0]) == (0, S, 2)


def test_roots_leave_one_tick_open() -> None:
    source = Modeled("s", "a", LINE, 10 * S)
    segments = source.segments([row("a", 10.0, -2.0, 0)])
    items = {"id0": ("col", "a", "id"), "u": ("col", "a", "x")}
    where = ("cmp", "<", ("col", "a", "x"), ("num", Fraction(4)))

    def at(instant: int) -> Answer:
        return oracle.joined([("a", segments)], where, items, ("id0",), instant)

    assert not at(3 * S - 2).possible
    assert not at(3 * S).certain
    assert at(3 * S).possible
    assert at(3 * S + 2).certain[("a",)]["u"][0] == Fraction(4) - Fraction(4, S)
    assert not at(10 * S).possible


def test_equality_is_free_at_the_ticks_beside_a_root() -> None:
    """3t = 1 at 333333.3 µs: = and <> may be true or false at the ticks on both sides."""
    source = Modeled("s", "a", LINE, 10 * S)
    segments = source.segments([row("a", 0.0, 3.0, 0)])
    items = {"id0": ("col", "a", "id")}
    for op in ("=", "<>"):
        where = ("cmp", op, ("col", "a", "x"), ("num", ONE))
        for at in range(333_330, 333_338):
            answer = oracle.joined([("a", segments)], where, items, ("id0",), at)
            free = at in (333_333, 333_334)
            assert bool(answer.possible) == (free or op == "<>"), at
            assert bool(answer.certain) == (not free and op == "<>"), at


def test_logic_has_three_values() -> None:
    env = lambda tick: {("a", "n"): None, ("a", "x"): Num(ONE, ONE, False)}  # noqa: E731
    unknown = ("cmp", "<", ("col", "a", "n"), ("num", ONE))
    false = ("cmp", "<", ("col", "a", "x"), ("num", ONE))
    assert oracle.truth(("not", unknown), env) == {None}
    assert oracle.truth(("and", unknown, false), env) == {False}
    assert oracle.truth(("or", unknown, ("not", false)), env) == {True}


def test_a_join_pairs_what_is_alive() -> None:
    """pulse #8 by brute force."""
    a = Modeled("a", "a", LINE, 10 * S).segments([row("a", 10.0, 2.0, 0)])
    terms = {"y": (("c0", Fraction(1)), ("c1", ONE), ("c2", ONE))}
    b = Modeled("b", "b", terms, 10 * S).segments([row("b", 0.0, 1.0, 0, c2=1.0)])
    where = ("cmp", "<", ("col", "a", "x"), ("col", "b", "y"))
    items = {"i": ("col", "a", "id"), "j": ("col", "b", "id")}
    for at, wanted in ((3_701_560, False), (3_701_565, True)):
        answer = oracle.joined([("a", a), ("b", b)], where, items, ("i", "j"), at)
        assert (("a", "b") in answer.certain) == wanted
        assert (("a", "b") in answer.possible) == wanted


def window(function: str, width: int, rows: list[dict[str, object]], horizon: int) -> Windowed:
    terms = {"x": (("c0", ONE), ("c1", ONE), ("c2", ONE))}
    source = Modeled("s", "a", terms, horizon)
    return Windowed(source, source.segments(rows), width, None, {"u": (function, "x")})


@pytest.mark.parametrize(("at", "wanted"), [(7, 11), (8.5, 17), (10, 22.5), (9, 19)])
def test_integrals_of_pulse_14(at: float, wanted: float) -> None:
    rows = [row("a", 1.0, 0.0, 0), row("a", 1.0, 1.0, 4 * S), row("a", 5.0, 0.0, 6 * S)]
    answer = window("integral", 5 * S, rows, 6 * S).answer(int(at * S))
    assert answer.certain[()]["u"][0] == Fraction(wanted)


@pytest.mark.parametrize(("at", "wanted"), [(3, 21), (5, 25), (7.5, 25), (9, 24), (12, 9)])
def test_maxima_of_pulse_12(at: float, wanted: float) -> None:
    rows = [row("a", 0.0, 10.0, 0, c2=-1.0)]
    answer = window("max", 3 * S, rows, 10 * S).answer(int(at * S))
    assert answer.certain[()]["u"][0] == Fraction(wanted)


def test_coverage_and_means_of_partial_windows() -> None:
    rows = [row("a", 0.0, 1.0, 0)]
    assert window("coverage", 2 * S, rows, 10 * S).answer(S).certain[()]["u"][0] == Fraction(1, 2)
    assert window("avg", 2 * S, rows, 10 * S).answer(11 * S).certain[()]["u"][0] == Fraction(19, 2)
    assert not window("avg", 2 * S, rows, 10 * S).answer(12 * S).possible


def test_means_are_weighted_by_coverage() -> None:
    """16.3.7: 1 for two seconds and 4 for one give 2, not 2.5."""
    rows = [row("a", 1.0, 0.0, 0), row("b", 4.0, 0.0, S)]
    assert window("avg", 2 * S, rows, 10 * S).answer(2 * S).certain[()]["u"][0] == 2


def test_pieces_against_quadrature() -> None:
    piece = Piece((ONE, Fraction(-2), Fraction(1, 3)), S, Fraction(2 * S), Fraction(7 * S))
    grid = np.linspace(1, 6, 200_001)
    curve = 1 - 2 * grid + grid**2 / 3
    assert float(piece.integral()) == pytest.approx(np.trapezoid(curve, grid), rel=1e-9)
    assert float(min(piece.extremes())) == pytest.approx(curve.min(), abs=1e-9)
    assert float(max(piece.extremes())) == pytest.approx(curve.max(), abs=1e-9)
    parts = list(oracle.cut(piece, "<", Fraction(-1)))
    covered = float(sum(p.covered for p in parts))
    assert covered == pytest.approx((curve < -1).mean() * 5, abs=1e-4)


def test_time_in_a_condition() -> None:
    """x = t above 4 within [3, 6): two seconds."""
    source = Modeled("s", "a", LINE, 10 * S)
    segments = source.segments([row("a", 0.0, 1.0, 0)])
    where = ("x", ">", Fraction(4))
    found = Windowed(source, segments, 3 * S, None, {"u": ("time", "x")}, where).answer(6 * S)
    assert found.certain[()]["u"][0] == 2


def test_differences_are_found() -> None:
    """The control: a missing row, one too many and a wrong value are all noticed."""
    answer = Answer()
    answer.add(("a",), {"u": (ONE, Fraction(1, 10**9))}, frozenset({True}))
    case = Case(0, "", "", "relation", {}, {}, ("id0",), lambda at: answer, 0, 1)
    right = {"id0": "a", "u": 1.0}
    assert oracle.difference(case, 0, [right]) is None
    assert "twice" in str(oracle.difference(case, 0, [right, right]))
    assert "should be there" in str(oracle.difference(case, 0, []))
    assert "should not" in str(oracle.difference(case, 0, [right, {"id0": "b", "u": 1.0}]))
    assert "should be 1.0" in str(oracle.difference(case, 0, [{"id0": "a", "u": 1.1}]))


def test_tuples_are_absorbed() -> None:
    """17.6 on a line: off by 0.4 is absorbed, off by 0.6 begins anew, and so does a changed g."""
    source = Modeled("s", "a", {"c0": LINE["x"]}, 10 * S)
    values = [(0.0, 0, "p"), (1.4, 1, "p"), (2.6, 2, "p"), (3.6, 3, "q"), (13.6, 13, "q")]
    rows = [row("a", v, 1.0, at * S, g=g) for v, at, g in values]
    bound = Fraction(1, 2)
    found = source.absorbing(rows, "c0", bound, ["g"])
    wanted = [(0, 2 * S), (2 * S, 3 * S), (3 * S, 13 * S), (13 * S, 23 * S)]
    assert spans(found) == wanted
    assert len(source.absorbing(rows, "c0", bound, [])) == 3


@pytest.mark.parametrize(("op", "may", "must"), [
    ("<", (2.75, 10), (3.25, 10)), ("<=", (2.75, 10), (3.25, 10)), (">", (0, 3.25), (0, 2.75)),
    ("=", (2.75, 3.25), (9, 0)),
])  # fmt: skip
def test_what_may_be_and_what_must(
    op: str, may: tuple[float, float], must: tuple[float, float]
) -> None:
    """10 - 2t against 4, within 0.5."""
    source = Modeled("s", "a", LINE, 10 * S)
    segments = source.segments([row("a", 10.0, -2.0, 0)])
    condition = ("cmp", op, ("col", "a", "x"), ("num", Fraction(4)))
    items = {"id0": ("col", "a", "id")}
    for at in range(50 * MS, 10 * S, 100 * MS):
        answer = oracle.within_bounds("a", segments, condition, Fraction(1, 2), items, ("id0",), at)
        maybe = {v["__maybe"] for v in answer.certain.values()}
        inside = [low < at / S < high for low, high in (may, must)]
        if all(abs(at / S - edge) > 1e-3 for edge in (*may, *must)):
            assert maybe == ({not inside[1]} if inside[0] else set()), at


CASES = [oracle.random_case(seed) for seed in range(400)]


def test_random_cases_say_something() -> None:
    """Every family comes with its forms, and most answers are neither always empty nor full."""
    assert {c.family for c in CASES} == set(oracle.FAMILIES)
    assert {c.form for c in CASES} == {
        "relation", "changes", "sample", "slide", "tuples", "fit", "eager",
    }  # fmt: skip
    changing = 0
    for case in CASES:
        places = case.instants or range(case.since, case.until, 1_300 * MS)
        counts = {len(case.answer(at).certain) for at in places}
        changing += len(counts) > 1
    assert changing > 220


def test_texts_have_all_there_is() -> None:
    texts = " ".join(c.sql for c in CASES)
    words = "AND OR NOT BETWEEN abs( pow( HAVING coverage integral(1) ADVANCE [NOW] FIT FOR eager"
    for word in [*words.split(), "GROUP BY", "SAMPLE EVERY"]:
        assert word in texts, word


def test_a_case_is_that_of_its_seed() -> None:
    again = oracle.random_case(7)
    assert (again.sql, again.rows) == (CASES[7].sql, CASES[7].rows)


def grid_rows(case: Case) -> list[dict[str, object]]:
    """What an engine would emit that is right."""
    places = case.instants
    if not places:
        places = range(-(-case.since // case.period) * case.period, case.until, case.period)
    found = []
    for at in places:
        for values in case.answer(at).possible.values():
            plain = {c: float(v[0]) if isinstance(v, tuple) else v for c, v in values.items()}
            whole = {c: int(v) for c, v in plain.items() if c in ("n", "name") and v is not None}
            found.append({**plain, **whole, "__ts": at})
    return found


def test_the_comparison_accepts_what_is_right_and_nothing_else() -> None:
    """Rows made from the oracle pass; without one, and with another value, they do not."""
    from test_against_oracle import check

    seen = 0
    for case in CASES:
        if case.form not in ("sample", "slide", "tuples"):
            continue
        rows = grid_rows(case)
        check(case, [rows])
        sure = [r for r in rows if case.answer(r["__ts"]).certain and "u" in r]
        if len(sure) < 2 or case.answer(sure[0]["__ts"]).loose:
            continue
        seen += 1
        with pytest.raises(AssertionError):
            check(case, [[r for r in rows if r["__ts"] != sure[0]["__ts"]]])
        with pytest.raises(AssertionError):
            check(case, [[{**r, "u": 77.7} for r in rows]])
    assert seen > 40
