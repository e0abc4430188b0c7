"""The answer of a conjunction is that of its predicates in any order: rows, rejects, edges."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from filter_data import (
    ALL,
    correlated,
    drive,
    drive_vectors,
    evaluations,
    in_words,
    keeps_invariant,
    rng_of,
)
from ordering_runs import (
    MESSY,
    MESSY_TEXTS,
    SLICE,
    adaptive,
    by_name,
    drifting,
    messy,
    numbered,
    numbers,
    ran,
    usual,
)

from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.independent import Independent
from thalweg.adapt.filters.localswaps import LocalSwaps
from thalweg.adapt.filters.ordering import Ordering
from thalweg.adapt.filters.sweep import Sweep
from thalweg.columns.vector import DIVISION_BY_ZERO, OVERFLOW, Vector
from thalweg.exec.tactics import DROPPED, Observation
from thalweg.plan.types import BOOLEAN
from thalweg.testing import Runner

every_ordering = pytest.mark.parametrize("cls", ALL, ids=lambda c: c.name)


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


def vectors(rng: np.random.Generator, n: int, rows: int) -> list[Vector]:
    """Boolean columns with NULLs, and errors of two kinds."""
    found = []
    for _ in range(n):
        data, valid = rng.random(rows) < rng.uniform(0.5, 0.95), rng.random(rows) < 0.95
        codes = np.where(rng.random(rows) < 0.5, DIVISION_BY_ZERO, OVERFLOW)
        errors = np.where(rng.random(rows) < 0.05, codes, 0).astype(np.uint8)
        kinds = [(None, None), (valid, None), (None, errors), (valid, errors)]
        found.append(Vector(BOOLEAN, data, *kinds[rng.integers(4)]))
    return found


def judged_naively(columns: list[Vector]) -> tuple[list[int], list[tuple[int, str, int]]]:
    """A row passes if all are true, is dropped if any is false or NULL, and else is rejected for
    the first in the text that errs."""
    passing, erring = [], []
    for row in range(len(columns[0])):
        codes = [0 if c.errors is None else int(c.errors[row]) for c in columns]
        true = [bool(c.data[row]) and (c.valid is None or bool(c.valid[row])) for c in columns]
        if not all(t or code for t, code in zip(true, codes, strict=True)):
            continue
        if any(codes):
            first = next(i for i, code in enumerate(codes) if code)
            erring.append((row, f"f{first}", codes[first]))
        else:
            passing.append(row)
    return passing, erring


@every_ordering
def test_the_answer_is_that_of_the_unordered_conjunction(cls: type[Ordering]) -> None:
    """streamon #21: same rows, same rejects under the same predicate, with NULLs and errors."""
    for seed in range(6):
        rng = rng_of("answer", seed)
        n = int(rng.integers(2, 8))
        columns = vectors(rng, n, 3 * SLICE)
        order = tuple(rng.permutation(n).tolist())
        ordering = usual(cls, rng.uniform(0.5, 5, n), order, rate=0.5, window=200, evidence=20)
        expected = judged_naively(columns)
        for _ in range(2):
            assert in_words(drive_vectors(ordering, columns)) == expected
        assert in_words(drive_vectors(None, columns)) == expected


def messy_answer(table: pa.Table) -> tuple[Counter[Any], Counter[Any]]:
    """Rows, and (expression, row number) of the rejects, by asking every predicate."""
    questions = [
        lambda x, y, z: None if x is None else 10 / x > 2,
        lambda x, y, z: None if y is None else y < 40,
        lambda x, y, z: None if y is None else 100 / y < 30,
        lambda x, y, z: None if z is None else z != 3,
        lambda x, y, z: None if x is None or y is None else x + y > 2,
    ]
    rows, rejects = Counter[Any](), Counter[Any]()
    columns = [table[c].to_pylist() for c in "xyz"]
    for number, row in enumerate(zip(*columns, strict=True)):
        found = [_asked(question, row) for question in questions]
        if not all(f is True or f == "error" for f in found):
            continue
        if "error" in found:
            rejects[MESSY_TEXTS[found.index("error")], number] += 1
        else:
            rows[(*row, number)] += 1
    return rows, rejects


