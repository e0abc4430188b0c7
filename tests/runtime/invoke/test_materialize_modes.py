"""All modes count all rows, also of what is not read, kept for ever, or changes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from two_streams import MODES, rows, runner, told

from thalweg.errors import ConfigError


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_which_no_column_is_read_are_counted(mode: str | None) -> None:
    """priorart PS-13."""
    made = runner(retain="1 hour")
    window = "[RANGE 45 MICROSECONDS]"
    count = made.query(f"SELECT count(*) AS n FROM a {window}{told(mode)}", "count")
    ones = made.query(f"SELECT 1 AS n FROM a {window}{told(mode)}", "ones")
    pairs = made.query(f"SELECT p.k FROM a {window} p, b {window} q{told(mode)}", "pairs")
    made.feed({"a": rows(1, 2, 3), "b": rows(1, 2, 3)})
    assert count.invoke()["n"].to_pylist() == [2]
    assert ones.invoke()["n"].to_pylist() == [1, 1]
    assert sorted(pairs.invoke()["k"].to_pylist()) == [1, 1, 2, 2]


@pytest.mark.parametrize("other", ["[LANDMARK TIMESTAMP '1970-01-01']", "[RANGE 9 SECONDS]"])
@pytest.mark.parametrize("mode", ["none", "c", "auto", None])
def test_joins_under_endless_windows_know_more_than_is_retained(
    mode: str | None, other: str
) -> None:
    made = runner(retain="5 microseconds")
    text = f"SELECT p.k FROM a [LANDMARK TIMESTAMP '1970-01-01'] p, b {other} q"
    with pytest.raises(ConfigError, match="say materialize"):
        made.query(f"{text} WITH (materialize = 'p', unbounded = true)")
    given = "unbounded = true" if mode is None else f"unbounded = true, materialize = '{mode}'"
    query = made.query(f"{text} WITH ({given})", "q")
    made.feed({"a": rows(1)})
    made.feed({"b": rows(50)})
    made.feed({"a": rows(60), "b": rows(60)})
    assert query.invoke()["k"].to_pylist() == [1]


@pytest.mark.parametrize("mode", ["none", "p", "auto"])
def test_a_table_that_begins_to_change(mode: str) -> None:
    """Answers are kept from then on, also of those that sleep, and after a restart."""
    made = runner(retain="1 hour")
    made.table("t", pa.table({"k": [0, 1, 2], "g": [10, 20, 30]}))
    text = "SELECT x.k, t.g FROM a [RANGE 50 MICROSECONDS] x, t WHERE x.k = t.k"
    plain = made.query(text, "plain")
    if mode == "p":
        with pytest.raises(ConfigError):
            made.query(text + told(mode), "q0")
        return
    queries = [made.query(text + told(mode), f"q{i}") for i in range(3)]
    made.feed({"a": rows(1, 2, 3)})
    made.table("t", pa.table({"k": [0, 1, 2], "g": [11, 21, 31]}))
    for step in range(3):
        for query in queries:
            rows_of = [sorted(q.invoke().to_pylist(), key=str) for q in (plain, query)]
            assert rows_of[0] == rows_of[1]
        made.feed({"a": rows(10 + 10 * step)})
        if step == 1:
            made.restart()
    assert {made.core.state.known(q.name).definition.mode for q in queries} == {"c"}
