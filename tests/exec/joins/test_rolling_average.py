"""Each value against the average of its own key's last rows: cost and memory follow the rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

from thalweg.runtime.session.session import Query
from thalweg.runtime.settings import EPOCH_ROWS
from thalweg.testing import Runner

ROLLING = """
    SELECT ISTREAM t.k, t.v FROM s [NOW] t
    JOIN (SELECT k, avg(v) AS m, stddev(v) AS sd FROM s [PARTITION BY k ROWS 100] GROUP BY k) a
    ON a.k = t.k WHERE t.v > a.m + 3 * a.sd
"""
KEYS = 10


def _rows(n: int) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "k": pa.array(rng.integers(0, KEYS, n)),
            "v": pa.array(rng.normal(size=n)),
            "ts": pa.array(np.arange(n) * 1_000, pa.timestamp("us", "UTC")),
        }
    )


def _run(table: pa.Table, sql: str = ROLLING, **options: int) -> tuple[Runner, Query]:
    runner = Runner(**options)
    runner.stream("s", table)
    query = runner.query(sql)
    runner.run()
    return runner, query


def _counts(query: Query) -> dict[str, int]:
    found: dict[str, int] = query.stats()["counts"]
    return found


@pytest.mark.parametrize("n", [10_000, 100_000])
def test_probes_and_visits_grow_with_the_rows_of_one_epoch(n: int) -> None:
    """streamon: a join costs what its rows and results do, also where one side is a subquery."""
    runner, query = _run(_rows(n), epoch_rows=16 * n)
    assert runner.core.state.epoch <= 3, "one epoch and the close"
    counts = _counts(query)
    assert counts["probes:a"] == n
    assert counts["visits:a"] <= 4 * n


def test_a_row_window_is_searched_by_lifetime_too() -> None:
    n = 20_000
    sql = "SELECT ISTREAM t.v FROM s [NOW] t JOIN s [PARTITION BY k ROWS 1] l ON l.k = t.k"
    _, query = _run(_rows(n), sql, epoch_rows=16 * n)
    counts = _counts(query)
    assert counts["visits:l"] <= 5 * counts["probes:l"]
    assert len(query.results()) == n


def test_a_large_backlog_is_cut_into_epochs_and_memory_stays_small() -> None:
    n = 1_000_000
    table = _rows(n)
    pool = pa.default_memory_pool()
    _run(table.slice(0, 1000))  # what is loaded once is not counted
    held, most = pool.bytes_allocated(), pool.max_memory()
    tracemalloc.start()
    try:
        runner, query = _run(table)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    counts = _counts(query)
    assert counts["probes:a"] == n
    assert counts["visits:a"] <= 4 * n
    assert runner.core.state.epoch >= 16 * n // EPOCH_ROWS
    arrow = pool.max_memory() - held if pool.max_memory() > most else 0
    assert peak + arrow <= 4 * table.nbytes


def test_the_rows_do_not_depend_on_the_cut() -> None:
    table = _rows(4_000)
    answers = [
        _run(table, epoch_rows=rows)[1]
        .results()
        .sort_by([("__ts", "ascending"), ("v", "ascending")])
        for rows in (64, 1 << 10, 1 << 20)
    ]
    assert answers[0].num_rows > 2
    assert answers[0].equals(answers[1])
    assert answers[0].equals(answers[2])
