"""The predicate index finds what asking every query of every row finds."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from thalweg.exec.shared_filters import predicate_index as index_module
from thalweg.exec.shared_filters.cells import OPERATORS, CellsOf
from thalweg.exec.shared_filters.predicate_index import Factor, PredicateIndex

ASK: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip
Columns = dict[str, tuple[np.ndarray, np.ndarray | None]]


def holds(factor: Factor, value: Any) -> bool:
    """One comparison by the rules of SQL, NaN the largest number."""
    if value is None:
        return False

    def key(number: Any) -> Any:
        return (1, 0) if isinstance(number, float) and math.isnan(number) else (0, number)

    return ASK[factor.operator](key(value), key(factor.constant))


def asked(queries: Sequence[Sequence[Factor]], columns: Columns, rows: int) -> list[list[int]]:
    found = []
    for i in range(rows):
        row = {
            name: None if valid is not None and not valid[i] else values[i].item()
            for name, (values, valid) in columns.items()
        }
        found.append([n for n, q in enumerate(queries) if all(holds(f, row[f.column]) for f in q)])
    return found


def matched(
    queries: Sequence[Sequence[Factor]], columns: Columns, rows: int
) -> tuple[PredicateIndex, list[list[int]]]:
    dtypes = {name: values.dtype for name, (values, _) in columns.items()}
    index = PredicateIndex.of(queries, dtypes)
    matches = index.match(columns, rows)
    found: list[list[int]] = [[] for _ in range(rows)]
    for row, query in zip(*matches.pairs(), strict=True):
        found[row].append(int(query))
    return index, [sorted(one) for one in found]


def random_queries(
    rng: np.random.Generator, count: int, columns: Sequence[str], most: int, domain: int
) -> list[list[Factor]]:
    """As in the experiments of PSoup: one constant of five is a multiple of 32; here some queries
    ask nothing, and some contradict themselves."""
    found = []
    for _ in range(count):
        factors = []
        for _ in range(int(rng.integers(0, most + 1))):
            constant = int(rng.integers(0, domain))
            if rng.random() < 0.2:
                constant -= constant % 32
            column = columns[int(rng.integers(0, len(columns)))]
            factors.append(Factor(column, OPERATORS[int(rng.integers(0, 5))], constant))
        found.append(factors)
    return found


@pytest.mark.parametrize("domain", [4, 256])
@pytest.mark.parametrize("most", [1, 2, 4])
def test_the_index_equals_a_nested_loop(domain: int, most: int) -> None:
    """priorart PS-4: 4,096 random conjunctions over all five operators, with duplicate constants,
    values equal to constants, and queries without factors."""
    rng = np.random.default_rng(domain + most)
    names = ("a", "b", "c")
    queries = random_queries(rng, 4_096, names, most, domain)
    rows = 60
    columns: Columns = {n: (rng.integers(0, domain, rows), None) for n in names}
    columns["b"] = (columns["b"][0], rng.random(rows) < 0.8)
    _, found = matched(queries, columns, rows)
    expected = asked(queries, columns, rows)
    assert found == expected
    assert [] in queries
    assert sum(map(len, expected)) > rows


def test_a_thousand_filters_at_every_boundary() -> None:
    """priorart U10: exactly the set that asking each finds, boundaries included."""
    rng = np.random.default_rng(8)
    queries = [
        [Factor("x", OPERATORS[i % 5], int(c)), Factor("x", ">=", int(c) - int(w))]
        for i, (c, w) in enumerate(
            zip(rng.integers(0, 500, 1_000), rng.integers(0, 9, 1_000), strict=True)
        )
    ]
    constants = sorted({f.constant for q in queries for f in q})
    values = np.array([c + d for c in constants for d in (-1, 0, 1)])
    columns: Columns = {"x": (values, None)}
    _, found = matched(queries, columns, len(values))
    assert found == asked(queries, columns, len(values))


def test_null_nan_and_signed_zero() -> None:
    nan = float("nan")
    values = np.array([nan, -0.0, 0.0, math.inf, -math.inf, 1.5, 7.0])
    valid = np.array([True] * 6 + [False])
    constants = [nan, 0.0, -0.0, math.inf, -math.inf, 1.5]
    queries = [[Factor("x", o, c)] for o in OPERATORS for c in constants] + [[]]
    columns: Columns = {"x": (values, valid)}
    _, found = matched(queries, columns, len(values))
    assert found == asked(queries, columns, len(values))
    assert found[-1] == [len(queries) - 1]  # of NULL nothing is known


def test_large_integers_are_not_rounded() -> None:
    big = 2**53
    queries = [[Factor("x", "=", big + 1)], [Factor("x", ">", big)], [Factor("x", "<=", big)]]
    columns: Columns = {"x": (np.array([big, big + 1, big + 2]), None)}
    _, found = matched(queries, columns, 3)
    assert found == [[2], [0, 1], [1]]


def test_strings() -> None:
    queries = [[Factor("s", "=", "b")], [Factor("s", ">=", "b")], [Factor("s", "<", "ba")]]
    columns: Columns = {"s": (np.array(["a", "b", "ba", "c"], object), None)}
    _, found = matched(queries, columns, 4)
    assert found == [[2], [0, 1, 2], [1], [1]]


def test_rows_in_the_same_cells_are_matched_once() -> None:
    rng = np.random.default_rng(3)
    queries = random_queries(rng, 300, ("a", "b"), 2, 10)
    columns: Columns = {n: (rng.integers(0, 10, 20_000), None) for n in ("a", "b")}
    index = PredicateIndex.of(queries, {"a": np.int64, "b": np.int64})
    matches = index.match(columns, 20_000)
    assert len(matches.begin) - 1 <= 100
    assert len(matches.queries) == matches.begin[-1]


def steps(index: PredicateIndex, columns: Columns, rows: int) -> int:
    """What the index does for some rows: it finds the cells of each, and for each kind of row tests
    the queries of its blocks and intersects words of bits."""
    cells = {name: index.cells_of(name).of(*columns[name]) for name in index.columns}
    _, kinds = index_module._kinds(cells, rows)
    number = len(next(iter(kinds.values())))
    done = rows * len(index.columns)
    for blocks in index._narrow:
        for size in range(len(blocks._sizes) - 1):
            block = blocks._sizes[size] + (kinds[blocks.column] >> size)
            block = block[block < blocks._sizes[size + 1] - 1]
            done += int((blocks._starts[block + 1] - blocks._starts[block]).sum())
    return done + number * len(index._wide._runs) * -(-len(index._wide.queries) // 64)


def evaluations(queries: Sequence[Sequence[Factor]], columns: Columns, rows: int) -> int:
    """Comparisons if every query asks every row itself, up to the first factor that is false."""
    asked = 0
    for query in queries:
        left = np.ones(rows, np.bool_)
        for factor in query:
            asked += int(left.sum())
            left &= ASK[factor.operator](columns[factor.column][0], factor.constant)
    return asked


def interval(rng: np.random.Generator, column: str, width: int, domain: int) -> list[Factor]:
    low = int(rng.integers(0, domain - width))
    return [Factor(column, ">", low), Factor(column, "<", low + width)]


@pytest.mark.parametrize(("width", "least"), [(3, 100), (60, 30)], ids=["narrow", "wide"])
def test_the_index_gains_the_more_the_more_queries_there_are(width: int, least: int) -> None:
    """priorart PS-12, in counts: against asking each, over intervals of two columns; at 4,096
    queries far more than the five times of the note, and more than at 128."""
    rng = np.random.default_rng(width)
    rows, domain = 1_000, 256
    columns: Columns = {n: (rng.integers(0, domain, rows), None) for n in "ab"}
    gains = {}
    for count in (16, 128, 4_096):
        queries = [
            [f for column in "ab" for f in interval(rng, column, width, domain)]
            for _ in range(count)
        ]
        index = PredicateIndex.of(queries, {"a": np.int64, "b": np.int64})
        gains[count] = evaluations(queries, columns, rows) / steps(index, columns, rows)
    assert gains[16] < gains[128] < gains[4_096]
    assert gains[4_096] > least


def test_kinds_in_several_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of bits are made for some kinds of rows at a time."""
    rng = np.random.default_rng(4)
    queries = random_queries(rng, 500, ("a", "b"), 3, 50)
    columns: Columns = {n: (rng.integers(0, 50, 400), None) for n in ("a", "b")}
    _, whole = matched(queries, columns, 400)
    monkeypatch.setattr(index_module, "_SET_BYTES", 1_000)
    _, found = matched(queries, columns, 400)
    assert found == whole == asked(queries, columns, 400)


@pytest.mark.parametrize("queries", [[], [[]], [[Factor("x", "<", 3)]]])
def test_no_rows_and_no_queries(queries: list[list[Factor]]) -> None:
    columns: Columns = {"x": (np.empty(0, np.int64), None)}
    _, found = matched(queries, columns, 0)
    assert found == []
    one: Columns = {"x": (np.array([1]), None)}
    assert matched(queries, one, 1)[1] == [[*range(len(queries))]]


def test_cells_of_nothing() -> None:
    assert CellsOf(np.empty(0, np.int64)).of(np.array([1, 2])).tolist() == [0, 0]
