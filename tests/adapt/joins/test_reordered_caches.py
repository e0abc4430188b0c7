"""Caches of a join whose pipelines change: which go, which stay, and how many are considered."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from thalweg.adapt.constants import CACHE_QUOTA
from thalweg.adapt.joins.caching import CacheWatch
from thalweg.adapt.joins.candidates import Pipelines, Segment, prefix_sets
from thalweg.adapt.joins.lifecycle import State
from thalweg.adapt.operation_costs import UNITS
from thalweg.plan.joins.join_order import Orders
from thalweg.plan.physical import QueryPlan
from thalweg.testing.runner import Runner

KEPT = {0: (1, 2), 1: (2, 0), 2: (1, 0)}


def planned(orders: Pipelines) -> QueryPlan:
    """A join of as many streams on one key, so that every order is possible."""
    runner = Runner()
    stamps = pa.array(np.empty(0, np.int64), pa.timestamp("us", "UTC"))
    empty = pa.table({"k": pa.array([], pa.int64()), "ts": stamps})
    names = [f"s{leaf}" for leaf in sorted(orders)]
    for name in names:
        runner.stream(name, empty)
    sources = ", ".join(f"{name} [RANGE 1 SECOND]" for name in names)
    where = " AND ".join(f"s0.k = {name}.k" for name in names[1:])
    query = runner.query(f"SELECT s0.k FROM {sources} WHERE {where}", "q")
    given = tuple(orders[leaf] for leaf in sorted(orders))
    plan = runner.core.planner.physical(query.bound, Orders((), given))
    assert plan.blocks[0].orders == orders
    return plan


def watch_over(orders: Pipelines) -> CacheWatch:
    return CacheWatch(planned(orders), 0, UNITS)


def segment(watch: CacheWatch, pipeline: int) -> Segment:
    (found,) = (s for s in watch.states.states if s.pipeline == pipeline)
    return found


def test_a_reordered_pipeline_loses_its_caches() -> None:
    """streamon #34: though the same windows could be cached in the new order too; that of another
    pipeline stays in use and in the plan."""
    watch = watch_over(KEPT)
    mine, other = segment(watch, 0), segment(watch, 1)
    watch.go_back((mine, other))
    assert len(watch.applied(planned(KEPT)).blocks[0].subresults) == 2
    for used in (mine, other):
        assert watch.pool.ask(used.shared, 1.0).granted

    reordered = planned({**KEPT, 0: (2, 1)})
    assert watch.follows(reordered, [])
    assert watch.choice == (other,)
    assert watch.states.states[segment(watch, 0)] is State.PROFILED
    assert watch.states.used == {other}
    assert watch.pool.pages_of(mine.shared) == 0
    assert watch.pool.pages_of(other.shared) == 1
    applied = watch.applied(reordered).blocks[0]
    assert [k.members for k in applied.subresults] == [tuple(sorted(other.leaves))]


def test_what_was_profiled_in_the_old_order_is_forgotten() -> None:
    """streamon #34: nothing is chosen by it."""
    watch = watch_over(KEPT)
    states = watch.states
    for candidate in list(states.states):
        states.observed(candidate, 10.0, 1.0, times=10)
    assert states.ready()
    watch.follows(planned({**KEPT, 0: (2, 1)}), [])
    assert not states.ready()
    assert states.states[segment(watch, 0)] is State.PROFILED


def test_the_same_orders_change_nothing() -> None:
    watch = watch_over(KEPT)
    mine = segment(watch, 0)
    watch.go_back((mine,))
    assert not watch.follows(watch.applied(planned(KEPT)), [])
    assert watch.choice == (mine,)


def ring(count: int) -> Pipelines:
    """Each meets the next one first: no part of the join keeps the prefix invariant."""
    return {i: tuple((i + step) % count for step in range(1, count)) for i in range(count)}


def line(count: int) -> Pipelines:
    """All meet the others in the same order: many parts keep it."""
    return {i: tuple(j for j in range(count) if j != i) for i in range(count)}


@pytest.mark.parametrize("count", [4, 5, 6])
def test_a_join_considers_no_more_global_caches_than_the_quota(count: int) -> None:
    """streamon #36: of dozens of parts; ordinary caches are all considered, whatever the quota."""
    parts = count * (count - 1) * (count - 2) // 2
    watch = watch_over(ring(count))
    assert not prefix_sets(ring(count))
    assert len(watch.states.states) == CACHE_QUOTA < parts
    ordinary = prefix_sets(line(count))
    watch = watch_over(line(count))
    kept = [s for s in watch.states.states if s.leaves in ordinary]
    assert len(watch.states.states) == max(len(kept), CACHE_QUOTA)
    assert watch.follows(planned(ring(count)), [])
    assert len(watch.states.states) == CACHE_QUOTA
