"""Aggregates without groups: there is always one row."""

from __future__ import annotations

from trade_rows import rows, runner_over


def test_a_global_aggregate_over_nothing_survives_folding() -> None:
    runner = runner_over()
    query = runner.query("SELECT count(*) AS n FROM t [RANGE 1 SECOND] WHERE sym = 'A'")
    for i, sym in enumerate("A" * 16 + "B" * 5 + "AB"):
        runner.feed({"t": rows((10 * i, sym, 1.0, 1))})
    runner.close()
    assert query.invoke().to_pylist() == [{"n": 0}]
