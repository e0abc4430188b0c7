"""Bounds of joins against the truth, drawn at random from the specification alone.

Written without sight of how sizes are computed: the truth is DuckDB's, over the rows that each
window holds by its definition. THALWEG_BLIND_SEEDS is how many sets of tables are drawn.
"""

from __future__ import annotations

import os
import random
import re
from decimal import Decimal
from itertools import combinations, permutations
from typing import Any

import pyarrow as pa
import pytest
from drawn_joins import Case, World, analyze, drawn_case, drawn_outer, drawn_table

from thalweg.errors import JoinTooLarge
from thalweg.testing import Runner

SEEDS = int(os.environ.get("THALWEG_BLIND_SEEDS", "10"))
CASES = 10
COLUMNS = ["sources", "rows", "kind", "basis", "degrees", "formula"]
SAFE = ["cm_safe", "mg_safe", "sum_of_max"]
GUARANTEED = {"exact", "bound", "declared"}


def listed(bound: Any) -> list[dict[str, Any]]:
    """The rows of a bound's table, checked for what every one of them promises."""
    assert bound.table.schema.names == COLUMNS
    assert bound.table.schema.types[:2] == [pa.list_(pa.string()), pa.decimal128(38, 0)]
    rows: list[dict[str, Any]] = bound.table.to_pylist()
    for row in rows:
        kinds = GUARANTEED | {"unknown", "estimate"}
        assert row["kind"] in kinds, row
        assert row["basis"] == bound.basis
        assert (row["rows"] is None) == (row["kind"] == "unknown"), row
    assert (rows[-1]["rows"], rows[-1]["kind"]) == (bound.rows, bound.kind)
    return rows


def figures(bound: Any) -> dict[frozenset[str], tuple[Any, str]]:
    return {frozenset(r["sources"]): (r["rows"], r["kind"]) for r in listed(bound)}


def parts_of(case: Case) -> set[frozenset[str]]:
    names = list(case.inputs)
    sizes = range(2, len(names) + 1)
    subsets = [list(s) for size in sizes for s in combinations(names, size)]
    return {frozenset(s) for s in subsets if case.connected(s)} | {frozenset(names)}


def check_case(world: World, case: Case, rng: random.Random, sql: str) -> None:
    truths: dict[frozenset[str], int] = {}
    fresh = listed(world.runner.bound(sql))
    names = frozenset(case.inputs)
    found = [frozenset(r["sources"]) for r in fresh]
    assert len(found) == len({*found})
    assert {*found} == parts_of(case), sql
    assert found[-1] == names
    for row, part in zip(fresh, found, strict=True):
        sources = sorted(part)
        whole = part == names
        truths[part] = truth = world.count(case.whole() if whole else case.part(sources))
        assert row["rows"] >= truth, (sql, row, truth)
        plain = not any(u <= part for u, _ in case.across) and not case.approximate(sources)
        if case.acyclic(sources) and plain:
            assert row["kind"] == "exact", (sql, row, truth)
        if row["kind"] == "exact" and row["rows"] != truth:  # of a part, rows with NULL may count
            most = truth if whole else world.count(case.part(sources, nulls=True))
            assert row["rows"] <= most, (sql, row, truth, most)
    for degrees in (rng.choice(SAFE), "mg_raw"):
        for row in listed(world.runner.bound(sql, degrees=degrees, buckets=rng.choice([1, 64]))):
            truth = truths[frozenset(row["sources"])]
            if degrees == "mg_raw" and row["kind"] == "estimate":
                continue
            assert row["kind"] in GUARANTEED, (sql, row)
            assert row["rows"] >= truth, (sql, row, truth)
    for row in listed(world.runner.bound(sql, basis="cached")):
        truth = truths[frozenset(row["sources"])]
        assert row["kind"] != "estimate", (sql, row)
        assert row["rows"] is None or row["rows"] >= truth, (sql, row, truth)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_figures_are_never_below_the_truth(seed: int) -> None:
    rng = random.Random(seed + 1_000_000)
    world = World(seed, buckets=rng.choice([1, 3]))
    analyze(world, rng)
    for _ in range(CASES):
        case = drawn_case(rng, world)
        order = rng.sample(sorted(case.inputs), len(case.inputs))
        check_case(world, case, rng, case.sql(rng, order))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_outer_joins_are_never_below_the_truth(seed: int) -> None:
    rng = random.Random(seed + 2_000_000)
    world = World(seed + 500_000)
    analyze(world, rng)
    for _ in range(CASES):
        sql, duck = drawn_outer(rng, world)
        truth = world.count(duck)
        for how in ({}, {"degrees": rng.choice(SAFE)}, {"basis": "cached"}):
            bound = world.runner.bound(sql, **how)
            listed(bound)
            assert bound.kind != "estimate"
            assert bound.kind != "exact" or bound.rows == truth, (sql, bound.rows, truth)
            if how.get("basis") != "cached" or bound.rows is not None:
                assert bound.rows >= truth, (sql, how, bound.rows, truth)


