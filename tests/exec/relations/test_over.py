"""Columns OVER the order of rows."""

from __future__ import annotations

import pytest

from thalweg.errors import BindError
from thalweg.testing import Runner
from thalweg.testing.generators import case_of
from thalweg.testing.grid import check_case
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


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("second", ["LAG(n) OVER ()", "LEAD(n) OVER (PARTITION BY g)"])
def test_columns_over_several_partitions_see_one_order_of_equal_times(
    seed: int, second: str
) -> None:
    """Rows of one instant are in the order of their content, all of it, whatever is selected."""
    sql = f"SELECT ISTREAM k, row_number() OVER (PARTITION BY k), {second} AS o FROM s1"
    check_case(case_of(sql, seed))


def test_columns_over_several_partitions_follow_the_order_of_the_stream() -> None:
    table = rows((1, "A", 3, 1), (1, "A", 2, 2), (1, "B", 1, 3))
    runner = Runner()
    runner.stream("t", table, order_by=["qty"])
    columns = "row_number() OVER (PARTITION BY sym) AS r, LAG(price) OVER () AS o"
    query = runner.query(f"SELECT price, {columns} FROM t")
    runner.run()
    assert sorted(shown(query.results(), "price", "r", "o"), key=repr) == [
        (1.0, 1, 2.0), (2.0, 2, 3.0), (3.0, 1, None),
    ]  # fmt: skip