def _asked(question: Any, row: tuple[Any, ...]) -> Any:
    try:
        return question(*row)
    except ZeroDivisionError:
        return "error"


@by_name
def test_rows_and_rejects_through_sql_do_not_depend_on_the_ordering(name: str) -> None:
    """streamon #21: from SQL to results, against Python's own arithmetic."""
    table = messy(12_000)
    rows, rejects = messy_answer(table)
    assert rows
    assert len({expression for expression, _ in rejects}) == 2
    costs = {"10 / x > 2": 4.0, "z <> 3": 0.1, "x + y > 2": 9.0}
    how: list[dict[str, Any]] = [{"epochs": 4, "buckets": 2}, {"costs": costs, "profile": 1.0}]
    for one in how:
        _, query = ran(table, MESSY, name, **one)
        assert numbered(query.results(), "x", "y", "z") == rows
        assert numbered(query.rejects(), "expression") == rejects


@every_ordering
def test_forced_orders_change_only_costs(cls: type[Ordering]) -> None:
    """streamon #9, streamon #21: orders forced from outside between epochs, as a revert does."""
    rng = rng_of("forced")
    passing = correlated(rng, 4 * SLICE, np.linspace(0.3, 0.9, 5), 2)
    ordering = usual(cls, rng.uniform(1, 4, 5), rate=0.5, evidence=1)
    expected = np.flatnonzero(passing.all(1)).tolist()
    for _ in range(12):
        order = rng.permutation(5).tolist()
        ordering.force(tuple(order))
        assert ordering.order == order
        assert drive(ordering, passing).judged.passing.tolist() == expected
        assert sorted(ordering.order) == list(range(5))


@every_ordering
def test_one_predicate_needs_no_order(cls: type[Ordering]) -> None:
    passing = rng_of("one").random((3 * SLICE, 1)) < 0.5
    ordering = usual(cls, [1.0], rate=1.0, evidence=1)
    assert drive(ordering, passing).judged.passing.tolist() == np.flatnonzero(passing).tolist()
    nothing, some = np.zeros(1), np.array([5])
    seen = Observation((0,), 9, some + 4, some, nothing, nothing, nothing, some - 1,
                       np.full((5, 1), DROPPED, np.int8), 4)  # fmt: skip
    for _ in range(3):
        ordering.observe(seen)
    assert ordering.order == [0]
    assert ordering.switches == []


@by_name
def test_one_predicate_through_sql(name: str) -> None:
    table = drifting(2_000)
    _, query = ran(table, "a < 30", name, epochs=3)
    assert query.results().num_rows == sum(v < 30 for v in table["a"].to_pylist())
    assert query.plan_log == []


@every_ordering
def test_forty_predicates(cls: type[Ordering]) -> None:
    """The right rows, and an order that costs less than that of the text if it adapts."""
    rng = rng_of("forty")
    rates = np.linspace(0.99, 0.6, 40)
    passing = correlated(rng, 60 * SLICE, rates, 3)
    ordering = usual(cls, np.ones(40), rate=0.2)
    run = drive(ordering, passing)
    assert run.judged.passing.tolist() == np.flatnonzero(passing.all(1)).tolist()
    assert sorted(ordering.order) == list(range(40))
    if cls in (AGreedy, Auto, Independent):
        assert run.tail(10) < 0.5 * evaluations(range(40), ~passing) / len(passing)
        assert keeps_invariant(ordering.order[:3], ~passing, np.ones(40), 0.7)


@every_ordering
def test_where_everything_passes_nothing_is_learned(cls: type[Ordering]) -> None:
    ordering = usual(cls, [3.0, 2.0, 1.0], rate=1.0, evidence=1)
    run = drive(ordering, np.ones((5 * SLICE, 3), np.bool_))
    assert len(run.judged.passing) == 5 * SLICE
    assert run.evaluated == 15 * SLICE
    assert run.profiled == 0
    assert ordering.switches == []


