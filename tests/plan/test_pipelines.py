"""Pipelines: from wanted orders to probes that keys allow."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pyarrow as pa
import pytest

from thalweg.plan.joins.join_keys import KeyClasses
from thalweg.plan.joins.join_order import Orders
from thalweg.plan.physical import QueryPlan
from thalweg.plan.pipeline import Pipeline
from thalweg.testing.grid import load
from thalweg.testing.joingraphs import random_join
from thalweg.testing.runner import Runner

STREAMS = {
    "r1": "b BIGINT, c BIGINT",
    "r2": "b BIGINT",
    "r3": "c BIGINT, d BIGINT, e BIGINT",
    "r4": "d BIGINT",
    "r5": "e BIGINT, f BIGINT",
    "r6": "f BIGINT",
}
ACYCLIC = """SELECT ISTREAM r1.b FROM r1 [RANGE 9 SECONDS], r2 [RANGE 9 SECONDS],
  r3 [RANGE 9 SECONDS], r4 [RANGE 9 SECONDS], r5 [RANGE 9 SECONDS], r6 [RANGE 9 SECONDS]
  WHERE r1.b = r2.b AND r1.c = r3.c AND r3.d = r4.d AND r3.e = r5.e AND r5.f = r6.f"""


def planned(sql: str, orders: Orders) -> QueryPlan:
    runner = Runner()
    for name, columns in STREAMS.items():
        runner.sql(
            f"CREATE STREAM {name} ({columns}, ts TIMESTAMP) TIMESTAMP BY ts "
            f"FROM FILES 'unused' FORMAT parquet"
        )
    return runner.core.planner.physical(runner.query(sql).bound, orders)


def order_of(pipeline: Pipeline) -> list[int]:
    return [p.leaf + 1 for p in pipeline.probes]


def wanted(*leaves: int) -> Orders:
    return Orders((), (tuple(i - 1 for i in leaves),))


def test_logical_filters_become_a_pipeline() -> None:
    """F3, F2, F1, F4, F5 of the note's example give 3, 4, 2, 5, 6 (streamon #24)."""
    pipeline = planned(ACYCLIC, wanted(4, 3, 2, 5, 6)).blocks[0].pipelines[0]
    assert order_of(pipeline) == [3, 4, 2, 5, 6]


def test_all_missing_predecessors_come_first() -> None:
    """A logical filter brings its whole path along, not only what is linked at once."""
    pipeline = planned(ACYCLIC, wanted(6, 4, 2)).blocks[0].pipelines[0]
    assert order_of(pipeline) == [3, 5, 6, 4, 2]


def test_inequalities_lead_on_where_no_key_does() -> None:
    """r2 - r1 by a key, r1 - r4 by an inequality, r4 - r3 by a key: r3 is not met as a product."""
    sql = """SELECT ISTREAM r1.b FROM r1 [RANGE 9 SECONDS], r2 [RANGE 9 SECONDS],
      r3 [RANGE 9 SECONDS], r4 [RANGE 9 SECONDS]
      WHERE r1.b = r2.b AND r1.c <= r4.d AND r4.d = r3.d"""
    block = planned(sql, Orders()).blocks[0]
    assert {p.leaf + 1: order_of(p) for p in block.pipelines} == {
        1: [2, 4, 3],
        2: [1, 4, 3],
        3: [4, 1, 2],
        4: [3, 1, 2],
    }


@pytest.mark.parametrize("start", range(6))
def test_every_order_of_filters_is_a_pipeline_without_products(start: int) -> None:
    """All 120 orders, from every stream: each leaf once, each looked up by a key (streamon #24)."""
    others = [i for i in range(6) if i != start]
    orders = [Orders((), ((0,),) * start + (p,)) for p in permutations(others)]
    runner_plan = planned(ACYCLIC, Orders())
    assert len(runner_plan.blocks[0].pipelines) == 6
    for one in orders[::7]:
        pipeline = planned(ACYCLIC, one).blocks[0].pipelines[start]
        assert sorted(order_of(pipeline)) == [i + 1 for i in others]
        assert all(p.source for p in pipeline.probes)


def test_no_random_graph_has_a_product() -> None:
    """Connected graphs of every shape under random orders (streamon #24)."""
    for seed in range(200):
        case = random_join(seed)
        runner = load(Runner(), case)
        rng = Random(seed)
        count = len(runner.query(case.sql, name="q").plan.leaves)
        orders = Orders((), tuple(tuple(rng.sample(range(count), count)) for _ in range(count)))
        plan = runner.core.planner.physical(runner.session.queries["q"].bound, orders)
        for pipeline in plan.blocks[0].pipelines:
            assert all(p.source for p in pipeline.probes), case.sql
            assert sorted([pipeline.leaf, *(p.leaf for p in pipeline.probes)]) == list(range(count))


def test_a_cycle_is_probed_by_all_its_keys() -> None:
    """The window that closes a cycle is looked up by both keys, and checked by one before."""
    sql = """SELECT ISTREAM r1.b FROM r1 [RANGE 9 SECONDS], r3 [RANGE 9 SECONDS],
      r5 [RANGE 9 SECONDS] WHERE r1.c = r3.c AND r3.e = r5.e AND r5.f = r1.b"""
    probes = planned(sql, Orders()).blocks[0].pipelines[0].probes
    closing = probes[-1]
    assert set(closing.target) == {"e", "f"}
    assert closing.check is not None
    assert closing.check.target == ("f",)
    assert closing.check.parent == 0


@pytest.mark.parametrize("count", [10, 20])
def test_planning_a_wide_join_finds_its_keys_a_few_times(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every part of every pipeline asked for them, so that thirty inputs took half a minute."""
    made = 0
    plain = KeyClasses.__post_init__

    def counting(keys: KeyClasses) -> None:
        nonlocal made
        made += 1
        plain(keys)

    monkeypatch.setattr(KeyClasses, "__post_init__", counting)
    runner = Runner()
    stamps = pa.array([0], pa.timestamp("us", "UTC"))
    runner.stream("s", pa.table({"k": [1], "n": [1], "ts": stamps}))
    joins = [f"JOIN s [NOW] x{i} ON x{i}.n = x{i - 1}.k" for i in range(1, count)]
    runner.query(f"SELECT x0.k FROM s [NOW] x0 {' '.join(joins)}", "q")
    assert 1 <= made <= 60
