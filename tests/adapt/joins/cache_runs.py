"""A join of three streams that runs epoch by epoch, with its operations counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.adapt.joins.caching import CacheWatch
from thalweg.adapt.operation_costs import UNITS, JoinCosts
from thalweg.plan.joins.join_caches import Span, with_spans
from thalweg.plan.joins.join_order import Orders
from thalweg.runtime.session.session import Query
from thalweg.testing.runner import Runner

SECOND = 1_000_000
SQL = """SELECT ISTREAM r.a, s.b, t.v FROM r [RANGE 1 SECOND], s [RANGE 4 SECONDS],
  t [RANGE 4 SECONDS] WHERE r.a = s.a AND s.b = t.b WITH (joins = '{joins}')"""
Rates = dict[str, Any]
Draw = Callable[[np.random.Generator, str, int, int], np.ndarray]
"""Values of a column in an epoch, as many as there are rows."""
MANY_PROBES: Rates = {"r": 2_000, "s": 100, "t": 100}
MANY_UPDATES: Rates = {"r": 50, "s": 1_500, "t": 1_500}


def few_keys(rng: np.random.Generator, column: str, epoch: int, rows: int) -> np.ndarray:
    return rng.integers(0, 200, rows)


def batches(rates: Rates, epochs: int, draw: Draw = few_keys) -> list[dict[str, pa.Table]]:
    rng = np.random.default_rng(4)
    found = []
    for epoch in range(epochs):
        batch = {}
        for name, columns in (("r", "a"), ("s", "ab"), ("t", "bv")):
            rate = rates[name]
            rows = rate(epoch) if callable(rate) else rate
            ts = np.sort(rng.integers(epoch * SECOND, (epoch + 1) * SECOND, rows))
            ts[-1] = (epoch + 1) * SECOND - 1
            values = {c: draw(rng, f"{name}.{c}", epoch, rows) for c in columns}
            stamps = pa.array(ts, pa.timestamp("us", "UTC"))
            batch[name] = pa.table({**values, "ts": stamps})
        found.append(batch)
    return found


def run(
    rates: Rates,
    joins: str,
    epochs: int = 24,
    spans: list[Span] | None = None,
    memory: int = 1 << 26,
    costs: JoinCosts | None = UNITS,
    sql: str = SQL,
    draw: Draw = few_keys,
) -> tuple[Query, Runner, list[int]]:
    """The query, and the operations of every epoch."""
    runner = Runner()
    adaptation = runner.core.adaptation
    adaptation.join_costs, adaptation.cache_bytes = costs, memory
    given = batches(rates, epochs, draw)
    for name, table in given[0].items():
        runner.stream(name, table.slice(0, 0))
    query = runner.query(sql.format(joins=joins), name="q")
    if spans is not None:
        plan = runner.core.planner.physical(query.bound, Orders((), ((1, 2), (2, 0), (1, 0))))
        runner.core.plans.replace("q", with_spans(plan, 0, spans))
        adaptation.queries.clear()
    done, operations = 0, []
    for batch in given:
        runner.epoch([runner.entry(batch)])
        counts = query.stats()["counts"]
        kinds = ("probes:", "enumerated:", "combined:", "lookups:", "deltas:")
        now = sum(v for k, v in counts.items() if k.startswith(kinds))
        operations.append(now - done)
        done = now
    return query, runner, operations


def rows(query: Query) -> list[str]:
    return sorted(map(str, query.results().to_pylist()))


def watch_of(runner: Runner) -> CacheWatch:
    (found,) = runner.core.adaptation.queries["q"].of("caches")
    return found
