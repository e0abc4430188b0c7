"""The reference evaluator against results worked out by hand from the definition."""

from __future__ import annotations

import math
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.aggregates import AGGREGATE_KINDS
from thalweg.plan.expr import AggregateCall, Call, Column, Expr, Literal, Predicate
from thalweg.plan.logical import (
    Aggregate,
    Emit,
    EmitKind,
    Field,
    Filter,
    Join,
    Named,
    NamedAggregate,
    Node,
    Project,
    Scan,
    Window,
)
from thalweg.plan.types import BIGINT, BOOLEAN, DOUBLE, STRING, DataType
from thalweg.testing.clock import Clock
from thalweg.testing.compare import canonical, difference, from_table
from thalweg.testing.reference import ReferenceResult, ReferenceStream, evaluate_query
from thalweg.windows.protocol import WindowSpec
from thalweg.windows.range import NOW, UNBOUNDED, RangeWindow
from thalweg.windows.rows import RowWindow

TYPES = {"k": BIGINT, "n": BIGINT, "x": DOUBLE, "s": STRING}
ISTREAM, DSTREAM = EmitKind.ISTREAM, EmitKind.DSTREAM
RSTREAM, RELATION = EmitKind.RSTREAM, EmitKind.RELATION


def stream(*rows: tuple[int, Any], column: str = "k", order_by=()) -> ReferenceStream:
    """Rows of one column, or of several when the value is a dictionary."""
    return ReferenceStream(
        tuple((ts, v if isinstance(v, dict) else {column: v}) for ts, v in rows), order_by
    )


def scan(columns: str = "k", alias: str = "a", relation: str = "s", table: bool = False) -> Scan:
    fields = tuple(Field(f"{alias}.{c}", TYPES[c]) for c in columns)
    return Scan(relation, alias, fields, table)


def col(name: str) -> Column:
    return Column(TYPES[name[-1]], True, name)


def num(value: Any, dtype: DataType = BIGINT) -> Literal:
    return Literal(dtype, False, value)


KINDS = {k.name: k for k in AGGREGATE_KINDS}


def op(name: str, *args: Expr, type: DataType = BOOLEAN) -> Call:
    return Call(type, True, name, args)


def where(node: Node, *conditions: tuple[str, Expr]) -> Filter:
    return Filter(node, tuple(Predicate(e, i, t) for i, (t, e) in enumerate(conditions)))


def pick(node: Node, *names: str) -> Project:
    return Project(node, tuple(Named(n.replace(".", "_"), col(n)) for n in names))


def agg(name: str, function: str, argument: Expr | None, dtype: DataType) -> NamedAggregate:
    return NamedAggregate(
        name, AggregateCall(dtype, True, KINDS[function], () if argument is None else (argument,))
    )


def run(
    kind: EmitKind, node: Node, *streams: ReferenceStream, tables=None, horizon=None
) -> ReferenceResult:
    named = dict(zip(("s", "r", "q"), streams, strict=False))
    return evaluate_query(Emit(node, kind), named, tables or {}, horizon=horizon)


def windowed(kind: EmitKind, window: WindowSpec, *streams: ReferenceStream, **more: Any) -> list:
    """What `SELECT kind k FROM s [window]` emits, as (ts, sign, k)."""
    result = run(kind, pick(Window(scan(), window), "a.k"), *streams, **more)
    return [(ts, sign, values[0]) for ts, sign, values in result.emitted]


# --- windows


def test_a_range_is_closed_at_both_ends():
    s = stream((0, 1), (5, 2), (6, 3))
    assert windowed(RELATION, RangeWindow(5), s) == [(0, 1, 1), (5, 1, 2), (6, -1, 1), (6, 1, 3)]


def test_nothing_after_the_largest_timestamp_is_processed():
    s = stream((0, 1), (3, 2))
    assert windowed(DSTREAM, RangeWindow(5), s) == []
    assert windowed(DSTREAM, RangeWindow(5), s, horizon=100) == [(6, 1, 1), (9, 1, 2)]


def test_an_earlier_horizon_stops_earlier():
    assert windowed(ISTREAM, UNBOUNDED, stream((0, 1), (3, 2)), horizon=2) == [(0, 1, 1)]


def test_expiry_falls_between_arrivals():
    assert windowed(DSTREAM, RangeWindow(2), stream((0, 1), (9, 2))) == [(3, 1, 1)]


