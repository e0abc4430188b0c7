"""A sink that fails is visible wherever one looks, in one line; its query goes on."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest
from timed_rows import batch, runner

from thalweg.errors import SinkFailed
from thalweg.runtime.session.client import Client
from thalweg.runtime.upkeep.inspection import inspect
from thalweg.testing.runner import Runner

JAVA = "An error occurred while calling o{}.save.\n: java.lang.ClassNotFoundException: org.x.Driver"
TRACE = "".join(f"\n\tat org.apache.spark.Class.method(Class.scala:{i})" for i in range(90))


def with_a_failing_sink(error: str = "no room left") -> Runner:
    def hand_over(table: pa.Table) -> None:
        raise OSError(error)

    made = runner()
    made.query("SELECT v FROM s", "q", hand_over)
    made.feed({"s": batch((1, 1), (2, 2))})
    made.feed({"s": batch((3, 3))})
    return made


def test_a_failing_sink_is_shown_wherever_one_looks() -> None:
    made = with_a_failing_sink()
    assert "no room left" in str(made.sql("SHOW QUERIES").to_pylist())
    assert "no room left" in str(made.queries["q"].stats())
    assert made.queries["q"].status == "running"  # the query itself goes on


def test_a_failing_sink_is_shown_in_the_state_of_the_path_and_by_a_client() -> None:
    made = with_a_failing_sink()
    assert "no room left" in str(inspect(made.storage).to_dict()["queries"])
    assert "no room left" in str(Client(made.storage).queries().to_pylist())


def test_a_sink_that_works_again_is_no_longer_shown() -> None:
    fails = [True]

    def hand_over(table: pa.Table) -> None:
        if fails[0]:
            raise OSError("no room left")

    made = runner()
    made.query("SELECT v FROM s", "q", hand_over)
    made.feed({"s": batch((1, 1), (2, 2))})
    assert "no room left" in str(made.sql("SHOW QUERIES").to_pylist())
    fails[0] = False
    made.core.delivery.deliver(insist=True)
    assert "no room left" not in str(made.sql("SHOW QUERIES").to_pylist())


def test_sysstream_has_failures() -> None:
    made = runner()
    watch = made.query(
        "SELECT ISTREAM entity, property, value FROM SysStream [NOW] WHERE value > 0"
    )

    def hand_over(table: pa.Table) -> None:
        raise OSError("no room left")

    made.query("SELECT v FROM s", "q", hand_over)
    for second in range(1, 8):
        made.feed({"s": batch((second, 1))})
    found = {(r["entity"], r["property"]) for r in watch.results().to_pylist()}
    assert ("q", "failing") in found


def test_an_error_of_java_is_one_line_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Java numbers its objects, so that each attempt gives another text."""
    calls: list[int] = []

    def hand_over(table: pa.Table) -> None:
        calls.append(1)
        raise RuntimeError(JAVA.format(len(calls)) + TRACE)

    made = runner()
    made.query("SELECT v FROM s", "q", hand_over)
    with caplog.at_level(logging.WARNING, "thalweg"):
        for second in range(1, 5):
            made.feed({"s": batch((second, 1))})
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert "ClassNotFoundException: org.x.Driver" in record.getMessage()
    with pytest.raises(SinkFailed) as caught:
        made.core.delivery.raise_trouble()
    assert len(str(caught.value).splitlines()) <= 2


def test_the_error_of_a_query_that_was_dropped_is_forgotten() -> None:
    made = with_a_failing_sink()
    made.queries["q"].drop()
    made.feed({"s": batch((4, 4))})
    assert made.core.state.failures == {}
