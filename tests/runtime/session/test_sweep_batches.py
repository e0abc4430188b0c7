"""Queries of a sweep that differ in constants run as one, and answer as each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.runtime.session.sweeps.batches import Batch, Batches
from thalweg.testing.runner import Runner

LINE = "MODEL (x = x + v*t) FOR 3 SECONDS"
MODELED = (
    f"SELECT RSTREAM k, x * :by AS y FROM s {LINE} WHERE x > :least SAMPLE EVERY 1 SECOND",
    f"SELECT ISTREAM a.k + :by AS one, b.k AS other FROM s a {LINE}, s b {LINE} "
    "WHERE a.k < b.k AND a.x - b.x < :least",
    "SELECT RSTREAM d.k, d.m + :by AS m FROM (SELECT k, avg(x) AS m FROM s "
    f"[RANGE 4 SECONDS SLIDE 2 SECONDS] {LINE} GROUP BY k) d WHERE d.m > :least",
)
PLAIN = (
    "SELECT ISTREAM k, x + :by AS y FROM s WHERE x > :least",
    "SELECT DSTREAM k FROM s [RANGE 2 SECONDS] WHERE x > :least AND v < :by",
    "SELECT RSTREAM a.k, :by AS y FROM s [NOW] a JOIN s [RANGE 3 SECONDS] b ON a.k = b.k AND "
    "a.x > b.x + :least",
)
ALONE = (
    "SELECT k FROM s WHERE x > :least AND v < :by",
    "SELECT RSTREAM max(x) + :by AS m FROM s [RANGE 2 SECONDS] WHERE x > :least",
    "SELECT ISTREAM DISTINCT k FROM s [RANGE 2 SECONDS] WHERE x > :least AND v < :by",
    "SELECT ISTREAM * FROM s WHERE x > :least AND v < :by",
    "SELECT RSTREAM k, x FROM s [RANGE 2 SECONDS] WHERE x > :least AND v < :by ORDER BY x LIMIT 2",
    "SELECT ISTREAM k, row_number() OVER (PARTITION BY k ORDER BY ts) AS n FROM s "
    "WHERE x > :least AND v < :by",
    "SELECT ISTREAM d.k FROM (SELECT ISTREAM k FROM s WHERE x > :least AND v < :by) d",
    "SELECT ISTREAM k FROM s WHERE x > :least UNION ALL SELECT k FROM s WHERE v < :by",
)


def made() -> Runner:
    rng = np.random.default_rng(3)
    n = 60
    stamps = pa.array(np.sort(rng.integers(0, 20_000_000, n)), pa.timestamp("us", "UTC"))
    values = {"k": rng.integers(0, 4, n), "x": rng.normal(size=n), "v": rng.normal(size=n)}
    runner = Runner()
    runner.stream("s", pa.table({**values, "ts": stamps}), key=["k"])
    return runner


def variants() -> list[dict[str, Any]]:
    return [{"least": -0.5 + 0.1 * (i % 9), "by": 1 + i % 3} for i in range(80)]


def alone(sql: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    runner = made()
    for name, value in row.items():
        sql = sql.replace(f":{name}", f"({value!r})")
    query = runner.query(sql, "q")
    runner.run()
    return sorted(query.results().to_pylist(), key=repr)


def batches(sql: str) -> list[Batch]:
    return list(Batches(made().core.catalog, sql, variants()).each(lambda: 0))


@pytest.mark.parametrize("sql", [*MODELED, *PLAIN, *ALONE])
def test_each_query_is_answered_as_by_itself(sql: str) -> None:
    swept = made().sweep(sql, variants()).to_pylist()
    for row in {tuple(r.items()): r for r in variants()}.values():
        times = sum(r == row for r in variants())
        own = [r for r in swept if all(r[n] == v for n, v in row.items())]
        own = sorted(({n: v for n, v in r.items() if n not in row} for r in own), key=repr)
        assert own == sorted(times * alone(sql, row), key=repr), row
    assert swept


@pytest.mark.parametrize("sql", [*MODELED, *PLAIN])
def test_constants_of_the_outermost_select_run_together(sql: str) -> None:
    sizes = [len(b.numbers) for b in batches(sql)]
    assert sizes == [1, 2, 4, 8, 16, 32, 17]


@pytest.mark.parametrize("sql", ALONE)
def test_what_looks_at_several_rows_runs_by_itself(sql: str) -> None:
    assert [len(b.numbers) for b in batches(sql)] == [1] * 80


def test_batches_shrink_where_they_compute_much() -> None:
    found = Batches(made().core.catalog, PLAIN[0], variants()).each(lambda: 1_000_000)
    assert [len(b.numbers) for b in found] == [1] * 80


def test_other_parameters_part_the_rows() -> None:
    sql = "SELECT ISTREAM k FROM s [RANGE :length] WHERE x > :least"
    rows = [{"length": f"{1 + i % 2} seconds", "least": i} for i in range(8)]
    found = list(Batches(made().core.catalog, sql, rows).each(lambda: 0))
    assert [sorted({r["length"] for r in b.rows}) for b in found] == [
        ["1 seconds"], ["1 seconds"], ["1 seconds"], ["2 seconds"],
    ]  # fmt: skip
    assert sorted(n for b in found for n in b.numbers) == list(range(8))