@adaptive
def test_where_everything_is_dropped_only_the_cheapest_is_asked(cls: type[Ordering]) -> None:
    ordering = usual(cls, [3.0, 2.0, 1.0, 4.0], rate=1.0)
    run = drive(ordering, np.zeros((30 * SLICE, 4), np.bool_))
    assert len(run.judged.passing) == 0
    # where nothing reaches the second place, LocalSwaps never learns about the third
    assert ordering.order[0] == (1 if cls is LocalSwaps else 2)
    assert run.tail(5) == 1


@adaptive
def test_the_same_predicates_again_and_again(cls: type[Ordering]) -> None:
    """Copies of one predicate drop nothing more; the one that differs comes second at the latest
    where correlation is seen."""
    rng = rng_of("copies")
    one, other = rng.random((2, 60 * SLICE)) < 0.5
    ordering = usual(cls, np.ones(5), rate=0.2)
    run = drive(ordering, np.stack([one, one, one, one, other], axis=1))
    assert run.judged.passing.tolist() == np.flatnonzero(one & other).tolist()
    if cls in (AGreedy, Sweep, Auto):
        assert 4 in ordering.order[:2]


def picky(value: int) -> bool:
    if value % 7 == 0:
        raise ValueError(f"{value} is out of the question")
    return value % 3 > 0


@by_name
def test_a_function_that_raises_rejects_the_same_rows_under_every_ordering(name: str) -> None:
    """streamon #21: a row is rejected where the function raises and nothing else drops it."""
    table = numbers(6_000, "picky")
    rows = list(zip(*(table[c].to_pylist() for c in "xyz"), range(6_000), strict=True))
    alive = [r for r in rows if r[1] < 60 and r[2] < 80]
    for options in ({}, {"raises": True}):
        functions = {"picky": (picky, options)}
        how: dict[str, Any] = {"epochs": 4, "functions": functions, "profile": 0.5}
        _, query = ran(table, "y < 60 AND PICKY(x) AND z < 80", name, **how)
        expected = Counter(r for r in alive if r[0] % 7 and r[0] % 3)
        assert numbered(query.results(), "x", "y", "z") == expected
        bad = Counter(("PICKY(x)", r[3]) for r in alive if r[0] % 7 == 0)
        assert numbered(query.rejects(), "expression") == bad


def test_parts_of_one_between_keep_their_order() -> None:
    """Blame, counters and watching tell the two halves of BETWEEN apart."""

    def reasons(**how: int) -> set[str]:
        made = Runner(**how)
        columns = {"z": [1] * 8, "y": [0] * 8, "c": ["bad"] * 8, "x": range(8)}
        made.stream("s", pa.table({**columns, "ts": stamps(range(8))}))
        query = made.query("SELECT x FROM s WHERE z BETWEEN CAST(c AS INT) AND 6 / y AND x >= 0")
        made.run()
        return set(query.rejects()["reason"].to_pylist())

    assert reasons() == reasons(epochs=8, switches=3) == {"cannot cast string to INT"}
    rows = 4_000
    values = np.random.default_rng(0).integers(0, 100, (2, rows))
    made = Runner(epochs=10)
    made.stream("s", pa.table({"x": values[0], "y": values[1], "ts": stamps(np.arange(rows))}))
    query = made.query(
        "SELECT x FROM s WHERE x BETWEEN 0 AND 2 AND y < 90 "
        "WITH (filters = 'a-greedy', profile = 0.2)"
    )
    made.run()
    watched = made.core.adaptation.queries[query.name].of("filters")[0]
    assert watched.memory.rows == rows
    counts = query.stats()["counts"]
    asked = counts["evaluations:x BETWEEN 0 AND 2 (part 2)"]
    assert counts["passed:x BETWEEN 0 AND 2 (part 2)"] / asked < 0.05
