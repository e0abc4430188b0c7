"""Statistics of queries are what JSON can say."""

from __future__ import annotations

import json

import pyarrow as pa

from thalweg.testing.runner import Runner


def test_stats_are_plain_json() -> None:
    stamps = pa.array([i * 1_000_000 for i in range(3_000)], pa.timestamp("us", "UTC"))
    table = pa.table(
        {"ts": stamps, "k": [i % 5 for i in range(3_000)], "v": [float(i) for i in range(3_000)]}
    )
    made = Runner(epochs=3)
    for name in "sr":
        made.stream(name, table)
    made.query("SELECT k FROM s WHERE v > 3 AND k < 4 AND v < 2000", "filtered")
    made.query(
        "SELECT a.k FROM s [RANGE 3 SECONDS] a, r [RANGE 3 SECONDS] b, r [RANGE 2 SECONDS] c "
        "WHERE a.k = b.k AND b.v = c.v",
        "joined",
    )
    made.run()
    for query in made.queries.values():
        stats = query.stats()
        assert json.loads(json.dumps(stats, allow_nan=False)) == stats
        assert stats["adapt"]["considered"]