def test_now_holds_one_instant():
    s = stream((1, 7), (1, 8), (4, 9))
    assert windowed(RELATION, NOW, s) == [
        (1, 1, 7), (1, 1, 8), (2, -1, 7), (2, -1, 8), (4, 1, 9),
    ]  # fmt: skip


def test_what_vanishes_and_returns_in_adjacent_instants_is_not_emitted_again():
    """streamon 1.2: ISTREAM is R(τ) - R(τ-1), so equal rows of [NOW] at τ and τ+1 net out."""
    s = stream((1, 7), (2, 7), (4, 7))
    assert windowed(ISTREAM, NOW, s) == [(1, 1, 7), (4, 1, 7)]
    assert windowed(DSTREAM, NOW, s) == [(3, 1, 7)]


def test_differences_are_bags():
    s = stream((1, 7), (2, 7), (2, 7))
    assert windowed(ISTREAM, NOW, s) == [(1, 1, 7), (2, 1, 7)]


def test_a_full_row_window_exchanges_rows_at_the_same_timestamp():
    """streamon 1.3 rule 2: the new row's plus and the oldest row's minus share τ."""
    s = stream((1, 1), (2, 2), (3, 3))
    assert windowed(RELATION, RowWindow(2), s) == [(1, 1, 1), (2, 1, 2), (3, -1, 1), (3, 1, 3)]


def test_rows_that_come_and_go_within_an_instant_were_never_there():
    s = stream((1, 30), (1, 10), (1, 20), (2, 5))
    assert windowed(RELATION, RowWindow(2), s) == [(1, 1, 20), (1, 1, 30), (2, -1, 20), (2, 1, 5)]


def test_order_by_comes_before_content():
    rows = ((1, {"k": 1, "n": 9}), (1, {"k": 2, "n": 1}))
    assert windowed(ISTREAM, RowWindow(1), stream(*rows)) == [(1, 1, 2)]
    assert windowed(ISTREAM, RowWindow(1), stream(*rows, order_by=("n",))) == [(1, 1, 1)]


def test_the_tie_break_sees_columns_the_scan_no_longer_lists():
    s = stream((1, {"n": 2, "k": 1}), (1, {"n": 1, "k": 2}))
    assert windowed(ISTREAM, RowWindow(1), s) == [(1, 1, 1)]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("x", [None, -math.inf, -1.0, 2.5, math.inf, math.nan]),
        ("s", [None, "", "Z", "a", "ä", "\uffff", "\U0001f600"]),
        ("b", [None, False, True]),
    ],
)
def test_the_tie_break_order(column, values):
    expected = [{column: v} for v in values]
    s = stream(*((1, row) for row in reversed(expected)))
    assert [row for _, row in s.ordered()] == expected


def test_partitions_keep_their_own_last_rows():
    values = (0.0, -0.0, None, math.nan, None, math.nan)
    rows = [(i, {"x": x, "k": i}) for i, x in enumerate(values, 1)]
    assert windowed(DSTREAM, RowWindow(1, ("a.x",)), stream(*rows)) == [
        (2, 1, 1), (5, 1, 3), (6, 1, 4),
    ]  # fmt: skip


def test_a_slide_as_long_as_the_range_tumbles():
    s = stream((1, 1), (9, 2), (10, 3), (12, 4))
    assert windowed(RELATION, RangeWindow(10, 10), s) == [
        (10, 1, 1), (10, 1, 2), (20, -1, 1), (20, -1, 2), (20, 1, 3), (20, 1, 4),
    ]  # fmt: skip


def test_the_horizon_is_the_first_boundary_after_the_last_row():
    assert windowed(ISTREAM, RangeWindow(10, 10), stream((10, 1))) == [(20, 1, 1)]
    assert windowed(DSTREAM, RangeWindow(10, 10), stream((10, 1))) == []
    assert windowed(DSTREAM, RangeWindow(10, 10), stream((10, 1)), horizon=30) == [(30, 1, 1)]


def test_slides_may_overlap_skip_and_lie_before_1970():
    assert windowed(RELATION, RangeWindow(4, 2), stream((1, 1), (9, 2))) == [
        (2, 1, 1), (6, -1, 1), (10, 1, 2),
    ]  # fmt: skip
    assert windowed(ISTREAM, RangeWindow(1, 4), stream((2, 1), (3, 2))) == [(4, 1, 2)]
    assert windowed(ISTREAM, RangeWindow(5, 5), stream((-3, 1))) == [(0, 1, 1)]


