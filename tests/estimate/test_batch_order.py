"""Free inner joins of a SELECT, their orders, and the text that is made of them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from thalweg.estimate.batch.implied_filters import with_implied_filters
from thalweg.estimate.batch.partitioned_order import (
    PartitionedOrder,
    Tree,
    intermediate_rows,
    same_joins,
)
from thalweg.estimate.batch.rewritten import rewritten
from thalweg.estimate.batch.sizes import RowSizes, trusted
from thalweg.estimate.batch.written_join import WrittenJoin, written_join
from thalweg.estimate.hypergraph import Hypergraph, connected_sets
from thalweg.estimate.join_rows import JoinRows, from_tables
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.catalog import Catalog, Names, TableDef
from thalweg.plan.logical import Field
from thalweg.plan.types import BIGINT, DOUBLE

CATALOG = Catalog(
    tables=Names(
        {
            n: TableDef(n, (Field("x", BIGINT), Field("y", BIGINT), Field("d", DOUBLE)))
            for n in "abcd"
        }
    )
)
THREE = "FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.x"
CHAIN = Hypergraph(tuple("abcd"), (("x",), ("x", "y"), ("y", "z"), ("z",)))


def written(sql: str) -> WrittenJoin | None:
    query = parse_query(sql)
    assert hasattr(query, "from_items")
    return written_join(query, CATALOG, sql)


def joined(sql: str) -> WrittenJoin:
    found = written(sql)
    assert found is not None
    return found


def tree(*parts: int | tuple) -> Tree:  # type: ignore[type-arg]
    """A left-deep tree of inputs by number; tuples are trees of their own."""
    made = [Tree(1 << p) if isinstance(p, int) else tree(*p) for p in parts]
    found = made[0]
    for other in made[1:]:
        found = Tree(found.inputs | other.inputs, found, other)
    return found


def test_the_cheapest_tree_may_be_bushy() -> None:
    sizes = dict.fromkeys(connected_sets(CHAIN, 100), 1000.0)
    sizes |= {0b0011: 10.0, 0b1100: 10.0}
    found = PartitionedOrder(CHAIN, tuple(sizes), sizes.__getitem__).best()
    assert found.is_bushy
    assert {j.inputs for j in found.joins} == {0b0011, 0b1100, 0b1111}
    assert intermediate_rows(found, sizes.__getitem__) == 20


def test_a_shuffle_is_reused() -> None:
    """Three inputs share x: the second join finds one of its sides where it should be."""
    star = Hypergraph(tuple("abc"), (("x",), ("x",), ("x",)))
    sizes = dict.fromkeys(connected_sets(star, 100), 100.0)
    plans = PartitionedOrder(star, tuple(sizes), sizes.__getitem__)._plans()
    assert plans[0b111][frozenset("x")].cost == 2 * 100 + 3 * 100, "made, and moved once each"


def test_small_inputs_are_sent_rather_than_both_sides_moved() -> None:
    sizes = {0b001: 1e6, 0b010: 1.0, 0b100: 1e6, 0b011: 1e6, 0b110: 1e6, 0b111: 1.0}
    chain = Hypergraph(tuple("abc"), (("x",), ("x", "y"), ("y",)))
    order = PartitionedOrder(chain, tuple(sizes), sizes.__getitem__, small=0b010)
    costs = {p: plan.cost for p, plan in order._plans()[0b011].items()}
    assert costs[None] == 1e6 + 1, "only the small one moves"
    assert costs[frozenset("x")] == 1e6 + 1e6 + 1


def test_many_inputs_are_ordered_greedily() -> None:
    star = Hypergraph(
        tuple(f"r{i}" for i in range(14)),
        (tuple(f"x{i}" for i in range(13)), *((f"x{i}",) for i in range(13))),
    )

    def rows(inputs: int) -> float:
        return float(100 + inputs.bit_length() if inputs & 1 else 10.0)

    found = PartitionedOrder(star, connected_sets(star, 100), rows).greedy()
    assert found.inputs == star.whole
    assert len(list(found.joins)) == 13


def test_parts_without_a_common_key_are_joined_last() -> None:
    apart = Hypergraph(tuple("abcd"), (("x",), ("x",), ("y",), ("y",)))
    sizes = {s: float(s) for s in connected_sets(apart, 100)}
    found = PartitionedOrder(apart, tuple(sizes), sizes.__getitem__).best()
    assert {j.inputs for j in found.joins} == {0b0011, 0b1100, 0b1111}


def test_equal_intermediate_results_are_the_same_order() -> None:
    assert same_joins(tree((0, 1), 2), tree(2, (1, 0)))
    assert not same_joins(tree((0, 1), 2), tree((0, 2), 1))


def test_the_text_in_another_order() -> None:
    found = joined("SELECT count(*) FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND c.d > 5 LIMIT 3")
    assert rewritten(found, tree(0, (1, 2))) == (
        "SELECT count(*) FROM (a AS `a` JOIN (b AS `b` JOIN c AS `c` ON `b`.`y` = `c`.`y`) "
        "ON `a`.`x` = `b`.`x`) WHERE (TRUE AND TRUE AND c.d > 5) LIMIT 3"
    )


def test_implied_equalities_join_what_the_text_does_not() -> None:
    """a.x = b.x and b.x = c.x: a and c may be joined first."""
    found = joined("SELECT 1 AS one FROM a, b, c WHERE a.x = b.x AND b.x = c.x")
    text = rewritten(found, tree((0, 2), 1))
    assert "ON `a`.`x` = `c`.`x`" in text
    assert text.count(" = ") == 2, "a third one would be a key said twice"


def test_columns_of_several_types_keep_their_own_equalities() -> None:
    """BIGINT = DOUBLE is not transitive: what is implied is so as DOUBLE, and the rest stays."""
    found = joined("SELECT 1 AS one FROM a, b, c WHERE a.x = b.d AND b.d = c.x")
    text = rewritten(found, tree((0, 2), 1))
    assert "CAST(`a`.`x` AS DOUBLE) = CAST(`c`.`x` AS DOUBLE)" in text
    assert "(a.x = b.d)" in text
    assert "(b.d = c.x)" in text


def test_conditions_of_on_and_stars_are_kept() -> None:
    found = joined(
        "SELECT * FROM a JOIN b ON a.x = b.x AND a.y < b.y, c WHERE c.y = b.y OR c.x IS NULL"
    )
    text = rewritten(found, tree((2, 1), 0))
    assert text.startswith("SELECT `a`.*, `b`.*, `c`.* FROM")
    assert "(a.y < b.y)" in text
    assert "(c.y = b.y OR c.x IS NULL)" in text


def test_two_columns_of_one_input_that_are_equal() -> None:
    found = joined("SELECT 1 AS one FROM a, b, c WHERE a.x = b.x AND a.y = b.x AND c.x = b.x")
    assert "`a`.`x` = `a`.`y`" in rewritten(found, tree((1, 2), 0))


@pytest.mark.parametrize(
    ("sql", "free"),
    [
        ("SELECT 1 AS n FROM a, b WHERE a.x = b.x", None),
        (f"SELECT 1 AS n {THREE} LEFT JOIN d ON d.x = a.x", "abc"),
        (f"SELECT 1 AS n {THREE} SEMI JOIN d ON d.x = a.x", "abc"),
        ("SELECT 1 AS n FROM a LEFT JOIN b ON a.x = b.x JOIN c ON b.x = c.x", None),
        ("SELECT 1 AS n FROM a, b, c FULL JOIN d ON d.x = c.x", None),
        (f"SELECT * {THREE} LEFT JOIN d ON d.x = a.x", None),
    ],
)  # fmt: skip
def test_outer_joins_stay_where_they_are(sql: str, free: str | None) -> None:
    found = written(sql)
    assert (None if found is None else "".join(s.alias for s in found.sources)) == free
    if found is not None:
        assert found.behind in rewritten(found, tree(2, (1, 0)))


def test_filters_hold_of_all_that_share_the_key() -> None:
    found = joined("SELECT 1 AS n FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND a.x % 64 = 3")
    query = with_implied_filters(found.query, found.columns)
    assert [len(r.predicates) for r in query.inputs] == [1, 1, 0]
    assert [len(r.predicates) for r in found.query.inputs] == [1, 0, 0]


def test_bounds_far_above_estimates_are_trusted() -> None:
    """Every row of a hub joins every other: the textbook sees nothing of it."""
    hub = pa.table(
        {
            "x": [1] * 300 + list(range(2, 300)),
            "y": [1] * 300 + list(range(2, 300)),
            "d": [0.0] * 598,
        }
    )
    found = joined(
        "SELECT 1 AS n FROM a, b, c, d WHERE a.y = b.x AND b.y = c.x AND c.y = a.x AND d.x = a.x"
    )
    sizes = RowSizes(JoinRows.of(found.query, from_tables(dict.fromkeys("abcd", hub))))
    cyclic = 0b0111
    assert sizes.figure(cyclic).rows is not None
    assert (sizes.figure(cyclic).rows or 0) >= 300**3
    assert sizes.estimate(cyclic) < 300**3 / 10
    assert trusted(sizes, [cyclic]).by_bounds
