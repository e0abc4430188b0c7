"""Filters that go through keys, and key joins that cannot enlarge a result."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from thalweg.estimate.exact_count import ExactCounts
from thalweg.estimate.fresh import fresh_bound
from thalweg.estimate.join_query import Attribute, JoinInput, JoinQuery
from thalweg.estimate.join_rows import JoinRows, from_tables
from thalweg.estimate.reduction import reduced
from thalweg.plan import functions
from thalweg.plan.expr import Column, Literal, Predicate
from thalweg.plan.types import BIGINT


def below(alias: str, cut: int) -> tuple[Predicate, ...]:
    args = [Column(BIGINT, True, f"{alias}.v"), Literal(BIGINT, False, cut)]
    return (Predicate(functions.resolve("<", args), 0),)


def keyed_triangle(cut: int, rng: Random) -> tuple[JoinQuery, dict[str, pa.Table]]:
    """A triangle r, s, t over x, y, z, and a relation p with each x once, filtered."""
    edges = {"r": "xy", "s": "yz", "t": "zx", "p": "x"}
    inputs = tuple(
        JoinInput(n, n, tuple((a, a) for a in e), below("p", cut) if n == "p" else ())
        for n, e in edges.items()
    )
    tables = {
        n: pa.table({a: pa.array([rng.randrange(8) for _ in range(120)]) for a in e})
        for n, e in edges.items()
        if n != "p"
    }
    tables["p"] = pa.table({"x": list(range(8)), "v": list(range(8))})
    return JoinQuery(inputs, tuple(map(Attribute, "xyz"))), tables


def size(query: JoinQuery, tables: dict[str, pa.Table], cut: int) -> int:
    rows = {n: t.to_pylist() for n, t in tables.items()}
    return sum(
        r["x"] < cut
        for r in rows["r"]
        for s in rows["s"]
        if s["y"] == r["y"]
        for t in rows["t"]
        if t["z"] == s["z"] and t["x"] == r["x"]
    )


def test_a_filter_on_one_key_removes_relation_and_attribute() -> None:
    """bounds #14: one key of x is left, so that the triangle becomes a chain, which is counted."""
    query, tables = keyed_triangle(1, Random(1))
    rows = JoinRows.of(query, from_tables(tables))
    found = reduced(rows)
    assert found.rows.graph.names == ("r", "s", "t")
    assert set(found.rows.graph.attributes) == {"y", "z"}
    assert found.notes[0] == "p replaced by x IN (1 keys)"
    assert found.is_exact
    bounds = fresh_bound(query, tables)
    assert (bounds.rows, bounds.kind) == (size(query, tables, 1), "exact")


def test_with_many_keys_the_relation_stays() -> None:
    """bounds #14: above the limit p is sketched from its filtered rows."""
    query, tables = keyed_triangle(6, Random(2))
    rows = JoinRows.of(query, from_tables(tables))
    assert reduced(rows, most_keys=6).rows.graph.names == ("r", "s", "t")
    kept = reduced(rows, most_keys=5)
    assert kept.rows.graph.names == ("r", "s", "t", "p")
    assert kept.notes == ()
    assert kept.rows.size(3) == 6


@pytest.mark.parametrize("cut", [0, 1, 3, 8])
def test_propagation_changes_no_result(cut: int) -> None:
    """bounds #14: with it and without, the size of an exact replacement is that of the original,
    and no bound is below it."""
    for seed in range(10):
        query, tables = keyed_triangle(cut, Random(seed))
        truth = size(query, tables, cut)
        with_it = fresh_bound(query, tables)
        without = fresh_bound(query, tables, propagate_max_keys=-1)
        for found in (with_it, without):
            assert found.rows is not None
            assert found.rows == truth if found.kind == "exact" else found.rows >= truth
        assert with_it.rows is not None
        assert without.rows is not None
        assert with_it.rows <= without.rows
        ends = [s for s in with_it.subjoins if "p" not in s.sources]
        assert ends == [s for s in without.subjoins if "p" not in s.sources]


def test_dangling_key_joins_are_dropped_up_to_a_fixpoint() -> None:
    """A chain of look-ups: each removal makes the next one possible, also where keys dangle."""
    inputs = (
        JoinInput("fact", "fact", (("k", "k"), ("q", "q"))),
        JoinInput("mid", "mid", (("k", "k"), ("m", "m"))),
        JoinInput("end", "end", (("m", "m"),)),
        JoinInput("many", "many", (("q", "q"),)),
    )
    tables = {
        "fact": pa.table({"k": [1, 1, 2, 99], "q": [1, 1, 1, 1]}),
        "mid": pa.table({"k": [1, 2, 3], "m": [7, 7, 8]}),
        "end": pa.table({"m": [7, 8]}),
        "many": pa.table({"q": [1, 1]}),
    }
    query = JoinQuery(inputs, tuple(map(Attribute, "kqm")))
    rows = JoinRows.of(query, from_tables(tables))
    found = reduced(rows)
    assert found.rows.graph.names == ("fact", "many")
    assert not found.is_exact, "a reference dangles"
    counted = ExactCounts(found.rows).count(found.rows.graph.whole)
    exact = ExactCounts(rows).count(rows.graph.whole)
    assert counted is not None
    assert exact is not None
    assert (counted.rows, exact.rows) == (8, 6)