def test_no_rows_emit_nothing():
    total = Aggregate(Window(scan(), NOW), (), (agg("c", "count", None, BIGINT),))
    assert run(RELATION, Project(total, (Named("c", col_of("c", BIGINT)),)), stream()).emitted == []


# --- RSTREAM


def test_rstream_emits_everything_at_each_arrival_before_any_filter():
    positive = where(Window(scan(), RangeWindow(3)), ("k > 0", op(">", col("a.k"), num(0))))
    result = run(RSTREAM, pick(positive, "a.k"), stream((0, 1), (2, -1), (5, 3)))
    assert result.emitted == [(0, 1, (1,)), (2, 1, (1,)), (5, 1, (3,))]


def test_rstream_over_a_slide_emits_at_boundaries_only():
    assert windowed(RSTREAM, RangeWindow(4, 2), stream((1, 1), (5, 2))) == [
        (2, 1, 1), (4, 1, 1), (6, 1, 2),
    ]  # fmt: skip
    # 1 lies in [6-4, 6) no more; no emission at 5 although a row arrived


def test_rstream_with_both_kinds_of_windows():
    both = Join(
        (Window(scan(), UNBOUNDED), Window(scan(alias="b", relation="r"), RangeWindow(4, 4)))
    )
    result = run(RSTREAM, pick(both, "a.k", "b.k"), stream((1, 1), (6, 2)), stream((2, 9)))
    assert result.emitted == [(4, 1, (1, 9)), (6, 1, (1, 9)), (6, 1, (2, 9))]


# --- joins


def test_a_join_is_the_product_with_its_predicates():
    join = Join(
        (Window(scan(), RangeWindow(2)), Window(scan(alias="b", relation="r"), RowWindow(1))),
        (Predicate(op("=", col("a.k"), col("b.k")), 0),),
    )
    left, right = stream((1, 5), (2, None), (9, 5)), stream((3, 5), (4, None))
    result = run(RELATION, pick(join, "a.k", "b.k"), left, right)
    assert result.emitted == [(3, 1, (5, 5)), (4, -1, (5, 5))]
    assert not result.rejected


def test_a_row_pairs_with_itself_and_nan_joins_nan():
    join = Join(
        (Window(scan("x"), NOW), Window(scan("x", alias="b"), UNBOUNDED)),
        (Predicate(op("=", col("a.x"), col("b.x")), 0),),
    )
    result = run(ISTREAM, pick(join, "a.x", "b.x"), stream((1, math.nan), (3, 0.0), column="x"))
    assert canonical(result.emitted) == canonical(
        [(1, 1, (math.nan, math.nan)), (3, 1, (-0.0, 0.0))]
    )


def test_tables_are_there_from_the_start():
    join = Join((Window(scan(), RowWindow(1)), scan("n", "t", "t", table=True)))
    result = run(ISTREAM, pick(join, "a.k", "t.n"), stream((4, 1), (6, 2)),
                 tables={"t": [{"k": 0, "n": 7}, {"k": 0, "n": 8}]})  # fmt: skip
    assert result.emitted == [(4, 1, (1, 7)), (4, 1, (1, 8)), (6, 1, (2, 7)), (6, 1, (2, 8))]


# --- errors


DIVIDES = ("10 / k > 1", op(">", op("/", num(10), col("a.k"), type=DOUBLE), num(1.0, DOUBLE)))
MODULO = ("7 % k = 1", op("=", op("%", num(7), col("a.k"), type=BIGINT), num(1)))


def test_error_and_true_rejects_error_and_false_drops():
    for small in (5, 0):
        below = (f"k > -{small}", op(">", col("a.k"), num(-small)))
        result = run(
            ISTREAM, pick(where(Window(scan(), RangeWindow(3)), DIVIDES, below), "a.k"),
            stream((1, 0), (9, 3)),
        )  # fmt: skip
        assert result.emitted == [(9, 1, (3,))]
        assert result.rejected == (
            Counter({("10 / k > 1", "division by zero"): 1}) if small else {}
        )


def test_error_and_null_drops():
    unknown = ("n > 0", op(">", col("a.n"), num(0)))
    node = pick(where(Window(scan("kn"), UNBOUNDED), DIVIDES, unknown), "a.k")
    assert not run(ISTREAM, node, stream((1, {"k": 0, "n": None}))).rejected
    assert run(ISTREAM, node, stream((1, {"k": 0, "n": 1}))).rejected.total() == 1


