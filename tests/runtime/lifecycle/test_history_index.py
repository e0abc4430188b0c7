"""Filters on the KEY of a stream look its past up instead of going through it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.exec.predicates import constant_lookup
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

N, KEYS = 40_000, 50


def rows() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "dev": pa.array([f"d{k}" for k in rng.integers(0, KEYS, N)]),
            "x": rng.integers(0, 100, N),
            "ts": pa.array(np.arange(N) // 3, pa.timestamp("us", "UTC")),
        }
    )


QUERIES = [
    "SELECT ISTREAM x FROM s WHERE dev = 'd7'",
    "SELECT ISTREAM x, ts FROM s WHERE dev = 'd7' AND x > 50",
    "SELECT count(*) AS n, sum(x) AS t FROM s [RANGE 500 MICROSECONDS] WHERE 'd9' = dev",
    "SELECT ISTREAM a.x FROM s [RANGE 40 MICROSECONDS] a, s [NOW] b "
    "WHERE a.dev = 'd1' AND a.x = b.x AND b.dev = 'd2'",
    "SELECT ISTREAM x FROM s WHERE dev = 'nobody'",
    "SELECT ISTREAM x FROM s WHERE dev = 'd7' AND dev = 'd8'",
]


def late(sql: str, **how: Any) -> tuple[Any, Any]:
    """A query that comes when all of the past is there; its results and counters."""
    made = Runner(epochs=3, **how)
    made.stream("s", rows(), key=("dev",), retain="1 hour")
    made.run(lambda number: made.query(sql, "q") if number == 3 else None)
    query = made.queries["q"]
    return from_table(query.results()), query.stats()["counts"]


@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("sql", QUERIES)
def test_the_index_changes_no_row(sql: str, buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """priorart AU-4: equal answers; with the index only rows of the asked key are read."""
    found, counts = late(sql, buckets=buckets, slice_rows=9_000, share_from=10**9)
    read = sum(n for key, n in counts.items() if key.startswith("looked up:"))
    assert read <= 8 * N / KEYS * buckets
    assert read > 0 or "nobody" in sql
    asked = [n for key, n in counts.items() if key.startswith("evaluations:dev")]
    assert sum(asked) <= 8 * N / KEYS * buckets
    monkeypatch.setattr(constant_lookup, "SMALLEST", 10**9)
    expected, whole = late(sql, buckets=buckets, slice_rows=9_000, share_from=10**9)
    assert difference(expected, found) is None
    assert not any(key.startswith("looked up:") for key in whole)
    everything = sum(n for key, n in whole.items() if key.startswith("evaluations:"))
    assert everything >= N


@pytest.mark.parametrize("sql", QUERIES)
def test_pushed_and_pulled_alike(sql: str) -> None:
    """priorart U11: over past and present what one run over everything gives, pushed in slices or
    pulled at once; by itself the cheaper, which an index makes of pulling."""
    whole = Runner()
    whole.stream("s", rows(), key=("dev",))
    expected = whole.query(sql, "q")
    whole.run()
    taken, chosen = {}, {}
    for wanted in ("push", "pull", "auto"):
        made = Runner(epochs=4, slice_rows=4_000, share_from=10**9)
        made.stream("s", rows(), key=("dev",), retain="1 hour")
        live = made.query("SELECT ISTREAM count(*) AS n FROM s [RANGE 9 MICROSECONDS]", "live")
        since: list[int] = []

        def before(number: int, made: Runner = made, wanted: str = wanted,
                   since: list[int] = since) -> None:  # fmt: skip
            if number == 2:
                made.query(f"{sql} WITH (backfill = '{wanted}')", "q")
                since.append(made.core.state.epoch)
                made.core.readiness.catch_up("q")
                since.append(made.core.state.epoch)

        made.run(before)
        found = made.queries["q"].results()
        assert difference(from_table(expected.results()), from_table(found)) is None, wanted
        taken[wanted] = since[1] - since[0]
        chosen[wanted] = made.core.state.queries["q"].progress.backfill
        made.queries["q"].drop()
        assert set(made.core.state.queries) == {"live"}
        assert live.status == "running"
    assert taken["pull"] == 1 < taken["push"]
    assert chosen["auto"] == "pull", "each asks for one device of fifty"


def test_without_an_index_the_past_is_pushed() -> None:
    made = Runner(epochs=2, slice_rows=4_000)
    made.stream("s", rows(), key=("dev",), retain="1 hour")
    made.run()
    query = made.query("SELECT ISTREAM x FROM s WHERE x = 7 WITH (share = 'off')", "q")
    assert made.core.state.queries["q"].progress.backfill == "push"
    made.core.readiness.catch_up("q")
    assert query.results().num_rows


def test_a_column_that_is_asked_for_often_gets_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """priorart AU-4, for attributes other than the KEY: after some queries about a column the next
    ones look it up, with the same answers."""
    monkeypatch.setattr(constant_lookup, "WORTH_IT", 3)
    made = Runner(share_from=10**9)
    made.stream("s", rows(), key=("dev",), retain="1 hour")
    made.run()
    found, looked_up = [], []
    for i in range(6):
        query = made.query(f"SELECT ISTREAM dev, ts FROM s WHERE x = {i}", f"q{i}")
        made.core.readiness.catch_up(f"q{i}")
        counts = query.stats()["counts"]
        looked_up.append(sum(n for key, n in counts.items() if key.startswith("looked up:")))
        found.append(query.results().num_rows)
    x = rows().column("x").to_numpy()
    assert found == [int((x == i).sum()) for i in range(6)]
    assert looked_up == [0, 0, *found[2:]]
