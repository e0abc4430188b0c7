"""The log of plans outlives changes of its query."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thalweg.testing import Runner


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


def test_altering_a_query_keeps_its_plan_log_and_is_kept_itself() -> None:
    rows = 60_000
    rng = np.random.default_rng(1)
    often, seldom = rng.random(rows) < 0.9, rng.random(rows) < 0.1
    table = pa.table(
        {"a": often.astype(int), "b": seldom.astype(int), "ts": stamps(np.arange(rows))}
    )
    made = Runner()
    made.stream("s", table)
    query = made.query("SELECT a FROM s WHERE a = 1 AND b = 1", "q")
    made.feed({"s": table.slice(0, rows // 2)})
    switches = len(query.plan_log)
    assert switches > 0
    made.sql("ALTER QUERY q SET (filters = 'sweep')")
    assert len(query.plan_log) == switches
    made.restart()  # before any other epoch
    assert query.stats()["adapt"]["filters"][0]["ordering"] == "sweep"
