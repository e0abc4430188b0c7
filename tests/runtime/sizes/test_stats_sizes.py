"""Sizes of the sub-queries of the STATS benchmark, asked for as users do: by SQL, after ANALYZE."""

from __future__ import annotations

import csv
import os
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from thalweg.testing import Runner

TABLES = ("badges", "posts", "users", "postLinks", "tags")
ROOT = Path(os.environ.get("THALWEG_DATA") or Path(__file__).parents[4] / "shared" / "data")
DATA = ROOT / "stats"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="no STATS tables: set THALWEG_DATA to the folder above them"
)


@cache
def engine() -> Runner:
    runner = Runner()
    for name in TABLES:
        runner.table(name, pyarrow.csv.read_csv(DATA / f"{name}.csv"))
    return runner


@cache
def queries() -> list[tuple[str, int]]:
    with (DATA / "subqueries.csv").open() as file:
        return [(row["sql"], int(row["true_rows"])) for row in csv.DictReader(file)]


def test_fresh_sizes_are_exact() -> None:
    for sql, rows in queries():
        found = engine().bound(sql)
        assert (found.rows, found.kind) == (rows, "exact"), sql


def test_cached_bounds_hold_and_are_near() -> None:
    """Never under; q-errors at most 1.3, 11 and 100 at p50, p90 and p99 within 1 MB."""
    engine().analyze(*TABLES, limit_bytes=1_000_000)
    assert engine().core.analysis.statistics_bytes <= 1_000_000
    errors = []
    for sql, rows in queries():
        found = engine().bound(sql, basis="cached")
        assert found.rows is not None
        assert found.rows >= rows, sql
        errors.append(found.rows / rows)
    assert len(errors) == 168
    assert np.quantile(errors, 0.5) <= 1.3
    assert np.quantile(errors, 0.9) <= 11
    assert np.quantile(errors, 0.99) <= 100
