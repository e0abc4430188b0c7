"""Benchmarks that say that all systems give as many results refuse those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel import bench_kernel
from queries import psoup

SLIDING = [case for case in bench_kernel.CASES if case.changes is not None]


@pytest.mark.parametrize("case", SLIDING, ids=lambda case: str(case.name))
def test_changes_of_a_sliding_aggregate_are_those_that_duckdb_counts(
    case: bench_kernel.Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_kernel, "WARM", 1)
    data = {s: bench_kernel._batches(s, keys, 2_000, 3) for s, keys in case.streams.items()}
    emitted, counted = bench_kernel._ours(case, data)[2], bench_kernel._duckdb(case, data)[1]
    assert emitted == counted > 0
    assert case.changes is not None
    shorter = replace(case, changes=case.changes.replace("INTERVAL 2 SECONDS", "INTERVAL 1 SECOND"))
    assert bench_kernel._duckdb(shorter, data)[1] != counted


def test_figure_9_compares_all_its_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(psoup.lanes(3, 1_000)) == {name for name, _, _ in psoup.LANES}
    monkeypatch.setattr(psoup, "_newest", lambda query, slice_rows: 0)
    with pytest.raises(RuntimeError, match="each by itself"):
        psoup.lanes(3, 1_000)
