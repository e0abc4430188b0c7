"""Plans follow from what the Profiler knows and from nothing else: one that returns nonsense leads
to other plans, though never to other rows. What was considered is in the plan log, with the reason,
and is there after a restart."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.adapt.adaptation import Adaptation
from thalweg.adapt.constants import LOG_KEPT, SLICE_ROWS
from thalweg.adapt.operation_costs import UNITS
from thalweg.adapt.planlog import (
    KEPT,
    PENDING,
    REVERTED,
    SWITCHED,
    Considered,
    PlanLog,
    Switch,
)
from thalweg.adapt.profiler import Profiler
from thalweg.exec.tactics import JoinSeen, Observation
from thalweg.runtime.session.query_handle import Query
from thalweg.runtime.state.engine_state import EngineState
from thalweg.testing import Runner

SECOND = 1_000_000


class NonsenseProfiler(Profiler):
    """Believes of each predicate and window what holds of another, and that no key ever repeats."""

    def record(self, key: Any, *seen: Any) -> None:
        super().record(key, *map(self._turned, seen))

    def _turned(self, seen: Any) -> Any:
        if isinstance(seen, Observation):
            return replace(seen, profile=seen.profile[:, ::-1])
        if isinstance(seen, list):
            return [self._new_keys(one) for one in seen]
        return seen

    def _new_keys(self, one: JoinSeen) -> JoinSeen:
        rng = np.random.default_rng(one.rows.get(0, 0))
        keys = {n: rng.integers(0, 1 << 63, len(k)).astype(np.uint64) for n, k in one.keys.items()}
        return replace(one, keys=keys)


def stamps(micros: Any) -> pa.Array:
    return pa.array(micros, pa.timestamp("us", "UTC"))


def filtered(profiler: Profiler, **how: Any) -> tuple[Query, Runner]:
    """Nearly every `a` passes, and few `b`."""
    rows, rng = 20 * SLICE_ROWS, np.random.default_rng(1)
    columns = {name: (rng.random(rows) < p).astype(int) for name, p in (("a", 0.9), ("b", 0.1))}
    made = Runner(costs={"a = 1": 1.0, "b = 1": 1.0}, epochs=8, **how)
    made.core.adaptation.profiler = profiler
    made.stream("s", pa.table({**columns, "ts": stamps(np.arange(rows))}))
    query = made.query("SELECT a FROM s WHERE a = 1 AND b = 1 WITH (filters = 'a-greedy')", "q")
    made.run()
    return query, made


def joined(profiler: Profiler, spread: dict[str, int], joins: str) -> Query:
    """Rows of r have many partners in `s` and few in `t`, as the keys are spread."""
    made, rng = Runner(), np.random.default_rng(4)
    made.core.adaptation.join_costs = UNITS
    made.core.adaptation.profiler = profiler
    batches = []
    for epoch in range(24):
        batch = {}
        for name, rate in (("r", 2_000), ("s", 100), ("t", 100)):
            ts = np.sort(rng.integers(epoch * SECOND, (epoch + 1) * SECOND, rate))
            keys = rng.integers(0, spread[name], rate)
            batch[name] = pa.table({"k": keys, "v": rng.integers(0, 9, rate), "ts": stamps(ts)})
        batches.append(batch)
    for name, table in batches[0].items():
        made.stream(name, table.slice(0, 0))
    query = made.query(
        "SELECT ISTREAM r.v AS a, s.v AS b, t.v AS c FROM r [RANGE 1 SECOND], s [RANGE 2 SECONDS],"
        f" t [RANGE 2 SECONDS] WHERE r.k = s.k AND s.k = t.k WITH (joins = '{joins}')",
        "q",
    )
    for batch in batches:
        made.epoch([made.entry(batch)])
    return query


SELECTIVE_T = {"r": 300, "s": 300, "t": 9_000}
FEW_KEYS = {"r": 200, "s": 200, "t": 200}


def considered_for(query: Query) -> list[Considered]:
    return [Considered.from_dict(one) for one in query.stats()["adapt"]["considered"]]


def rows_of(query: Query) -> list[str]:
    return sorted(map(str, query.results().to_pylist()))


def test_orders_of_filters_follow_the_profiler() -> None:
    honest, _ = filtered(Profiler())
    fooled, _ = filtered(NonsenseProfiler())
    assert [p.label for p in honest.plan.leaves[0].filters] == ["b = 1", "a = 1"]
    assert [p.label for p in fooled.plan.leaves[0].filters] == ["a = 1", "b = 1"]
    assert rows_of(fooled) == rows_of(honest)


def test_orders_of_pipelines_follow_the_profiler() -> None:
    first = []
    for profiler in (Profiler(), NonsenseProfiler()):
        query = joined(profiler, SELECTIVE_T, "mjoin")
        (pipeline,) = (p for p in query.plan.blocks[0].pipelines if p.leaf == 0)
        first.append(query.plan.leaves[pipeline.order[0]].alias)
    assert first == ["t", "s"]


def test_caches_follow_the_profiler() -> None:
    honest = joined(Profiler(), FEW_KEYS, "cached")
    fooled = joined(NonsenseProfiler(), FEW_KEYS, "cached")
    assert honest.plan.blocks[0].subresults
    assert not fooled.plan.blocks[0].subresults
    assert rows_of(fooled) == rows_of(honest)


# -- the plan log --------------------------------------------------------------------------------


def test_what_was_considered_is_logged_with_its_reason_and_costs() -> None:
    query, _ = filtered(Profiler())
    (switch,) = query.plan_log
    (found,) = (c for c in considered_for(query) if c.outcome == SWITCHED)
    assert found.subject == switch.subject == "a = 1 AND b = 1"
    assert found.why == switch.statistic == "drops per cost"
    assert [plan for plan, _ in found.plans] == [switch.old, switch.new]
    (_, before), (_, after) = found.plans
    assert before == pytest.approx(1.9, abs=0.1)
    assert after == pytest.approx(1.1, abs=0.1)
    assert switch.predicted == (before, after)
    assert str(found) in query.explain(adapt=True)


def test_a_statistic_that_changes_makes_the_loop_look_again() -> None:
    """The Profiler announces that `a` passes less; what is in force is still the best."""
    rows, rng = 20 * SLICE_ROWS, np.random.default_rng(1)
    shares = np.where(np.arange(rows) < rows // 2, 0.9, 0.6)
    columns = {"a": (rng.random(rows) < shares).astype(int), "b": rng.integers(0, 9, rows)}
    made = Runner(costs={"a = 1": 1.0, "b = 1": 1.0}, epochs=4)
    made.stream("s", pa.table({**columns, "ts": stamps(np.arange(rows))}))
    query = made.query("SELECT a FROM s WHERE b = 1 AND a = 1 WITH (filters = 'a-greedy')", "q")
    made.run()
    assert query.plan_log == []
    about_a = re.compile(r"a = 1 selectivity went from 0\.[89]\d* to 0\.[56]\d*")
    (found,) = (c for c in considered_for(query) if about_a.search(c.why))
    assert found.outcome == "nothing proposed"
    assert found.plans[0][0] == ("b = 1", "a = 1")


def test_the_plan_log_survives_a_restart() -> None:
    query, made = filtered(Profiler())
    log, before = query.plan_log, considered_for(query)
    made.restart()
    assert query.plan_log == log != []
    assert considered_for(query) == before != []
    assert query.stats()["adapt"]["switches"] == len(log)


def test_the_end_of_a_log_is_kept_as_json() -> None:
    log = PlanLog()
    for epoch in range(40):
        why = "drops per cost", "x", "y", 1.0, 2.0, 9
        old, new = ("x", "y"), ("y", "x")
        log.add(Switch(epoch, "x AND y", old, new, *why, (2.0, 1.0), 2.1, 1.2, REVERTED))
        plans = ((("x", "y"), 2.0), (("y", "x"), None))
        log.consider(Considered(epoch, "x AND y", "drops per cost", plans, SWITCHED))
    again = PlanLog(log.kept())
    assert again.count == 40
    assert list(again) == list(log)[-LOG_KEPT:]
    assert list(again.considered) == list(log.considered)[-LOG_KEPT:]
    assert again.kept() == log.kept()


def test_nobody_judges_a_switch_any_more_after_a_restart() -> None:
    log = PlanLog()
    log.add(Switch(1, "x AND y", ("x", "y"), ("y", "x"), "drops per cost", "x", "y", 1.0, 2.0, 9))
    assert [s.outcome for s in log] == [PENDING]
    assert [s.outcome for s in PlanLog(log.kept())] == [KEPT]


def test_the_same_refusal_is_noted_once() -> None:
    log = PlanLog()
    for epoch in range(9):
        plans = ((("x", "y"), 2.0), (("y", "x"), 1.0 + epoch))
        log.consider(Considered(epoch, "x AND y", "drops per cost", plans, "banned"))
    assert [c.epoch for c in log.considered] == [0]


def test_orders_of_an_earlier_version_are_taken_over_by_position() -> None:
    query, made = filtered(Profiler())
    saved = made.core.state.to_json()
    (state,) = saved["queries"].values()
    del state["learned"]
    state["orders"] = [[1, 0]]
    found = EngineState.from_json({**saved, "layout": 3}).queries["q"].definition.learned
    adaptation, plan = Adaptation(), made.core.planner.physical(query.bound)
    assert [p.label for p in plan.leaves[0].filters] == ["a = 1", "b = 1"]
    plan = adaptation.watch("q", plan, query.bound.options, found)
    assert [p.label for p in plan.leaves[0].filters] == ["b = 1", "a = 1"]
    assert adaptation.kept("q")["filters: a = 1 AND b = 1"] == [1, 0]
