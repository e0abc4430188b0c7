"""Sizes of joins from rows at hand: exact where acyclic, never below the truth elsewhere.

THALWEG_BOUND_INSTANCES raises the number of random instances of each shape.
"""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from random_joins import TOPOLOGIES, connected, instance, joined_size

from thalweg.errors import ConfigError, TypeMismatch
from thalweg.estimate.cyclic import CyclicBounds
from thalweg.estimate.degrees import METHODS
from thalweg.estimate.exact_count import ExactCounts
from thalweg.estimate.figure import MOST
from thalweg.estimate.fresh import fresh_bound
from thalweg.estimate.hypergraph import connected_sets, members
from thalweg.estimate.join_query import Attribute, JoinInput, JoinQuery
from thalweg.estimate.join_rows import JoinRows, from_tables
from thalweg.plan import functions
from thalweg.plan.expr import Column, Predicate
from thalweg.plan.types import BIGINT

INSTANCES = int(os.environ.get("THALWEG_BOUND_INSTANCES", "25"))
CYCLIC = {"cycle", "clique", "lollipop", "triangle"}


@pytest.mark.parametrize("unique", [False, True], ids=["bags", "unique"])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_size_is_below_the_truth(topology: str, unique: bool) -> None:
    """bounds #10, #17: whole joins and all connected sub-joins, over INT, BIGINT and DOUBLE keys
    with NULL, NaN, `<=>` and filters; exact ones are the truth."""
    for seed in range(INSTANCES):
        rng = Random(f"{topology}{unique}{seed}")
        found = instance(rng, topology, unique=unique)
        bounds = fresh_bound(found.query, found.tables, buckets=rng.choice([1, 8, 64]))
        chosen = list(connected([r.attributes for r in found.query.inputs]))
        assert len(chosen) == len(bounds.subjoins)
        for inputs in chosen:
            figure = bounds.figure([f"r{i}" for i in inputs])
            assert figure.rows is not None
            if figure.kind.value == "exact":
                assert figure.rows == joined_size(found, inputs), (seed, inputs)
            else:
                truth = joined_size(found, inputs, without_nulls=True)
                assert figure.rows >= truth, (seed, inputs, str(bounds))
        assert topology in CYCLIC or bounds.kind == "exact"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("topology", ["chain", "star", "triangle", "cycle", "shared"])
