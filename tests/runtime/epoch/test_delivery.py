"""Sinks that fail: tried again, harmless to others, forgotten with the run or the query."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from eight_rows import STREAM, runner_over
from summing import SUMS, rows, runner

from thalweg.runtime.sinks.sinks import FunctionSink


def test_troubles_of_a_sink_end_with_the_run_or_the_query() -> None:
    def fails(_: pa.Table) -> None:
        raise OSError("no")

    made = runner()
    query = made.query(SUMS, "q")
    query.sinks.append(FunctionSink(fails))
    made.feed({"s": rows(0, 5)})
    delivery = made.core.delivery
    assert delivery.failure("q") == "OSError: no"
    made.core.driver(SimpleNamespace(), lambda script, name: None)  # type: ignore[arg-type]
    assert delivery.failure("q") is None
    made.feed({"s": rows(5, 9)})
    assert delivery.failure("q") == "OSError: no"
    query.drop()
    delivery.raise_trouble()


def test_a_sink_that_fails_is_tried_again_and_harms_nobody(caplog: Any) -> None:
    runner = runner_over()
    got: list[int] = []
    broken = [True]

    def flaky(output: pa.Table) -> None:
        if broken[0]:
            raise RuntimeError("the other side is down")
        got.extend(output.column("x").to_pylist())

    flaky_query = runner.query("SELECT x FROM s", name="flaky", callback=flaky)
    steady: list[int] = []
    runner.query("SELECT k FROM s", callback=lambda t: steady.extend(t.column("k").to_pylist()))
    for i in range(4):
        broken[0] = i < 2
        runner.feed({"s": STREAM.slice(i * 2, 2)})
    runner.close()
    assert got == flaky_query.results().column("x").to_pylist()
    assert len(steady) == 8
    assert sum("the other side is down" in r.message for r in caplog.records) == 1
