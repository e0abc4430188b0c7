"""The current answer of a relation is the sum of its changes."""

from __future__ import annotations

from collections import Counter

import pytest
from eight_rows import RELATION, STREAM, runner_over, summed

from thalweg.errors import ConfigError


@pytest.mark.parametrize("epochs", [1, 4, 8])
def test_invoke_is_the_sum_of_all_changes(epochs: int) -> None:
    """priorart Q2: the answer after every batch, and at every instant before."""
    runner = runner_over(epochs)
    query = runner.query(RELATION)
    runner.run()
    now = Counter((r["k"], r["n"]) for r in query.invoke().to_pylist())
    assert now == summed(query.results())
    for at in range(13):
        then = Counter((r["k"], r["n"]) for r in query.invoke(at).to_pylist())
        alive = [r for r in STREAM.to_pylist() if at - 3 <= r["ts"].microsecond <= at]
        assert then == Counter(Counter(r["k"] for r in alive).items())
    shown = runner.sql(f"INVOKE {query.name} AT TIMESTAMP '1970-01-01 00:00:00.000004'")
    assert sorted(shown.to_pylist(), key=repr) == sorted(query.invoke(4).to_pylist(), key=repr)


def test_an_istream_has_no_current_answer() -> None:
    runner = runner_over()
    query = runner.query("SELECT k FROM s")
    runner.run()
    with pytest.raises(ConfigError, match="no current answer"):
        query.invoke()
