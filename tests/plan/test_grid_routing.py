"""Joins without a common key, split over a grid of tasks."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from thalweg.plan.grid_routing import REPLICATION_LIMIT, replication, shape
from thalweg.plan.physical import Routing, RoutingKind
from thalweg.testing import Runner
from thalweg.testing.generators import Case
from thalweg.testing.grid import Variant, check_variant, load, reference_result
from thalweg.testing.joingraphs import random_join

CHAIN = (
    "SELECT ISTREAM a.k, b.m, a.v AS av, b.v AS bv, c.v AS cv "
    "FROM a [RANGE 4 SECONDS], b [RANGE 4 SECONDS], c [RANGE 4 SECONDS] "
    "WHERE a.k = b.k AND b.m = c.m"
)


def _rows(count: int, seed: int) -> pa.Table:
    step = [(seed * 7 + i * i) % 11 for i in range(count)]
    return pa.table(
        {
            "k": [s % 3 for s in step],
            "m": [s % 4 if s % 5 else None for s in step],
            "v": [i * 10 + seed for i in range(count)],
            "ts": pa.array([i * 500_000 for i in range(count)], pa.timestamp("us", "UTC")),
        }
    )


def _runner(**arguments: int) -> Runner:
    runner = Runner(**arguments)
    for seed, name in enumerate("abc"):
        runner.stream(name, _rows(40, seed + 1), timestamp="ts")
    return runner


def _found(sql: str, **arguments: int) -> Counter[tuple[object, ...]]:
    runner = _runner(**arguments)
    query = runner.query(sql, name="q")
    runner.run()
    rows = Counter(tuple(row.values()) for row in query.results().to_pylist())
    runner.close()
    assert rows
    return rows


def _grids(first: int, last: int) -> list[Case]:
    """Random join graphs whose plans are grids."""
    found = []
    for seed in range(first, last):
        case = random_join(seed, sources=3 + seed % 3, timed=True)
        runner = load(Runner(), case)
        if runner.query(case.sql, name="q").plan.routing.kind is RoutingKind.CUBE:
            found.append(case)
        runner.close()
    return found


@pytest.mark.parametrize("first", range(2_000, 2_080, 20))
def test_grids_give_the_rows_of_one_task(first: int) -> None:
    """Any number of tasks (D7, second invariance)."""
    cases = _grids(first, first + 20)
    assert cases
    for case in cases:
        expected = reference_result(case)
        for buckets in (2, 8):
            variant = Variant(
                f"{buckets} buckets",
                lambda case, n=buckets: {"epochs": 3, "buckets": n, "switches": case.seed},  # type: ignore[misc]
            )
            check_variant(case, variant, expected)


@pytest.mark.parametrize("buckets", [2, 3, 4, 9])
def test_a_chain_is_split_by_both_keys(buckets: int) -> None:
    assert _found(CHAIN, buckets=buckets, epochs=5) == _found(CHAIN)


def test_tasks_share_the_probing() -> None:
    """Four tasks in a square: each row of the middle stream is read by one, the others by two."""
    runner = _runner(buckets=4)
    query = runner.query(CHAIN, name="q")
    runner.run()
    counts = query.stats()["counts"]
    runner.close()
    assert counts["arrivals:b"] == 40
    assert counts["arrivals:a"] == counts["arrivals:c"] == 80


@pytest.mark.parametrize("buckets", [1, 2, 4])
def test_groups_are_split_along_the_keys_they_have(buckets: int) -> None:
    sql = (
        "SELECT a.k, count(*) AS n, sum(c.v) AS s FROM a [RANGE 4 SECONDS], b [RANGE 4 SECONDS], "
        "c [RANGE 4 SECONDS] WHERE a.k = b.k AND b.m = c.m GROUP BY a.k"
    )
    runner = _runner(buckets=buckets)
    routing = runner.query(sql, name="q").plan.routing
    runner.close()
    assert routing.kind is RoutingKind.CUBE
    assert len(routing.axes) == 1
    assert _found(sql, buckets=buckets, epochs=4) == _found(sql)


@pytest.mark.parametrize("buckets", [1, 2, 4])
def test_rows_that_several_tasks_read_are_rejected_once(buckets: int) -> None:
    sql = CHAIN + " AND 10 / (c.v - 3) < 100 AND 10 / (a.v - 11) < 100"
    runner = _runner(buckets=buckets)
    query = runner.query(sql, name="q")
    runner.run()
    assert query.plan.routing.kind is RoutingKind.CUBE
    assert query.stats()["counts"].get("rejected", 0) == _rejected_by_one_task(sql)
    runner.close()


def _rejected_by_one_task(sql: str) -> int:
    runner = _runner()
    query = runner.query(sql, name="q")
    runner.run()
    found = query.stats()["counts"]["rejected"]
    runner.close()
    return int(found)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("b [ROWS 5]", "a window over rows"),
        ("b [PARTITION BY k ROWS 2]", "a window over rows"),
    ],
)
def test_windows_over_rows_stay_in_one_task(more: str, reason: str) -> None:
    runner = _runner()
    query = runner.query(CHAIN.replace("b [RANGE 4 SECONDS]", more), name="q")
    assert query.plan.routing.kind is RoutingKind.SINGLE
    assert reason in query.plan.routing.reason
    runner.close()


def test_explain_shows_what_a_grid_costs() -> None:
    runner = _runner()
    shown = runner.session.explain(CHAIN)
    runner.close()
    assert (
        "routing: a grid by (a.k, b.k) x (b.m, c.m); on average a row goes to 1.33 of 2 tasks"
        in shown
    )


# -- shapes ---------------------------------------------------------------------------------


def _routing(*axes: str) -> Routing:
    """One axis per text, one leaf per character: x has the key, - has not."""
    return Routing(
        RoutingKind.CUBE, tuple(tuple(("k",) if c == "x" else () for c in a) for a in axes)
    )


@pytest.mark.parametrize(
    ("axes", "tasks", "sizes", "copies"),
    [
        (("xx-", "-xx"), 1, (1, 1), 1.0),
        (("xx-", "-xx"), 4, (2, 2), 5 / 3),
        (("xx-", "-xx"), 16, (4, 4), 3.0),
        (("xxx-",), 4, (4,), 7 / 4),
        (("xx-", "x-x", "-xx"), 8, (2, 2, 2), 2.0),
    ],
)
def test_shapes_split_the_most(
    axes: tuple[str, ...], tasks: int, sizes: tuple[int, ...], copies: float
) -> None:
    routing = _routing(*axes)
    streams = range(len(axes[0]))
    assert shape(routing, streams, tasks) == sizes
    assert replication(routing, streams, sizes) == pytest.approx(copies)


def test_beyond_the_limit_fewer_tasks_take_part() -> None:
    """Along one axis that one of two streams lacks every task reads that stream as a whole."""
    routing = _routing("xx----")
    (size,) = shape(routing, range(6), 64)
    assert 1 < size < 64
    assert replication(routing, range(6), (size,)) <= REPLICATION_LIMIT
