"""Session windows."""

from __future__ import annotations

import pytest

from thalweg.testing import Runner
from trade_rows import rows


@pytest.mark.parametrize("by", ["sym", "1", "s", "t.sym"])
def test_sessions_are_of_what_the_query_groups_by(by: str) -> None:
    runner = Runner()
    runner.stream("t", rows((1, "A", 1, 1), (5, "B", 1, 1), (9, "A", 1, 1), (13, "B", 1, 1)))
    query = runner.query(
        f"SELECT ISTREAM sym AS s, count(*) AS n FROM t [SESSION GAP 5 SECONDS] GROUP BY {by}"
    )
    runner.run()
    assert query.results().column("n").to_pylist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("emits", "counts"),
    [("ISTREAM", [0, 2, 0, 1]), ("RSTREAM", [2, 1])],
)
def test_what_is_emitted_of_sessions_without_groups(emits: str, counts: list[int]) -> None:
    """The language page: an aggregate without GROUP BY has an answer between sessions, too."""
    runner = Runner(epochs=3)
    runner.stream("t", rows((1, "A", 1, 1), (4, "B", 1, 1), (30, "A", 1, 1)))
    query = runner.query(f"SELECT {emits} count(*) AS n FROM t [SESSION GAP 5 SECONDS]")
    whole = runner.query("SELECT ISTREAM sym FROM t [SESSION GAP 5 SECONDS]")
    runner.run()
    assert query.results().column("n").to_pylist() == counts
    assert whole.results().num_rows == 3
