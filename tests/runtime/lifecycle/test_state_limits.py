"""Queries at the limit of their state."""

from __future__ import annotations

from thalweg.testing import Runner
from trade_rows import rows


def test_rows_below_the_floor_never_come_back() -> None:
    runner = Runner()
    runner.stream("t", rows(), lateness="25 seconds")
    text = "SELECT qty FROM t [RANGE 60 SECONDS SLIDE 60 SECONDS] WITH (state_limit = 800)"
    query = runner.query(text)
    for i in range(30):
        runner.feed({"t": rows(*((30 * i + 3 * j, "A", 1.0, 10 * i + j) for j in range(10)))})
    runner.feed({"t": rows((5000, "Z", 1.0, 1))})
    runner.feed({"t": rows((5200, "Z", 1.0, 2))})
    runner.close()
    assert query.stats()["approximate_since"] is not None
    assert query.invoke().to_pylist() == [{"qty": 2}]
