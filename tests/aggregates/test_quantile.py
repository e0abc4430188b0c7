"""Quantiles over windows, against sorted lists."""

from __future__ import annotations

import pytest

from thalweg.testing import Runner
from trade_rows import rows


@pytest.mark.parametrize("epochs", [1, 10])
def test_quantiles_of_distinct_values(epochs: int) -> None:
    prices = [1, 1, 1, 5, 9, 9, 2, 7, 7, 3]
    runner = Runner(epochs=epochs)
    runner.stream("t", rows(*((i, "A", float(p), p) for i, p in enumerate(prices))))
    query = runner.query("SELECT RSTREAM median(DISTINCT price) AS m FROM t [ROWS 6]")
    runner.run()
    wanted = []
    for i in range(10):
        some = sorted(set(prices[max(i - 5, 0) : i + 1]))
        half = (len(some) - 1) / 2
        wanted.append((some[int(half)] + some[-int(half) - 1]) / 2)
    assert query.results().column("m").to_pylist() == wanted
