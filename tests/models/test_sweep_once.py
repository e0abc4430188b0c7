"""A sweep over models: what its variants share is computed once, and no state beside it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from thalweg.testing import Runner

SECOND = 1_000_000
QUERY = (
    "SELECT RSTREAM S.k, S.m - L.m AS d FROM "
    "(SELECT k, avg(x) AS m FROM s [RANGE :fast SLIDE 2 SECONDS] "
    "MODEL (FIT x DEGREE 1 WITHIN 0.5) GROUP BY k) AS S JOIN "
    "(SELECT k, avg(x) AS m FROM s [RANGE 20 SECONDS SLIDE 2 SECONDS] "
    "MODEL (FIT x DEGREE 1 WITHIN 0.5) GROUP BY k) AS L ON S.k = L.k WHERE S.m > L.m + :margin"
)


def table() -> pa.Table:
    rng = np.random.default_rng(0)
    steps = 600
    ts = np.repeat(np.arange(steps) * SECOND // 5, 3)
    return pa.table(
        {
            "k": np.tile(np.arange(3), steps),
            "x": np.cumsum(rng.normal(size=(steps, 3)), axis=0).ravel(),
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
        }
    )


def test_a_sweep_answers_as_each_query_by_itself() -> None:
    rows = [{"fast": f, "margin": m} for f in ("4 seconds", "6 seconds") for m in (0.0, 0.25)]
    runner = Runner()
    runner.stream("s", table(), key=["k"])
    found = runner.sweep(QUERY, rows).to_pylist()
    assert {(r["fast"], r["margin"]) for r in found} == {tuple(r.values()) for r in rows}
    for row in rows:
        alone = Runner(epochs=3)
        alone.stream("s", table(), key=["k"])
        text = QUERY.replace(":fast", row["fast"]).replace(":margin", str(row["margin"]))
        query = alone.query(text, "q")
        alone.run()
        own = [
            {n: v for n, v in r.items() if n not in row}
            for r in found
            if (r["fast"], r["margin"]) == (row["fast"], row["margin"])
        ]
        assert own
        assert sorted(own, key=repr) == sorted(query.results().to_pylist(), key=repr)
