"""Columns OVER the order of rows."""

from __future__ import annotations

import pytest

from thalweg.errors import BindError
from thalweg.testing import Runner
from trade_rows import rows, shown


def test_columns_over_different_partitions_do_not_depend_on_their_order() -> None:
    found = []
    columns = ["LEAD(price) OVER (PARTITION BY sym) AS nx", "LAG(price) OVER () AS pv"]
    for chosen in (columns, columns[::-1]):
        runner = Runner(epochs=3)
        data = [(1, "A", 1, 1), (2, "B", 2, 1), (3, "B", 3, 1), (4, "A", 4, 1), (5, "B", 5, 1)]
        runner.stream("t", rows(*data))
        query = runner.query(f"SELECT price, {', '.join(chosen)} FROM t")
        runner.run()
        found.append(sorted(shown(query.results(), "price", "nx", "pv"), key=repr))
    assert found[0] == found[1] == [(1.0, 4.0, None), (2.0, 3.0, 1.0), (3.0, 5.0, 2.0)]
    with pytest.raises(BindError, match="one partition only"):
        runner.query("SELECT LEAD(price) OVER (), LEAD(price) OVER (PARTITION BY sym) FROM t")