def test_the_first_erring_predicate_in_text_order_is_named_wherever_it_stands():
    first, second = Predicate(MODULO[1], 0, MODULO[0]), Predicate(DIVIDES[1], 1, DIVIDES[0])
    for upper, lower in ((first, second), (second, first)):
        node = Filter(Window(Filter(scan(), (lower,)), UNBOUNDED), (upper,))
        result = run(ISTREAM, pick(node, "a.k"), stream((1, 0), (1, 0)))
        assert result.rejected == {("7 % k = 1", "division by zero"): 2}
        assert result.rejections == [(1, "7 % k = 1", "division by zero")] * 2


def test_a_combination_is_rejected_once_not_once_per_instant():
    join = Join((Window(scan(), UNBOUNDED), Window(scan(alias="b", relation="r"), UNBOUNDED)))
    node = pick(where(join, DIVIDES), "a.k", "b.k")
    result = run(ISTREAM, node, stream((1, 0)), stream((2, 1), (3, 1), (5, 1)))
    assert [ts for ts, _, _ in result.rejections] == [2, 3, 5]


def test_a_predicate_pushed_below_a_join_rejects_only_rows_of_the_product():
    pushed = Window(Filter(scan(), (Predicate(DIVIDES[1], 0, DIVIDES[0]),)), UNBOUNDED)
    equal = Predicate(op("=", col("a.k"), col("b.k")), 1)
    join = Join((pushed, Window(scan(alias="b", relation="r"), UNBOUNDED)), (equal,))
    result = run(ISTREAM, pick(join, "a.k"), stream((1, 0)), stream((2, 1), (3, 0)))
    assert result.rejections == [(3, "10 / k > 1", "division by zero")]


def test_a_filter_below_a_row_window_acts_before_it():
    positive = Predicate(op(">", col("a.k"), num(0)), 0)
    below = Window(Filter(scan(), (positive,)), RowWindow(1))
    above = Filter(Window(scan(), RowWindow(1)), (positive,))
    s = stream((1, 1), (2, -1), (3, 2))
    assert run(RELATION, pick(below, "a.k"), s).emitted == [
        (1, 1, (1,)), (3, -1, (1,)), (3, 1, (2,)),
    ]  # fmt: skip
    assert run(RELATION, pick(above, "a.k"), s).emitted == [
        (1, 1, (1,)), (2, -1, (1,)), (3, 1, (2,)),
    ]  # fmt: skip


def test_an_error_in_a_projection_rejects_the_output_row():
    ratio = op("/", num(10), col("a.k"), type=DOUBLE)
    node = Project(Window(scan(), UNBOUNDED), (Named("k", col("a.k")), Named("ratio", ratio)))
    result = run(ISTREAM, node, stream((1, 0), (2, 5)))
    assert result.emitted == [(2, 1, (5, 2.0))]
    assert result.rejected == {("ratio", "division by zero"): 1}


# --- aggregates


def col_of(name: str, dtype: DataType) -> Column:
    return Column(dtype, True, name)


def totals(
    node: Node, *aggregates: NamedAggregate, keys: tuple[Named, ...] = (), having=()
) -> Project:
    grouped: Node = Aggregate(node, keys, aggregates)
    if having:
        grouped = where(grouped, *having)
    names = [*keys, *aggregates]
    return Project(grouped, tuple(Named(a.name, col_of(a.name, a.field().type)) for a in names))


COUNT = agg("c", "count", None, BIGINT)
SUM_N = agg("sum_n", "sum", col("a.n"), BIGINT)


def test_a_global_aggregate_has_a_row_over_nothing():
    node = totals(Window(scan("n"), NOW), COUNT, SUM_N)
    result = run(RELATION, node, stream((1, 5), (4, None), column="n"))
    assert result.emitted == [
        (1, 1, (1, 5)), (2, -1, (1, 5)), (2, 1, (0, None)), (4, -1, (0, None)), (4, 1, (1, None)),
    ]  # fmt: skip


def test_a_global_aggregate_starts_with_the_first_row_of_any_stream():
    join = Join((Window(scan(), UNBOUNDED), Window(scan(alias="b", relation="r"), UNBOUNDED)))
    assert run(ISTREAM, totals(join, COUNT), stream((5, 1)), stream((2, 1))).emitted == [
        (2, 1, (0,)), (5, 1, (1,)),
    ]  # fmt: skip


def test_a_slide_aggregates_nothing_until_its_first_boundary():
    node = totals(Window(scan(), RangeWindow(10, 10)), COUNT)
    assert run(ISTREAM, node, stream((3, 1), (4, 1))).emitted == [(3, 1, (0,)), (10, 1, (2,))]


