"""Cached bounds against joins counted row by row: never below, for every sub-join."""

from __future__ import annotations

from random import Random

import joins_by_hand
import pyarrow as pa
import pytest
from joins_by_hand import SHAPES

from thalweg.estimate.cached.cached_bound import cached_bound
from thalweg.estimate.cached.table_statistics import TableStatistics
from thalweg.estimate.figure import Kind
from thalweg.estimate.join_query import Attribute, Condition, JoinInput, JoinQuery

CASES = 25
LIMITS = (100, 1_500, 3_000, 6_000, 20_000, 1_000_000)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_sub_join_is_larger_than_its_bound(shape: str) -> None:
    for seed in range(CASES):
        random = Random(f"{shape} {seed}")
        query, tables = joins_by_hand.random_join(shape, random)
        true = joins_by_hand.true_sizes(query, tables)
        joins = {r.relation: list(r.attributes) for r in query.inputs}
        statistics = {
            n: TableStatistics.build(t, joins[n], None, random.choice(LIMITS))
            for n, t in tables.items()
        }
        found = cached_bound(query, statistics)
        assert found.whole.sources == tuple(r.alias for r in query.inputs)
        for part in found.sub_joins:
            assert part.figure.kind is Kind.BOUND, (seed, part)
            assert part.figure.rows is not None
            assert part.figure.rows >= true[part.sources], (seed, part, query)


def numbers(**columns: list[int | None]) -> pa.Table:
    return pa.table({n: pa.array(v, pa.int64()) for n, v in columns.items()})


def joined(*parts: str, conditions: tuple[Condition, ...] = ()) -> JoinQuery:
    """Inputs r0, r1 ... over relations t0, t1 ...; the conditions are of the first."""
    inputs = [
        JoinInput(f"r{i}", f"t{i}", tuple((n, n) for n in p), (), conditions if i == 0 else ())
        for i, p in enumerate(parts)
    ]
    return JoinQuery(tuple(inputs), tuple(Attribute(n) for n in sorted(set("".join(parts)))))


def statistics(*tables: pa.Table, limit: int = 100_000) -> dict[str, TableStatistics]:
    joins = [[n for n in t.column_names if len(n) == 1] for t in tables]
    return {
        f"t{i}": TableStatistics.build(t, j, None, limit)
        for i, (t, j) in enumerate(zip(tables, joins, strict=True))
    }


def rows_of(query: JoinQuery, known: dict[str, TableStatistics]) -> int | None:
    return cached_bound(query, known).figure.rows


def test_a_key_filtered_on_one_side_is_filtered_on_the_other() -> None:
    users = numbers(a=[*range(100)], xage=[i % 10 for i in range(100)])
    badges = numbers(a=[i % 100 for i in range(1_000)])
    query = joined("a", "a", conditions=(Condition("xage", high=0),))
    found = cached_bound(query, statistics(users, badges))
    assert found.figure.rows == 100
    assert "2^17 buckets" in found.whole.formula


def test_three_inputs_over_one_key_are_bounded_at_once() -> None:
    one = numbers(a=[1] * 100 + [2])
    other = numbers(a=[1] + [2] * 100)
    third = numbers(a=[3] * 100 + [1])
    assert rows_of(joined("a", "a", "a"), statistics(one, other, third)) == 100


def test_columns_that_go_together_are_seen_together() -> None:
    table = numbers(
        a=[*range(400)], xone=[i % 2 for i in range(400)], xtwo=[i % 2 for i in range(400)]
    )
    both = (Condition("xone", values=(0,)), Condition("xtwo", values=(1,)))
    known = statistics(table, numbers(a=[*range(400)]))
    assert rows_of(joined("a", "a", conditions=both), known) == 0
    assert rows_of(joined("a", "a", conditions=both[:1]), known) == 200


def test_values_of_a_join_column_are_found_in_their_buckets() -> None:
    known = statistics(numbers(a=[1] * 50 + [2] * 7), numbers(a=[1, 2, 3]))
    for values, rows in (((2,), 7), ((1, 2), 57), ((5,), 0)):
        assert rows_of(joined("a", "a", conditions=(Condition("a", values=values),)), known) == rows


def test_null_joins_nothing_unless_it_is_a_key() -> None:
    known = statistics(numbers(a=[None] * 30 + [1]), numbers(a=[None] * 20 + [1]))
    query = joined("a", "a")
    assert rows_of(query, known) == 1
    safe = JoinQuery(query.inputs, (Attribute("a", null_safe=True),))
    assert rows_of(safe, known) == 601


def test_an_input_without_statistics_makes_its_sub_joins_unknown() -> None:
    query = joined("a", "ab", "b")
    known = statistics(numbers(a=[1]), numbers(a=[1], b=[2]), numbers(b=[2]))
    del known["t2"]
    found = cached_bound(query, known)
    assert [s.sources for s in found.sub_joins] == [("r0", "r1"), ("r1", "r2"), ("r0", "r1", "r2")]
    assert [s.figure.kind for s in found.sub_joins] == [Kind.BOUND, Kind.UNKNOWN, Kind.UNKNOWN]
    assert "ANALYZE" in found.whole.formula


def test_connected_sub_joins_are_counted_as_in_the_source() -> None:
    tables = [numbers(a=[1]), numbers(a=[1]), numbers(a=[1], b=[1]), numbers(b=[1])]
    found = cached_bound(joined("a", "a", "ab", "b"), statistics(*tables))
    assert [len(s.sources) for s in found.sub_joins] == [2] * 4 + [3] * 3 + [4]
    assert found.sub_joins[-1].sources == ("r0", "r1", "r2", "r3")


