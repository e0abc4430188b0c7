"""Foreign code: it may raise, hang or lie; only its own query suffers."""

from __future__ import annotations

import contextlib
import time

import pyarrow as pa
import pytest

from thalweg.errors import QueryFailed
from thalweg.testing import Runner

STREAM = pa.table({"k": [1, 2, 3], "ts": pa.array([1, 2, 3], pa.timestamp("us", "UTC"))})


def runner_over() -> Runner:
    runner = Runner(epochs=2)
    runner.stream("s", STREAM)
    runner.session.function_deadline = 0.3
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
