"""Enumeration of sub-joins and the cheapest tree by bounds."""

from __future__ import annotations

from thalweg.estimate.hypergraph import Hypergraph, connected_sets
from thalweg.estimate.join_order import best_order

EXAMPLE = Hypergraph(("R1", "R2", "R3", "R4"), (("x1",), ("x1",), ("x1", "x2"), ("x2",)))


def test_sub_joins_of_the_example() -> None:
    """bounds #13: four of two inputs, three of three, the whole; no products."""
    found = [s for s in connected_sets(EXAMPLE, 100) if s & (s - 1)]
    by_size = [sum(s.bit_count() == n for s in found) for n in (2, 3, 4)]
    assert by_size == [4, 3, 1]
    assert all(EXAMPLE.is_connected(s) for s in found)
    assert EXAMPLE.named(0b1001) == ("R1", "R4")
    assert 0b1001 not in found, "R1 and R4 share no attribute"


def test_a_chain_of_four_has_five_sub_joins_below_the_whole() -> None:
    chain = Hypergraph(tuple("abcd"), (("x",), ("x", "y"), ("y", "z"), ("z",)))
    assert sum(1 < s.bit_count() < 4 for s in connected_sets(chain, 100)) == 5


def test_a_bushy_tree_is_found() -> None:
    """bounds #13: the middle join explodes, those at the ends are small."""
    chain = Hypergraph(tuple("abcd"), (("x",), ("x", "y"), ("y", "z"), ("z",)))
    rows = dict.fromkeys(connected_sets(chain, 100), 1000.0)
    rows.update({0b0011: 10.0, 0b1100: 10.0, 0b1111: 100.0})
    found = best_order(chain, rows)
    assert found.is_bushy
    assert found.text(chain) in ("((c ⋈ d) ⋈ (a ⋈ b))", "((d ⋈ c) ⋈ (b ⋈ a))")
    assert found.cost == 120


def test_a_linear_tree_where_it_is_cheaper() -> None:
    chain = Hypergraph(tuple("abc"), (("x",), ("x", "y"), ("y",)))
    rows = {0b001: 5.0, 0b010: 5.0, 0b100: 5.0, 0b011: 100.0, 0b110: 2.0, 0b111: 50.0}
    found = best_order(chain, rows)
    assert not found.is_bushy
    assert found.left is not None
    assert found.cost == 52
