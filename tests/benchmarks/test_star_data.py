"""The rows of the many-way joins and the number of their results, which every system must give."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from joins.interval_data import Spec, duckdb_expected, ensure, load
from joins.star_data import count_star
from joins.thalweg_join import query_text
from peers.flink_sql import INTERVAL, MULTIJOIN, check_plan, join

Part = dict[str, np.ndarray]


def tried_out(parts: list[Part], window_ms: int) -> int:
    """Every combination there is, one by one."""
    rows = [list(zip(p["k"].tolist(), p["ts"].tolist(), strict=True)) for p in parts]
    return sum(
        len({k for k, _ in found}) == 1
        and max(t for _, t in found) - min(t for _, t in found) <= window_ms
        for found in product(*rows)
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_count_is_that_of_all_combinations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ways = int(rng.integers(2, 5))
    span, window = int(rng.integers(1, 20)), int(rng.integers(0, 25))
    parts = []
    for _ in range(ways):
        rows = int(rng.integers(1, 12))
        parts.append({"k": rng.integers(0, 3, rows), "ts": rng.integers(0, span, rows)})
    assert count_star(parts, window) == tried_out(parts, window)


@pytest.mark.parametrize("ways", [3, 5, 7])
def test_the_count_is_that_of_duckdb(ways: int, tmp_path: Path) -> None:
    data = ensure(tmp_path, star(ways))
    assert data.expected() == duckdb_expected(data) > 0


def test_there_is_about_one_result_per_row(tmp_path: Path) -> None:
    for ways in (3, 5, 7):
        spec = star(ways, batches=20)
        data = ensure(tmp_path, spec)
        late = data.expected() - data.expected(10)  # windows are full by then
        assert 0.8 < late / (spec.total_rows / 2) < 1.25


def test_a_star_is_written_once(tmp_path: Path) -> None:
    data = ensure(tmp_path, star(5))
    assert load(data.path).spec == data.spec
    assert [data.columns(s) for s in data.spec.streams][3:] == [("k", "ts", "u"), ("k", "ts", "v")]
    before = data.files("e")[1].read_bytes()
    assert ensure(tmp_path, star(5)).files("e")[1].read_bytes() == before
    assert sum(len(data.files(s)) for s in data.spec.streams) == 5 * data.spec.batches


@pytest.mark.parametrize("ways", [2, 3])
def test_chains_are_counted_as_before(ways: int, tmp_path: Path) -> None:
    data = ensure(tmp_path, Spec(ways=ways, batch_rows=6_000, batches=3, window_s=2))
    assert data.expected() == duckdb_expected(data) > 0


def test_the_join_in_our_text(tmp_path: Path) -> None:
    text = query_text(ensure(tmp_path, star(3)))
    assert text == (
        "SELECT ISTREAM a.k, a.x, b.y, c.z "
        "FROM a [RANGE 2 SECONDS], b [RANGE 2 SECONDS], c [RANGE 2 SECONDS] "
        "WHERE a.k = b.k AND b.k = c.k"
    )


def test_the_join_in_flinks_text() -> None:
    values = {"a": "x", "b": "y", "c": "z"}
    chained, whole = (join(values, 2, variant) for variant in (INTERVAL, MULTIJOIN))
    assert chained.count(".ts BETWEEN a.ts") == 2  # one pair of bounds on time attributes a join
    assert chained.count(".ms BETWEEN b.ms") == 1
    assert whole.count(".ms BETWEEN") == 3
    assert ".ts" not in whole


def test_another_plan_of_flink_is_refused() -> None:
    chain = "== Optimized Execution Plan ==\nIntervalJoin(a)\n+- IntervalJoin(b)"
    check_plan(chain, 3, INTERVAL)
    for plan, variant in (
        (chain, MULTIJOIN),
        (chain.replace("IntervalJoin(b", "Join(b"), INTERVAL),
    ):
        with pytest.raises(ValueError, match="does not plan"):
            check_plan(plan, 3, variant)


def star(ways: int, batches: int = 3) -> Spec:
    return Spec(ways=ways, shape="star", batch_rows=7_000, batches=batches, window_s=2)
