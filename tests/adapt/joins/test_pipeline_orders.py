"""Pipelines that adapt: their order follows the data, and nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.adapt.operation_costs import UNITS
from thalweg.plan.joins.join_order import PipelineOf, pipeline_of
from thalweg.runtime.session.session import Query
from thalweg.testing.runner import Runner

EPOCHS, ROWS, KEYS = 24, 2_000, 50
STAR = """SELECT ISTREAM r.v, s.v AS sv, t.v AS tv, u.v AS uv FROM r [NOW], s, t, u
  WHERE r.a = s.a AND r.b = t.b AND r.c = u.c {more}"""
SHARES = ((0.9, 0.5, 0.05), (0.05, 0.5, 0.9))  # of the rows of r with partners in s, t, u


def drifting() -> dict[str, pa.Table]:
    """Half-way the table that drops most becomes the one that drops least."""
    rng = np.random.default_rng(8)
    total = EPOCHS * ROWS
    late = np.arange(total) >= total // 2
    root: dict[str, Any] = {"v": np.arange(total)}
    tables = {}
    for i, (name, column) in enumerate((("s", "a"), ("t", "b"), ("u", "c"))):
        share = np.where(late, SHARES[1][i], SHARES[0][i])
        found = rng.random(total) < share
        root[column] = np.where(found, rng.integers(0, KEYS, total), 1_000)
        tables[name] = pa.table({column: np.arange(KEYS), "v": np.arange(KEYS)})
    root["ts"] = pa.array(1_000 + 10 * np.arange(total), pa.timestamp("us", "UTC"))
    return {"r": pa.table(root), **tables}


def run(more: str = "", **how: Any) -> tuple[Query, Runner]:
    runner = Runner(epochs={"r": [ROWS * i for i in range(1, EPOCHS)]}, **how)
    for name, table in drifting().items():
        (runner.stream if name == "r" else runner.table)(name, table)
    # lookups count alike: a busy machine must not decide which window is probed first
    runner.core.adaptation.join_costs = UNITS
    query = runner.query(STAR.format(more=more), name="q")
    runner.run()
    return query, runner


def probes(query: Query) -> int:
    return sum(v for k, v in query.stats()["counts"].items() if k.startswith("probes:"))


def rows(query: Query) -> list[str]:
    return sorted(map(str, query.results().to_pylist()))


def test_a_pipeline_follows_its_data() -> None:
    """The most selective window is probed first, before and after the change (streamon #9, #23)."""
    query, _ = run()
    fixed, _ = run("WITH (filters = 'fixed')")
    assert rows(query) == rows(fixed)
    assert len(rows(query)) > 0
    order = [p.leaf for p in pipeline_of(query.plan, PipelineOf(0, 0)).probes]
    assert order[0] == 1
    log = [s for s in query.plan_log if s.subject == "Δr"]
    assert log
    assert log[0].new[0] == "u"
    assert log[-1].new[0] == "s"
    assert all(s.epoch < 4 or s.epoch >= EPOCHS // 2 for s in log)
    best, worst = ROWS * (1 + 0.05 + 0.05 * 0.5), ROWS * (1 + 0.9 + 0.9 * 0.5)  # per epoch
    assert probes(fixed) > 1.5 * EPOCHS * best
    assert probes(query) < (EPOCHS - 4) * best + 4 * worst  # two epochs to learn each time


def test_an_order_survives_a_restart() -> None:
    """What was learned is kept with the query."""
    query, _ = run(restarts=(6,))
    again = [s for s in query.plan_log if s.subject == "Δr"]
    assert [s.new[0] for s in again] == ["u", "s"]  # each was learned once, and is remembered


def test_explain_tells_pipelines() -> None:
    """EXPLAIN ADAPT names the source, what each window lets pass, and the switches."""
    query, _ = run()
    text = query.explain(adapt=True)
    assert "pipeline of Δr by auto" in text
    assert "s: passes" in text
    assert "s → " in text
