"""x [NOT] IN (SELECT ...): against sets in Python."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from thalweg.errors import BindError, NotAvailableYet, TypeMismatch, UnboundedState
from thalweg.testing import Runner


def stream(rng: Random, rows: int, nulls: bool) -> pa.Table:
    keys = [None if nulls and rng.random() < 0.15 else rng.randint(0, 5) for _ in range(rows)]
    times = sorted(rng.randint(0, 40) for _ in range(rows))
    stamps = pa.array(times, pa.timestamp("s", "UTC"))
    return pa.table({"k": pa.array(keys, pa.int64()), "n": range(rows), "ts": stamps})


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("asked", ["IN", "NOT IN"])
@pytest.mark.parametrize("seed", range(6))
def test_rows_are_judged_as_they_arrive(seed: int, asked: str, nulls: bool) -> None:
    rng = Random(f"{seed} {asked} {nulls}")
    a, b = stream(rng, 30, nulls), stream(rng, 30, nulls)
    runner = Runner(epochs=4, buckets=2)
    runner.stream("a", a)
    runner.stream("b", b)
    query = runner.query(
        f"SELECT ISTREAM n FROM a [NOW] WHERE k {asked} (SELECT k FROM b [RANGE 6 SECONDS])"
    )
    runner.run()
    times = a["ts"].cast(pa.int64()).to_pylist()
    others = list(zip(b["k"].to_pylist(), b["ts"].cast(pa.int64()).to_pylist(), strict=True))
    wanted = []
    for n, (key, at) in enumerate(zip(a["k"].to_pylist(), times, strict=True)):
        seen = [k for k, t in others if at - 6 <= t <= at]
        if asked == "IN":
            passes = key is not None and key in seen
        else:
            passes = not seen or (key is not None and None not in seen and key not in seen)
        wanted += [n] if passes else []
    assert sorted(query.results()["n"].to_pylist()) == wanted


def test_refusals() -> None:
    runner = Runner()
    runner.stream("a", stream(Random(1), 3, False))
    for sql, error, words in (
        ("SELECT n FROM a [NOW] WHERE k IN (SELECT k, n FROM a [NOW])", BindError, "one column"),
        ("SELECT n FROM a [NOW] WHERE k IN (SELECT ISTREAM k FROM a [NOW])", BindError, "relation"),
        ("SELECT n FROM a [NOW] WHERE k IN (SELECT ts FROM a [NOW])", TypeMismatch, "TIMESTAMP"),
        ("SELECT n FROM a WHERE k IN (SELECT k FROM a [NOW])", UnboundedState, "join"),
        ("SELECT n, k IN (SELECT k FROM a [NOW]) AS y FROM a", NotAvailableYet, "inside"),
    ):
        with pytest.raises(error, match=words):
            runner.query(sql)


def test_in_beside_not_in_under_now() -> None:
    made = Runner()
    ts = stamps(np.arange(12) // 3)
    made.stream("s", pa.table({"x": np.arange(12) % 5, "y": np.arange(12) % 3, "ts": ts}))
    made.stream("u", pa.table({"x": np.arange(12) % 4, "y": np.arange(12) % 2, "ts": ts}))
    query = made.query(
        "SELECT x FROM s [NOW] WHERE x NOT IN (SELECT x FROM u [ROWS 3]) "
        "AND y IN (SELECT y FROM u [ROWS 2])"
    )
    made.run()
    assert query.stats()["error"] is None
    assert query.results().num_rows > 0


@pytest.mark.parametrize("asked", ["IN", "NOT IN"])
def test_a_bare_stream_beside_a_subquery_over_a_stream_is_a_relation(asked: str) -> None:
    """Its rows appear and vanish with the subquery's: no window and [UNBOUNDED] mean the same, and
    what is counted over it is what is there."""
    rng = Random(3)
    a, b = stream(rng, 30, False), stream(rng, 30, False)
    runner = Runner(epochs=3)
    runner.stream("a", a)
    runner.stream("b", b)
    where = f"WHERE k {asked} (SELECT k FROM b [RANGE 4 SECONDS])"
    runner.sql(f"CREATE VIEW chosen AS SELECT n FROM a {where}")
    found = [
        runner.query(f"SELECT n FROM a {window} {where} WITH (unbounded = true)")
        for window in ("", "[UNBOUNDED]")
    ]
    count = runner.query("SELECT count(*) AS c FROM chosen WITH (unbounded = true)")
    runner.run()
    bare, windowed = (sorted(map(str, q.results().to_pylist())) for q in found)
    assert bare == windowed
    there = sum(row["__sign"] for row in found[0].results().to_pylist())
    now = [r["c"] for r in count.results().to_pylist() if r["__sign"] == 1][-1]
    assert now == there
    assert len(bare) > there > 0


def test_a_bare_stream_beside_a_table_emits_each_row_once() -> None:
    runner = Runner()
    runner.stream("a", stream(Random(1), 9, False))
    runner.table("t", pa.table({"k": [1, 2]}))
    query = runner.query("SELECT n, k FROM a WHERE k IN (SELECT k FROM t)")
    runner.run()
    assert "__sign" not in query.results().column_names
    assert set(query.results()["k"].to_pylist()) <= {1, 2}


@pytest.mark.parametrize("asked", ["IN", "NOT IN"])
def test_rows_beside_a_table_are_looked_up_in_a_table(asked: str) -> None:
    """Rows of the subquery took part as if they were new rows of the product."""
    runner = Runner(epochs=2)
    runner.stream("a", pa.table({"k": [1, 2, 3], "ts": stamps([0, 1, 2])}))
    runner.table("t", pa.table({"j": [2, 5]}))
    query = runner.query(f"SELECT ISTREAM k, b.j FROM a, t b WHERE k {asked} (SELECT j FROM t)")
    runner.run()
    wanted = {2} if asked == "IN" else {1, 3}
    assert query.stats()["error"] is None
    found = [(r["k"], r["j"]) for r in query.results().to_pylist()]
    assert sorted(found) == [(k, j) for k in sorted(wanted) for j in (2, 5)]
