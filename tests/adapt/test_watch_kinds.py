"""What every kind of watch must keep to, over a query in which it finds something to watch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.adapt.joins.caching import CACHES, CacheWatch
from thalweg.adapt.kinds import WATCH_KINDS
from thalweg.adapt.operation_costs import UNITS
from thalweg.adapt.planlog import PlanLog
from thalweg.adapt.profiler import Profiler
from thalweg.adapt.watch import Known, Watch, WatchKind, WatchProfiler
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.joins.join_order import PipelineOf, pipeline_of, repiped
from thalweg.plan.physical import QueryPlan
from thalweg.testing import Runner

QUERY = (
    "SELECT a.k, b.v, c.w FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS] "
    "WHERE a.k = b.k AND b.v = c.v AND a.w > 1 AND a.v < 9 WITH (joins = '{joins}')"
)
JOINS = {"filters": "mjoin", "pipelines": "mjoin", "trees": "xjoin", "caches": "cached"}


def planned(joins: str) -> tuple[QueryPlan, BoundQuery]:
    runner = Runner()
    stamps = pa.array(np.arange(9) * 1_000_000, pa.timestamp("us", "UTC"))
    for name in "abc":
        columns = {c: np.arange(9) for c in "kvw"}
        runner.stream(name, pa.table({**columns, "ts": stamps}))
    query = runner.query(QUERY.format(joins=joins), "q")
    return runner.core.planner.physical(query.bound), query.bound


def watch_of(kind: WatchKind) -> tuple[Watch[Any], QueryPlan]:
    plan, bound = planned(JOINS[kind.name])
    return kind.find(plan, bound.options, Known({}, UNITS, 1 << 20))[0], plan


def test_every_kind_has_a_query_here() -> None:
    assert [kind.name for kind in WATCH_KINDS] == list(JOINS)


@pytest.fixture(params=WATCH_KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> WatchKind:
    found: WatchKind = request.param
    return found


def test_the_present_choice_is_the_first_candidate(kind: WatchKind) -> None:
    watch, _ = watch_of(kind)
    first, *others = watch.candidates(compare=True)
    assert first.choice == watch.choice
    assert first.reason is None
    assert all(candidate.reason is None for candidate in others)  # nothing was observed yet
    assert watch.cost(watch.choice) is None
    assert all(isinstance(text, str) for text in watch.shown(watch.choice))


def test_what_is_kept_is_resumed(kind: WatchKind) -> None:
    watch, _ = watch_of(kind)
    other, _ = watch_of(kind)
    kept = watch.kept()
    if isinstance(kept, list):
        other.resume(kept[::-1])
        assert other.kept() == kept[::-1] != kept
        other.resume([*kept, len(kept)])  # of another text
        assert other.kept() == kept[::-1]
        other.resume(kept)
    assert other.kept() == kept
    assert other.choice == watch.choice


def test_a_choice_is_applied_once_and_for_all(kind: WatchKind) -> None:
    watch, plan = watch_of(kind)
    once = watch.applied(plan)
    assert watch.applied(once) == once
    assert not watch.is_stale
    watch.follows(once, [])
    assert not watch.follows(once, [])


def test_statistics_and_words_are_its_own(kind: WatchKind) -> None:
    watch, _ = watch_of(kind)
    profiler = Profiler()
    for key, statistic in watch.statistics().items():
        profiler.ask(("q", *key), None, statistic)
    seen = WatchProfiler(profiler, ("q",))
    assert watch.lines(seen)
    assert all(isinstance(one, dict) for one in watch.report(seen))
    assert (watch.what is None) == (not watch.statistics())
    assert PlanLog().kept() == {}


def test_an_epoch_in_which_pipelines_are_reordered_counts_for_caches() -> None:
    """What was profiled in it is spent, though it says nothing about the new pipelines."""
    watch, plan = watch_of(CACHES)
    assert isinstance(watch, CacheWatch)
    which = PipelineOf(0, 1)
    order = pipeline_of(plan, which).order
    other = repiped(plan, which, order[::-1])
    assert pipeline_of(other, which).order != order
    assert watch.follows(other, [])
    assert watch.seen.epochs == 1
    assert not watch.follows(other, [])
    assert watch.seen.epochs == 1
