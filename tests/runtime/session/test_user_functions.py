"""Foreign code: it may raise, hang or lie; only its own query suffers."""

from __future__ import annotations

import contextlib
import time

import pyarrow as pa
import pytest

from thalweg.errors import DuplicateName, QueryFailed
from thalweg.testing import Runner

STREAM = pa.table({"k": [1, 2, 3], "ts": pa.array([1, 2, 3], pa.timestamp("us", "UTC"))})


def runner_over() -> Runner:
    runner = Runner(epochs=2)
    runner.stream("s", STREAM)
    runner.core.settings.function_deadline = 0.3
    return runner


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_function_that_hangs_fails_its_query_alone(vectorized: bool) -> None:
    def hang(k: object) -> bool:
        while True:
            with contextlib.suppress(Exception):  # as careless code does
                time.sleep(0.05)

    runner = runner_over()
    runner.function("hang", hang, "BOOLEAN", vectorized=vectorized)
    stuck = runner.query("SELECT k FROM s WHERE hang(k)", name="stuck")
    fine = runner.query("SELECT k FROM s", name="fine")
    begun = time.perf_counter()
    runner.run()
    assert time.perf_counter() - begun < 5
    with pytest.raises(QueryFailed, match=r"hang\(\) did not return within 0.3 s"):
        stuck.results()
    assert fine.results().column("k").to_pylist() == [1, 2, 3]


def test_a_function_that_is_quick_enough_is_left_alone() -> None:
    runner = runner_over()
    runner.function("twice", lambda k: 2 * k, "BIGINT")
    query = runner.query("SELECT twice(k) AS d FROM s")
    runner.run()
    assert query.results().column("d").to_pylist() == [2, 4, 6]


@pytest.mark.parametrize("name", ["first", "COUNT", "lag", "rank"])
def test_names_that_always_mean_something_else_are_refused(name: str) -> None:
    """An aggregate's name in WHERE would never reach the user's function."""
    with pytest.raises(DuplicateName, match="function of the language"):
        runner_over().function(name, lambda k: True)


def test_scalar_functions_may_be_replaced() -> None:
    runner = runner_over()
    runner.function("abs", lambda k: k + 10, "BIGINT", arguments=["BIGINT"])
    query = runner.query("SELECT abs(k) AS a FROM s")
    runner.run()
    assert query.results().column("a").to_pylist() == [11, 12, 13]