@pytest.mark.parametrize("seed", range(SEEDS // 2 + 1))
def test_figures_depend_on_nothing_but_the_rows(seed: int) -> None:
    """Neither on the order of FROM, nor on the tasks and the budget where they are exact."""
    rng = random.Random(seed + 3_000_000)
    one, other = World(seed + 600_000), World(seed + 600_000, buckets=4)
    for world in (one, other):
        analyze(world, random.Random(seed))
    for _ in range(CASES):
        case = drawn_case(rng, one)
        order = sorted(case.inputs)
        if case.approximate(order):  # see test_order_of_conditions_beside_decimals
            continue
        sql = case.sql(rng, order)
        turned = case.sql(rng, rng.sample(order, len(order)))
        fresh = figures(one.runner.bound(sql))
        assert figures(other.runner.bound(sql)) == fresh, sql
        assert figures(one.runner.bound(turned)) == fresh, (sql, turned)
        cached = figures(one.runner.bound(sql, basis="cached"))
        # in another order they may differ: see test_order_of_inputs_when_cached
        assert figures(other.runner.bound(sql, basis="cached")) == cached, sql
        few = figures(one.runner.bound(sql, buckets=rng.choice([1, 7, 100])))
        assert {k: v for k, v in few.items() if v[1] == "exact"} == {
            k: v for k, v in fresh.items() if v[1] == "exact"
        }, sql


@pytest.mark.parametrize("seed", range(SEEDS // 2 + 1))
def test_statistics_of_tables_that_changed_bound_nothing(seed: int) -> None:
    rng = random.Random(seed + 4_000_000)
    world = World(seed + 700_000)
    analyze(world, rng)
    for turn in range(CASES):
        changed = rng.choice("abc")
        if turn % 2:
            world.set_table(changed, drawn_table(rng, rng.randint(1, world.rows), world.keys))
        else:
            analyze(world, rng)
        case = drawn_case(rng, world)
        sql = case.sql(rng, list(case.inputs))
        for row in listed(world.runner.bound(sql, basis="cached")):
            part = row["sources"]
            if turn % 2 and changed in {case.inputs[x][0] for x in part}:
                assert row["kind"] == "unknown", (sql, row)
            truth = world.count(case.part(part) if len(part) < len(case.inputs) else case.whole())
            assert row["rows"] is None or row["rows"] >= truth, (sql, row, truth)


@pytest.mark.parametrize("seed", range(SEEDS // 2 + 1))
def test_max_rows_refuses_exactly_what_is_larger(seed: int) -> None:
    rng = random.Random(seed + 5_000_000)
    world = World(seed + 800_000)
    tried = 0
    while tried < 3:
        case = drawn_case(rng, world)
        if not {name for name, _, _ in case.inputs.values()} & {"r", "s"}:
            continue
        tried += 1
        sql = case.sql(rng, list(case.inputs))
        rows = int(world.runner.bound(sql).rows)
        with_option = sql + " WITH (unbounded = true, max_rows = {})"
        if rows > 1:
            with pytest.raises(JoinTooLarge):
                world.runner.query(with_option.format(rows - 1), name=f"no{tried}")
        world.runner.query(with_option.format(max(rows, 1)), name=f"yes{tried}")


@pytest.mark.parametrize("seed", range(SEEDS // 2 + 1))
def test_what_is_printed_is_what_is_found(seed: int) -> None:
    rng = random.Random(seed + 6_000_000)
    world = World(seed + 900_000)
    for _ in range(3):
        case = drawn_case(rng, world)
        sql = case.sql(rng, list(case.inputs))
        found = listed(world.runner.bound(sql))
        printed = world.runner.sql(f"EXPLAIN BOUND {sql}").splitlines()
        for row, line in zip(found, printed, strict=False):
            assert line.startswith(" ⋈ ".join(row["sources"]) + ":"), (sql, line)
            assert f" {int(row['rows']):,} row" in line, (sql, line)
        made = world.runner.sql(f"EXPLAIN ANALYZE {sql}").splitlines()[len(found)]
        measured = int(re.findall(r"([\d,]+) \(measured\)", made)[0].replace(",", ""))
        assert measured == world.count(case.whole()), (sql, made)


def test_counts_above_38_digits_are_unknown() -> None:
    runner = Runner()
    runner.table("t", pa.table({"k": [1] * 10_000, "v": range(10_000)}))
    product = ", ".join(f"t x{n}" for n in range(9))
    same = " AND ".join(f"x{n}.k = x{n + 1}.k" for n in range(9))
    for rows, kind in ((99, "exact"), (100, "unknown")):
        runner.table("u", pa.table({"k": [1] * rows}))
        for where in ("", f" WHERE {same}"):
            bound = runner.bound(f"SELECT x0.v FROM {product}, u x9{where}")
            assert (bound.kind, bound.rows is None) == (kind, kind == "unknown"), where
            assert bound.rows is None or bound.rows == rows * 10**36


def test_integers_beyond_doubles_are_told_apart() -> None:
    runner, edge = Runner(), 2**53
    large = pa.array([edge, edge + 1, edge + 2, 1 - 2**63, 2**63 - 1], pa.int64())
    doubles = pa.array([float(edge), float(edge), edge + 2.0, -(2.0**63), 2.0**63])
    runner.table("t", pa.table({"n": large, "d": doubles}))
    text = "SELECT x.n FROM t x, t y, t z WHERE "
    for where, truth in (
        ("x.n = y.n AND y.n = z.n", 5),
        ("x.n = y.d AND y.d = z.n", 11),
        ("x.n = y.d AND x.n = z.n", 7),
        ("x.d = y.n AND y.n = z.d", 11),
        ("x.n = y.d AND x.d = y.d AND z.n = x.n", 7),
    ):
        bound = runner.bound(text + where)
        assert bound.rows >= truth, where
        assert bound.kind != "exact" or bound.rows == truth, where


def test_declared_limits_hold_when_rows_come() -> None:
    runner, rng = Runner(), random.Random(7)
    stamps = pa.array(range(1, 41), pa.timestamp("s", "UTC"))
    rows = pa.table({"k": [rng.randrange(3) for _ in range(40)], "ts": stamps})
    runner.table("t", pa.table({"k": [0, 0, 1, 2, 2]}))
    runner.stream("s", rows, retain="1 day")
    sql = "SELECT t.k, x.k AS j FROM s [ROWS 6] x JOIN t ON x.k = t.k"
    before = runner.bound(sql)
    assert listed(before)[-1]["kind"] in {"declared", "exact", "unknown"}
    with pytest.raises(JoinTooLarge):
        runner.query(sql + " WITH (max_rows = 5)", name="few")
    runner.query(sql + " WITH (max_rows = 30)", name="many")
    runner.run()
    if before.kind == "declared":
        assert before.rows >= runner.bound(sql).rows


@pytest.mark.parametrize("items", ["count(*) AS n", "t.v"])
def test_rows_without_columns(items: str) -> None:
    runner = Runner()
    stamps = pa.array([1, 2, 3, 4], pa.timestamp("s", "UTC"))
    runner.stream("s", pa.table({"v": [1, 2, 3, 4], "ts": stamps}), retain="1 day")
    runner.table("t", pa.table({"v": [1]}))
    runner.run()
    assert runner.bound(f"SELECT {items} FROM s [ROWS 2] x, t").rows == 2


def decimals(values: list[Any], digits: int, scale: int) -> pa.Array:
    return pa.array([Decimal(v) for v in values], pa.decimal128(digits, scale))


def bound_of(tables: dict[str, dict[str, Any]], sql: str, basis: str = "fresh") -> Any:
    runner = Runner()
    for name, columns in tables.items():
        runner.table(name, pa.table(columns))
    if basis == "cached":
        runner.analyze(*tables, joined_by={name: list(c) for name, c in tables.items()})
    bound = runner.bound(sql, basis=basis)
    assert bound.kind in GUARANTEED
    return bound


def test_decimals_beside_doubles() -> None:
    tables = {"a": {"g": decimals(["0.1"], 12, 7)}, "b": {"d": [0.1]}}
    assert bound_of(tables, "SELECT a.g FROM a JOIN b ON a.g = b.d").rows >= 1


@pytest.mark.parametrize(("one", "truth"), [("1", 1), ("0", 0)])
def test_decimals_that_lose_places(one: str, truth: int) -> None:
    """DECIMAL(38, 0) beside DECIMAL(20, 2) is compared as DECIMAL(38, 0), to which 0.50 is 1."""
    tables = {"a": {"h": decimals([one], 38, 0)}, "b": {"g": decimals(["0.5"], 20, 2)}}
    bound = bound_of(tables, "SELECT a.h FROM a JOIN b ON a.h = b.g")
    assert (bound.kind != "exact" and bound.rows >= truth) or bound.rows == truth


def test_two_columns_that_equal_one_double() -> None:
    tables = {"a": {"n": [2**53 + 1], "k": [2**53]}, "b": {"d": [2.0**53]}}
    assert bound_of(tables, "SELECT a.n FROM a, b WHERE a.n = b.d AND a.k = b.d").rows >= 1


def test_decimals_of_two_tables_that_equal_one_double() -> None:
    tables: dict[str, dict[str, Any]] = {"b": {"d": [2.0**53]}}
    tables |= {"a": {"e": decimals([2**53], 20, 2)}, "c": {"e": decimals([2**53 + 1], 20, 2)}}
    sql = "SELECT a.e FROM a, b, c WHERE a.e = b.d AND c.e = b.d"
    assert bound_of(tables, sql).rows >= 1
    assert bound_of(tables, sql, "cached").rows >= 1


def test_the_least_integer_beside_doubles() -> None:
    tables = {"a": {"n": [-(2**63), 1]}, "b": {"d": [-(2.0**63)]}}
    assert bound_of(tables, "SELECT a.n FROM a JOIN b ON a.n = b.d").rows >= 1


def test_order_of_conditions_beside_decimals() -> None:
    tables = {"a": {"n": [1, 1], "e": decimals([1, 2], 8, 2)}, "b": {"d": [1.0]}, "c": {"d": [1.0]}}
    parts = ["a.n = c.d", "a.e = b.d", "b.d = c.d"]
    orders = [f"SELECT a.n FROM a, b, c WHERE {' AND '.join(p)}" for p in permutations(parts)]
    found = [figures(bound_of(tables, sql)) for sql in orders]
    assert all(f == found[0] for f in found)


def test_order_of_conditions_when_cached() -> None:
    tables = {"a": {"i": [0, 0, 0]}, "b": {"i": [0, 0, 0], "v": [0, 1, 2]}}
    one = bound_of(tables, "SELECT a.i FROM a, b WHERE a.i = b.i AND a.i = b.v", "cached")
    other = bound_of(tables, "SELECT a.i FROM a, b WHERE a.i = b.v AND a.i = b.i", "cached")
    assert one.rows == other.rows


def test_order_of_inputs_when_cached() -> None:
    floats = pa.array([1, None, None], pa.float32())
    tables = {"a": {"n": [1, None]}, "b": {"f": floats}}
    one = bound_of(tables, "SELECT a.n FROM a, b WHERE a.n = b.f", "cached")
    other = bound_of(tables, "SELECT a.n FROM b, a WHERE a.n = b.f", "cached")
    assert one.rows == other.rows