def test_groups_vanish_with_their_last_row():
    node = totals(Window(scan(), RangeWindow(1)), COUNT, keys=(Named("k", col("a.k")),))
    assert run(RELATION, node, stream((0, 1), (1, 1), (2, None), (9, 2))).emitted == [
        (0, 1, (1, 1)), (1, -1, (1, 1)), (1, 1, (1, 2)),
        (2, -1, (1, 2)), (2, 1, (None, 1)), (2, 1, (1, 1)),
        (3, -1, (1, 1)), (4, -1, (None, 1)), (9, 1, (2, 1)),
    ]  # fmt: skip


def test_group_keys_equal_as_values_do():
    node = totals(Window(scan("x"), UNBOUNDED), COUNT, keys=(Named("x", col("a.x")),))
    rows = [(1, v) for v in (0.0, -0.0, math.nan, -math.nan, None, None)]
    result = run(ISTREAM, node, stream(*rows, column="x"))
    assert canonical(result.emitted) == canonical(
        [(1, 1, (0.0, 2)), (1, 1, (math.nan, 2)), (1, 1, (None, 2))]
    )


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([0.1] * 10, 1.0),
        ([1e300, 1.0, -1e300], 1.0),
        ([1e308, 1e308], math.inf),
        ([1e308, 1e308, -1e308], 1e308),
        ([2.0**53, 1.0, 1.0], 2.0**53 + 2),
        ([math.inf, 1.0], math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, 1.0], math.nan),
        ([None, None], None),
        ([-0.0], 0.0),
    ],
)
def test_sums_of_doubles_are_exact_and_rounded_once(values, total):
    node = totals(
        Window(scan("x"), UNBOUNDED),
        agg("sum_x", "sum", col("a.x"), DOUBLE), agg("avg_x", "avg", col("a.x"), DOUBLE),
    )  # fmt: skip
    result = run(ISTREAM, node, stream(*((1, v) for v in values), column="x"))
    mean = None if total is None else total / len(values)
    assert difference([(1, 1, (total, mean))], result.emitted) is None


def test_integer_sums_overflow_and_averages_do_not():
    average = agg("avg_n", "avg", col("a.n"), DOUBLE)
    big = stream((1, 1 << 62), (2, 1 << 62), (3, -1), column="n")
    window = Window(scan("n"), UNBOUNDED)
    assert run(RSTREAM, totals(window, average), big).emitted[1] == (2, 1, (2.0**62,))
    result = run(RELATION, totals(window, SUM_N), big)
    assert result.emitted == [
        (1, 1, (1 << 62,)), (2, -1, (1 << 62,)), (3, 1, ((1 << 63) - 1,)),
    ]  # fmt: skip
    assert result.rejections == [(2, "sum(a.n)", "overflow")]


def test_extremes():
    def extremes(column: str, *values: Any) -> tuple[Any, ...]:
        dtype = TYPES[column]
        low = agg("low", "min", col(f"a.{column}"), dtype)
        high = agg("high", "max", col(f"a.{column}"), dtype)
        node = totals(Window(scan(column), UNBOUNDED), low, high)
        return run(ISTREAM, node, stream(*((1, v) for v in values), column=column)).emitted[0][2]

    assert extremes("x", math.nan, 2.0, None, math.inf)[0] == 2.0
    assert math.isnan(extremes("x", math.nan, 2.0, math.inf)[1])
    assert math.copysign(1, extremes("x", -0.0)[0]) == 1
    assert extremes("s", "b", "ä", "", None) == ("", "ä")


def test_an_error_in_an_argument_or_key_rejects_the_row_altogether():
    ratio = op("/", num(10), col("a.k"), type=DOUBLE)
    node = totals(Window(scan(), UNBOUNDED), COUNT, agg("r", "sum", ratio, DOUBLE))
    result = run(ISTREAM, node, stream((1, 0), (2, 5)))
    assert result.emitted == [(1, 1, (0, None)), (2, 1, (1, 2.0))]
    assert result.rejected == {("(10 / a.k)", "division by zero"): 1}
    grouped = totals(Window(scan(), UNBOUNDED), COUNT, keys=(Named("r", ratio),))
    result = run(ISTREAM, grouped, stream((1, 0), (2, 5)))
    assert result.emitted == [(2, 1, (2.0, 1))]
    assert result.rejected == {("(10 / a.k)", "division by zero"): 1}