def test_a_join_in_two_parts_is_their_product() -> None:
    tables = [numbers(a=[1] * 3), numbers(a=[1] * 2), numbers(b=[1] * 5), numbers(b=[1])]
    found = cached_bound(joined("a", "a", "b", "b"), statistics(*tables))
    assert [s.sources for s in found.sub_joins] == [
        ("r0", "r1"),
        ("r2", "r3"),
        ("r0", "r1", "r2", "r3"),
    ]
    assert found.figure.rows == 30


def test_one_input_is_bounded_by_its_rows() -> None:
    query = JoinQuery((JoinInput("r0", "t0", (), (), (Condition("xage", low=3),)),), ())
    found = cached_bound(query, statistics(numbers(a=[1, 2, 3], xage=[1, 3, 4])))
    assert found.figure.rows == 2
    assert len(found.sub_joins) == 1


def test_a_column_without_statistics_leaves_its_equality_out() -> None:
    tables = [numbers(a=[*range(10)]), numbers(a=[*range(10)])]
    known = statistics(*tables)
    known["t1"] = TableStatistics.build(tables[1], [], None, 10_000)
    assert rows_of(joined("a", "a"), known) == 100


def test_types_that_hash_otherwise_are_not_compared() -> None:
    doubles = pa.table({"a": pa.array([float(i) for i in range(10)])})
    assert rows_of(joined("a", "a"), statistics(numbers(a=[*range(10)]), doubles)) == 100


def test_a_circle_is_bounded_by_its_best_tree() -> None:
    diagonal = [*range(100)]
    tables = [numbers(**dict.fromkeys(p, diagonal)) for p in ("ab", "bc", "ac")]
    assert rows_of(joined("ab", "bc", "ac"), statistics(*tables)) == 100


def test_two_attributes_of_the_same_inputs_are_one_key() -> None:
    grid = numbers(a=[i // 30 for i in range(900)], b=[i % 30 for i in range(900)])
    found = rows_of(joined("ab", "ab"), statistics(grid, grid))
    assert found is not None
    assert 900 <= found <= 1_000  # by one of them it would be 27,000


def test_bounds_too_large_for_a_count_are_unknown() -> None:
    names = "abcdefghij"
    tables = [numbers(**{n: [1] * 10_000}) for n in names]
    assert rows_of(joined(*names), statistics(*tables)) is None


def test_many_inputs_have_a_limited_number_of_sub_joins() -> None:
    tables = [numbers(a=[1, 2]) for _ in range(9)]
    found = cached_bound(joined(*"a" * 9), statistics(*tables))
    assert len(found.sub_joins) <= 257
    assert found.whole.sources == tuple(f"r{i}" for i in range(9))
    assert found.figure.rows is not None
    assert found.figure.rows >= 2


def test_null_is_a_key_of_pair_sketches_too() -> None:
    columns = {"a": [None] * 600 + [*range(600)], "xage": [*range(1_200)]}
    known = statistics(numbers(**columns), numbers(a=[None] * 5), limit=1_500)
    assert known["t0"].pair_sketch is not None
    query = joined("a", "a")
    safe = JoinQuery(query.inputs, (Attribute("a", null_safe=True),))
    rows = rows_of(safe, known)
    assert rows is not None
    assert rows >= 3_000
    few = rows_of(query, known)
    assert few is not None
    assert few <= 600


def test_an_input_of_coarse_statistics_costs_only_its_largest_degree() -> None:
    users = numbers(a=[*range(2_000)], xage=[*range(2_000)])
    badges = numbers(a=[i // 3 for i in range(2_000)])
    skewed = numbers(a=[i // 3 for i in range(2_000)] + [1_999] * 100)
    known = statistics(users, skewed, badges)
    known["t2"] = TableStatistics.build(badges, ["a"], None, 0)
    assert known["t2"].row_sketch is None
    query = joined("a", "a", "a", conditions=(Condition("xage", high=9),))
    found = cached_bound(query, known)
    two = found.sub_joins[0].figure.rows
    assert two is not None
    assert found.figure.rows == 3 * two < 150
    assert found.whole.formula.endswith("times 3 of r2")


def test_counts_beyond_53_bits_are_rounded_up() -> None:
    table = TableStatistics.build(numbers(a=[*range(9_999)]), ["a"], None, 50_000)
    inputs = tuple(JoinInput(f"r{i}", "t", ()) for i in range(4))
    rows = cached_bound(JoinQuery(inputs, ()), {"t": table}).figure.rows
    assert rows is not None
    assert 9_999**4 <= rows <= 9_999**4 * 1.00001


def test_a_constant_that_several_keys_equal_after_a_cast_is_no_key() -> None:
    large = [2**53, 2**53 + 1]
    known = statistics(numbers(a=large), numbers(a=large))
    rounded = (Condition("a", values=(float(2**53),)),)
    assert rows_of(joined("a", "a", conditions=rounded), known) == 2
    assert rows_of(joined("a", "a", conditions=(Condition("a", values=(2**53,)),)), known) == 1
    assert rows_of(joined("a", "a", conditions=(Condition("a", values=(2**70,)),)), known) == 1


def test_a_rare_value_has_at_most_the_rows_of_the_most_frequent_of_its_code() -> None:
    table = numbers(a=[*range(4_000)], xage=[i % 1_000 for i in range(4_000)])
    known = {"t0": TableStatistics.build(table, ["a"], None, 6_000)}
    query = JoinQuery((JoinInput("r0", "t0", (), (), (Condition("xage", values=(5,)),)),), ())
    assert rows_of(query, known) == 4
