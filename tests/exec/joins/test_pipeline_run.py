"""Two-phase pipelines: who is dropped is never enumerated, and orders change probes alone."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.plan.joins.join_order import Orders
from thalweg.testing.runner import Runner

ROWS = 400
WINDOW = "[RANGE 1 HOUR]"
STAR = f"""SELECT ISTREAM r.v, s.v AS sv, t.v AS tv, u.v AS uv FROM r [NOW], s {WINDOW},
  t {WINDOW}, u {WINDOW} WHERE r.a = s.a AND r.b = t.b AND r.c = u.c"""


def star(hits: dict[str, float]) -> dict[str, pa.Table]:
    """`r` comes last and finds partners, two each, in s, t and u with the given shares."""
    rng = np.random.default_rng(5)
    tables = {}
    root: dict[str, Any] = {"v": np.arange(ROWS)}
    for name, column in (("s", "a"), ("t", "b"), ("u", "c")):
        found = rng.random(ROWS) < hits[name]
        root[column] = np.where(found, rng.integers(0, 50, ROWS), 1_000)
        keys = np.repeat(np.arange(50), 2)
        stamps = pa.array(np.arange(len(keys)), pa.timestamp("us", "UTC"))
        tables[name] = pa.table({column: keys, "v": np.arange(len(keys)), "ts": stamps})
    # apart, so that no row vanishes at an instant at which another comes
    stamps = pa.array(1_000 + 10 * np.arange(ROWS), pa.timestamp("us", "UTC"))
    return {"r": pa.table({**root, "ts": stamps}), **tables}


def run(order: tuple[int, ...], hits: dict[str, float]) -> tuple[list[Any], dict[str, int]]:
    runner = Runner()
    tables = star(hits)
    for name, table in tables.items():
        runner.stream(name, table)
    query = runner.query(STAR, name="q")
    plans = runner.core.plans
    plans.replace("q", runner.core.planner.physical(query.bound, Orders((), (order, (), (), ()))))
    runner.core.adaptation.queries.clear()  # nobody else changes the plan
    runner.run()
    rows = sorted(map(str, query.results().to_pylist()))
    return rows, query.stats()["counts"]


def test_no_result_is_enumerated_for_dropped_rows() -> None:
    """Rows without a partner somewhere are never multiplied (streamon #23)."""
    rows, counts = run((1, 2, 3), {"s": 1.0, "t": 1.0, "u": 0.0})
    assert rows == []
    assert not any(v for k, v in counts.items() if k.startswith("enumerated:"))
    assert counts["probes:s"] == counts["probes:t"] == counts["probes:u"] == ROWS


@pytest.mark.parametrize("order", permutations((1, 2, 3)))
def test_orders_change_probe_counts_alone(order: tuple[int, ...]) -> None:
    """Same rows, same enumeration; probes are those of pipelined filtering (streamon #23)."""
    hits = {"s": 0.9, "t": 0.5, "u": 0.1}
    usual, first = run((1, 2, 3), hits)
    rows, counts = run(order, hits)
    assert rows == usual
    assert len(rows) > 0
    enumerated = {k: v for k, v in counts.items() if k.startswith("enumerated:")}
    assert enumerated == {k: v for k, v in first.items() if k.startswith("enumerated:")}
    assert sum(enumerated.values()) > 0
    alive = np.ones(ROWS, np.bool_)
    tables = star(hits)
    for leaf in order:
        name, column = (("s", "a"), ("t", "b"), ("u", "c"))[leaf - 1]
        assert counts[f"probes:{name}"] == alive.sum()
        alive &= tables["r"].column(column).to_numpy() < 50
