"""Predicates that several queries ask are evaluated once, and nobody's answer changes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from thalweg.testing import Runner
from thalweg.testing.generators import random_case
from thalweg.testing.grid import VARIANTS, check_variant, reference_result

ROWS = 6_000


def numbers() -> pa.Table:
    rng = np.random.default_rng(8)
    columns = {c: rng.integers(-50, 50, ROWS) for c in ("a", "b", "c")}
    stamps = pa.array(np.arange(ROWS) * 1000, pa.timestamp("us", "UTC"))
    return pa.table({**columns, "ts": stamps})


QUERIES = {
    "first": "SELECT a FROM s WHERE a > 0 AND b > 0",
    "second": "SELECT x.b FROM s AS x WHERE x.b > 0 AND x.c > 10 AND x.a > 0",
    "third": "SELECT a, count(*) AS n FROM s [RANGE 1 SECOND] WHERE a > 0 GROUP BY a",
    "fails": "SELECT c FROM s WHERE 100 / c > 5 AND a > 0",
    "fails too": "SELECT a FROM s WHERE b > 0 AND 100 / c > 5",
}


def ran(queries: dict[str, str], **how: object) -> Runner:
    runner = Runner(**how)
    runner.stream("s", numbers())
    for name, sql in queries.items():
        runner.query(sql, name)
    runner.run()
    return runner


def rows(runner: Runner, name: str) -> tuple[Counter, Counter]:
    query = runner.queries[name]
    found = Counter(tuple(r.values()) for r in query.results().to_pylist())
    rejected = Counter(r["expression"] for r in query.rejects().to_pylist())
    return found, rejected


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("buckets", [1, 3])
def test_a_common_predicate_is_evaluated_once_per_row(buckets: int) -> None:
    runner = ran(QUERIES, epochs=4, buckets=buckets)
    counts = [q.stats()["counts"] for q in runner.queries.values()]
    evaluated = Counter()
    for one in counts:
        for key, value in one.items():
            kind, _, text = key.partition(":")
            if kind in ("evaluations", "profiled"):
                evaluated[text.replace("x.", "")] += value
    for text in ("a > 0", "b > 0", "100 / c > 5"):
        assert 0 < evaluated[text] <= ROWS, text
    assert sum(one.get("shared:a > 0", 0) for one in counts) > 0


@pytest.mark.parametrize("how", [{}, {"epochs": 5, "buckets": 2}, {"epochs": 3, "switches": 4}])
def test_sharing_changes_no_row_and_no_reject(how: dict[str, int]) -> None:
    """Invariance 5: together as alone."""
    together = ran(QUERIES, **how)
    for name, sql in QUERIES.items():
        alone = ran({name: sql}, **how)
        assert rows(together, name) == rows(alone, name), name


def test_predicates_of_one_query_are_not_shared() -> None:
    runner = ran({"first": QUERIES["first"]})
    assert not any(k.startswith("shared:") for k in runner.queries["first"].stats()["counts"])


@pytest.mark.parametrize("seed", range(40))
def test_beside_a_twin_on_the_grid(seed: int) -> None:
    """Each random query beside itself: every predicate is common, the reference still agrees."""
    case = random_case(seed * 13 + 5)
    if " INTO " in case.sql:
        pytest.skip("writes to a place of its own")
    twin = VARIANTS[seed % len(VARIANTS)]
    beside = type(twin)(twin.name, twin.arguments, twin.arrange, (case.sql, *twin.beside))
    check_variant(case, beside, reference_result(case))


def test_rows_in_error_do_not_pass_whether_shared_or_not() -> None:
    def passed(queries: int) -> list[int]:
        made = Runner()
        columns = {"i": [0] * 10 + [1] * 10, "x": range(20)}
        made.stream("s", pa.table({**columns, "ts": stamps(range(20))}))
        others = ("x >= 0", "x < 50")
        found = [
            made.query(f"SELECT x FROM s WHERE 6 / i > 2 AND {others[n]} WITH (filters = 'fixed')")
            for n in range(queries)
        ]
        made.run()
        return [q.stats()["counts"]["passed:6 / i > 2"] for q in found]

    assert passed(1) == [10]
    assert passed(2) == [10, 10]