def test_derivations_bound_bags_whatever_counts_their_degrees(topology: str, method: str) -> None:
    """bounds #10: the dynamic programme by itself, on acyclic joins too, for four budgets."""
    for seed in range(INSTANCES // 3 + 1):
        rng = Random(f"{topology}{seed}{method}")
        found = instance(rng, topology, unique=False, most=12)
        rows = JoinRows.of(found.query, from_tables(found.tables))
        for budget in (1, 8, 64, 512):
            bounds = CyclicBounds(rows, budget, method)
            for inputs in connected_sets(rows.graph, 1000):
                figure, formula = bounds.figure(inputs)
                truth = joined_size(found, members(inputs), without_nulls=True)
                assert figure.rows is not None
                assert figure.kind.value == ("estimate" if method == "mg_raw" else "bound")
                assert method == "mg_raw" or figure.rows >= truth, formula


def test_bounds_never_rise_with_the_budget() -> None:
    """bounds #11: each budget tries what smaller ones do."""
    for seed in range(10):
        found = instance(Random(seed), "triangle", unique=False, most=40)
        rows = JoinRows.of(found.query, from_tables(found.tables))
        sizes = [CyclicBounds(rows, 1 << b, "exact").figure(0b111)[0].rows for b in range(9)]
        assert sizes == sorted(sizes, key=lambda n: -(n or 0))


def pair(left: list[object], right: list[object], *, null_safe: bool = False) -> JoinQuery:
    inputs = tuple(JoinInput(n, n, (("k", "k"),)) for n in "ab")
    return JoinQuery(inputs, (Attribute("k", null_safe),))


def keys(values: list[object], dtype: pa.DataType) -> pa.Table:
    return pa.table({"k": pa.array(values, dtype)})


def test_null_joins_only_under_null_safe_equality() -> None:
    tables = {"a": keys([1, None, None], pa.int64()), "b": keys([None, 1, 1], pa.int32())}
    assert fresh_bound(pair([], []), tables).rows == 2
    assert fresh_bound(pair([], [], null_safe=True), tables).rows == 4


def test_zeros_and_nans_are_one_key_each() -> None:
    nan = float("nan")
    tables = {"a": keys([0.0, -0.0, nan], pa.float64()), "b": keys([nan, nan, 0.0], pa.float32())}
    assert fresh_bound(pair([], []), tables).rows == 4


def test_text_is_no_key_beside_numbers() -> None:
    tables = {"a": keys(["1"], pa.string()), "b": keys([1], pa.int64())}
    with pytest.raises(TypeMismatch, match="no keys of one join"):
        fresh_bound(pair([], []), tables)


def test_whole_numbers_that_a_double_cannot_tell_apart_make_a_bound() -> None:
    """bounds #17"""
    tables = {"a": keys([2**53, 2**53 + 1], pa.int64()), "b": keys([2.0**53], pa.float64())}
    found = fresh_bound(pair([], []), tables)
    assert (found.rows, found.kind) == (2, "bound")
    small = {"a": keys([1, 2], pa.int64()), "b": keys([2.0], pa.float64())}
    assert fresh_bound(pair([], []), small).kind == "exact"


def test_an_acyclic_join_is_exact_whatever_is_written() -> None:
    """`a.k = b.k AND b.k = c.k AND c.k = a.k` is one attribute: no cycle."""
    inputs = tuple(JoinInput(n, n, (("k", "k"),)) for n in "abc")
    tables = {n: keys([1, 1, 2], pa.int64()) for n in "abc"}
    found = fresh_bound(JoinQuery(inputs, (Attribute("k"),)), tables)
    assert (found.rows, found.kind) == (9, "exact")


def test_inputs_without_a_key_multiply() -> None:
    inputs = (*pair([], []).inputs, JoinInput("c", "c", ()))
    tables = {n: keys([1, 1], pa.int64()) for n in "abc"}
    found = fresh_bound(JoinQuery(inputs, (Attribute("k"),)), tables)
    assert (found.rows, found.kind) == (8, "exact")
    assert [s.sources for s in found.subjoins] == [("a", "b"), ("a", "b", "c")]


def test_a_condition_across_inputs_makes_a_bound_of_what_it_restricts() -> None:
    inputs = tuple(JoinInput(n, n, (("k", "k"),)) for n in "abc")
    columns = [Column(BIGINT, True, f"{n}.k") for n in "ab"]
    less = Predicate(functions.resolve("<", columns), 0)
    tables = {n: keys([1, 1], pa.int64()) for n in "abc"}
    found = fresh_bound(JoinQuery(inputs, (Attribute("k"),), (less,)), tables)
    kinds = {s.sources: s.figure.kind.value for s in found.subjoins}
    assert kinds == {
        ("a", "b"): "bound", ("a", "c"): "exact", ("b", "c"): "exact", ("a", "b", "c"): "bound",
    }  # fmt: skip


def star_of(size: int, inputs: int) -> tuple[JoinQuery, dict[str, pa.Table]]:
    """Inputs of one key: size^inputs rows."""
    names = [f"t{i}" for i in range(inputs)]
    query = JoinQuery(tuple(JoinInput(n, "t", (("k", "k"),)) for n in names), (Attribute("k"),))
    return query, {"t": keys([7] * size, pa.int64())}


@pytest.mark.parametrize(("size", "inputs"), [(97, 9), (1000, 6), (12345, 9), (3, 60)])
def test_counts_beyond_a_double_are_exact(size: int, inputs: int) -> None:
    query, tables = star_of(size, inputs)
    rows = JoinRows.of(query, from_tables(tables))
    found = ExactCounts(rows).count(rows.graph.whole)
    assert found is not None
    assert found.rows == size**inputs


def test_above_decimal_38_the_size_is_unknown() -> None:
    inputs = tuple(JoinInput(f"t{i}", "t", ()) for i in range(8))
    tables = {"t": keys([7] * 100_000, pa.int64())}
    found = fresh_bound(JoinQuery(inputs, ()), tables)
    assert (found.rows, found.kind) == (None, "unknown")
    assert found.table.column("rows")[-1].as_py() is None
    assert 100_000**7 < MOST < 100_000**8
    assert fresh_bound(JoinQuery(inputs[:7], ()), tables).rows == 100_000**7


def test_the_table_has_the_promised_columns() -> None:
    query, tables = star_of(10, 3)
    table = fresh_bound(query, tables).table
    assert table.schema == pa.schema(
        [
            ("sources", pa.list_(pa.string())), ("rows", pa.decimal128(38, 0)),
            ("kind", pa.string()), ("basis", pa.string()), ("degrees", pa.string()),
            ("formula", pa.string()),
        ]
    )  # fmt: skip
    assert table.num_rows == 4
    assert table.column("sources")[-1].as_py() == ["t0", "t1", "t2"]
    assert set(table.column("basis").to_pylist()) == {"fresh"}


def test_the_sub_join_that_explodes_is_named() -> None:
    inputs = (
        JoinInput("a", "a", (("k", "k"),)),
        JoinInput("b", "b", (("k", "k"), ("m", "m"))),
        JoinInput("c", "c", (("m", "m"),)),
    )
    tables = {
        "a": keys([1] * 50, pa.int64()),
        "b": pa.table({"k": [1] * 40 + [2], "m": list(range(41))}),
        "c": pa.table({"m": [1, 2]}),
    }
    found = fresh_bound(JoinQuery(inputs, (Attribute("k"), Attribute("m"))), tables)
    assert "a ⋈ b explodes: exactly 2,000 rows" in found.advice
    assert "filter frequent keys" in found.advice
    calm = fresh_bound(JoinQuery(inputs[1:], (Attribute("m"),)), {n: tables[n] for n in "bc"})
    assert calm.advice == "no sub-join is larger than the parts it is made of"


def test_unknown_methods_are_refused() -> None:
    query, tables = star_of(10, 2)
    with pytest.raises(ConfigError, match="not counted by guessing"):
        fresh_bound(query, tables, degrees="guessing")


def test_agm_bounds_dense_unique_triangles_best() -> None:
    """bounds #5: over a full grid of 16 x 16 the fractional term is the truth."""
    grid = [(i, j) for i in range(16) for j in range(16)]
    edges = TOPOLOGIES["triangle"]
    inputs = tuple(
        JoinInput(f"r{i}", f"r{i}", tuple((a, a) for a in e)) for i, e in enumerate(edges)
    )
    tables = {
        f"r{i}": pa.table({a: [g[n] for g in grid] for n, a in enumerate(e)})
        for i, e in enumerate(edges)
    }
    found = fresh_bound(JoinQuery(inputs, tuple(map(Attribute, "xyz"))), tables, buckets=1)
    assert found.rows == 16**3
    twice = replace(inputs[0], relation="twice")
    tables["twice"] = pa.concat_tables([tables["r0"]] * 2)
    bags = fresh_bound(
        JoinQuery((twice, *inputs[1:]), tuple(map(Attribute, "xyz"))), tables, buckets=1
    )
    assert bags.rows is not None
    assert bags.rows >= 2 * 16**3


def test_a_join_of_many_inputs_lists_one_order() -> None:
    """A clique of 16 inputs has 65,519 sub-joins; prefixes of one order bound the whole."""
    query, tables = star_of(2, 16)
    found = fresh_bound(query, tables)
    assert (found.rows, found.kind) == (2**16, "exact")
    assert len(found.subjoins) == 15


def test_keys_of_several_columns() -> None:
    rng = np.random.default_rng(3)
    tables = {n: pa.table({c: rng.integers(0, 400, 3000) for c in "xyz"}) for n in ("a", "b")}
    inputs = tuple(JoinInput(n, n, tuple((c, c) for c in "xyz")) for n in ("a", "b"))
    query = JoinQuery(inputs, tuple(map(Attribute, "xyz")))
    shared = pa.concat_tables([tables["a"].slice(0, 100), tables["b"]])
    counted: dict[tuple[object, ...], int] = {}
    for row in zip(*shared.to_pydict().values(), strict=True):
        counted[row] = counted.get(row, 0) + 1
    truth = sum(counted.get(r, 0) for r in zip(*tables["a"].to_pydict().values(), strict=True))
    assert fresh_bound(query, {"a": tables["a"], "b": shared}).rows == truth