def test_having_filters_groups():
    several = ("count(*) > 1", op(">", col_of("c", BIGINT), num(1)))
    node = totals(Window(scan(), RangeWindow(2)), COUNT, keys=(Named("k", col("a.k")),),
                  having=(several,))  # fmt: skip
    assert run(RELATION, node, stream((0, 1), (2, 1), (3, 2))).emitted == [
        (2, 1, (1, 2)), (3, -1, (1, 2)),
    ]  # fmt: skip


def test_a_group_is_judged_again_only_when_it_changes():
    inverse = op("/", num(1), col_of("sum_n", BIGINT), type=DOUBLE)
    having = ("1 / sum(n) > 0", op(">", inverse, num(0.0, DOUBLE)))
    node = totals(Window(scan("kn"), UNBOUNDED), SUM_N, keys=(Named("k", col("a.k")),),
                  having=(having,))  # fmt: skip
    rows = [(1, {"k": 1, "n": 0}), (2, {"k": 2, "n": 4}), (3, {"k": 1, "n": 1}),
            (4, {"k": 1, "n": -1})]  # fmt: skip
    result = run(ISTREAM, node, stream(*rows))
    assert result.emitted == [(2, 1, (2, 4)), (3, 1, (1, 1))]
    assert [ts for ts, _, _ in result.rejections] == [1, 4]


# --- the rest


def test_output_rows_compare_as_values_do():
    s = stream((1, math.nan), (2, math.nan), (3, 0.0), (4, -0.0), (5, None), (6, None), column="x")
    result = run(ISTREAM, pick(Window(scan("x"), NOW), "a.x"), s)
    assert [ts for ts, _, _ in result.emitted] == [1, 3, 5]


def test_sparse_timestamps_cost_nothing():
    year = 365 * 86_400_000_000
    result = run(RELATION, pick(Window(scan(), RangeWindow(10, 10)), "a.k"),
                 stream((0, 1), (year, 2)))  # fmt: skip
    assert len(result.snapshots) < 10


def test_streams_and_results_convert_from_tables():
    table = pa.table({"ts": pa.array([5], pa.timestamp("us", "UTC")), "k": [1]})
    assert ReferenceStream.from_table(table).rows == ((5, {"ts": 5, "k": 1}),)
    results = pa.table({"d": pa.array([3], pa.date32()), "x": [-0.0],
                        "__ts": pa.array([7], pa.timestamp("us")), "__sign": [-1]})  # fmt: skip
    assert from_table(results) == [(7, -1, (3, -0.0))]
    assert from_table(results.drop_columns(["__sign"])) == [(7, 1, (3, -0.0))]


def test_a_difference_is_readable():
    expected = [(1, 1, (1, math.nan)), (2, 1, (0.0, None)), (2, 1, (0.0, None))]
    assert difference(expected, canonical(reversed(expected))) is None
    text = difference(expected, [(2, 1, (-0.0, None)), (3, -1, ("a",))])
    assert text is not None
    assert text.splitlines() == [
        "expected 3 rows, got 2", "missing 2:", "  ts=1 +1 (1, nan)", "  ts=2 +1 (0.0, None)",
        "extra 1:", "  ts=3 -1 ('a',)",
    ]  # fmt: skip
    assert "and 5 more" in str(difference([(i, 1, ()) for i in range(15)], []))


@pytest.mark.parametrize("kind", EmitKind)
@pytest.mark.parametrize(
    "window",
    [NOW, RangeWindow(4), RangeWindow(6, 3), RangeWindow(2, 5), UNBOUNDED, RowWindow(2),
     RowWindow(1, ("a.k",))],
    ids=str,
)  # fmt: skip
def test_skipping_the_quiet_instants_changes_nothing(kind, window, monkeypatch):
    rng = Random(f"{kind} {window}")
    left, right = (
        stream(*((rng.randint(-5, 25), rng.choice((0, 1, 2, None))) for _ in range(12)))
        for _ in range(2)
    )
    join = Join(
        (Window(scan(), window), Window(scan(alias="b", relation="r"), RangeWindow(3))),
        (Predicate(op("=", col("a.k"), col("b.k")), 0), Predicate(DIVIDES[1], 1, DIVIDES[0])),
    )
    node = pick(join, "a.k", "b.k")
    sparse = run(kind, node, left, right)
    monkeypatch.setattr(Clock, "instants", lambda c: list(range(c.start, c.horizon + 1)))
    dense = run(kind, node, left, right)
    assert sparse.emitted == dense.emitted
    assert sparse.rejections == dense.rejections
