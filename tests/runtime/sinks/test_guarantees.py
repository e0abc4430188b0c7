"""Guarantees are the same words wherever one asks, with or without Spark."""

from __future__ import annotations

import pytest

from thalweg.errors import ConfigError
from thalweg.runtime.session.rehearsal import plan_session


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ("SPARK 'parquet' OPTIONS (path = 'x')", "exactly once: a folder per epoch"),
        ("SPARK 'delta' OPTIONS (path = 'x')", "exactly once: Delta ignores"),
        ("SPARK 'jdbc' OPTIONS (url = 'x')", "at least once: jdbc cannot tell"),
        ("FILES 'x'", "exactly once: one file per epoch"),
        ("CONSOLE", "at least once"),
    ],
)
def test_guarantees_are_told_without_spark_and_before_registering(sink: str, said: str) -> None:
    """The same words as the sink itself has (spark/sinks.py), wherever one asks."""
    session = plan_session()
    session.sql(
        "CREATE STREAM s (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts FROM FILES 'a' FORMAT csv"
    )
    text = f"SELECT k FROM s INTO {sink}"
    assert said in str(session.sql(f"EXPLAIN {text}"))
    assert said in session.explain(text)
    query = session.query(text, "q")
    assert said in query.explain()
    assert said in str(session.sql("EXPLAIN q"))


def test_a_sink_that_cannot_be_made_is_refused_without_spark() -> None:
    session = plan_session()
    session.sql("CREATE STREAM s (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts FROM FILES 'a'")
    with pytest.raises(ConfigError, match="needs a path"):
        session.query("SELECT k FROM s INTO SPARK 'parquet' OPTIONS (compression = 'zstd')")
