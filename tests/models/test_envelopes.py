"""Envelopes of functions that come and go, and what they cost."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from model_rows import T0

from thalweg.instants import AFTER_TIME
from thalweg.models.envelopes import envelopes
from thalweg.models.polynomials import SECOND
from thalweg.testing import Runner

NONE = np.empty(0, np.int64)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("upper", [True, False])
def test_pieces_are_the_largest_or_smallest_of_what_lives(degree: int, upper: bool) -> None:
    rng = random.Random(degree)
    for _ in range(20):
        count = 12
        coefficients = np.array(
            [[rng.uniform(-5, 5) for _ in range(degree + 1)] for _ in range(count)]
        )
        start = np.sort([rng.randrange(10 * SECOND) for _ in range(count)])
        end = start + np.array([rng.randrange(1, 8 * SECOND) for _ in range(count)])
        changes = sorted(
            [(int(t), i, 1) for i, t in enumerate(start)]
            + [(int(t), i, -1) for i, t in enumerate(end)]
        )
        at, function, sign = (np.array(c) for c in zip(*changes, strict=True))
        owner, begin, until, peaks, lacking, _ = envelopes(
            coefficients, start, np.full(count, AFTER_TIME), np.array([0, count]),
            np.zeros(count, np.int64), (np.zeros(2, np.int64), NONE, NONE, NONE),
            (np.zeros(2, np.int64), NONE),
            (np.array([0, len(at)]), function, at, sign), upper, True,
        )  # fmt: skip
        assert not lacking.any()
        assert not len(peaks)
        assert (begin[1:] >= until[:-1]).all()
        for ts in [rng.randrange(20 * SECOND) for _ in range(200)]:
            alive = np.flatnonzero((start <= ts) & (ts < end))
            there = np.flatnonzero((begin <= ts) & (ts < until))
            assert len(there) == (len(alive) > 0)
            if not len(alive):
                continue
            values = [
                np.polynomial.polynomial.polyval((ts - start[i]) / SECOND, coefficients[i])
                for i in (*alive, owner[there[0]])
            ]
            best = max(values[:-1]) if upper else min(values[:-1])
            assert values[-1] == pytest.approx(best, abs=1e-4)


def work(sql: str, keys: int, changes: int) -> dict[str, Any]:
    """What is counted while some of the keys change, beyond their first rows."""
    rng = np.random.default_rng(keys)
    n = keys + changes
    first = np.arange(keys)
    ts = np.concatenate([np.sort(first // 10), keys + 1 + np.arange(changes) * 1000]) + T0
    k = np.concatenate([first, rng.integers(0, keys, changes)])
    stamps = pa.array(ts, pa.timestamp("us", "UTC"))
    table = pa.table({"k": k, "x": rng.normal(size=n), "v": rng.normal(size=n), "ts": stamps})
    runner = Runner({"s": [keys + changes * i // 4 for i in range(4)]})
    runner.stream("s", table, key=["k"])
    query = runner.query(sql, "q")
    before: dict[str, int] = {}

    def note(epoch: int) -> None:
        if epoch == 1:
            before.update(query.stats()["counts"])

    runner.run(note)
    after = query.stats()["counts"]
    return {n: after[n] - before.get(n, 0) for n in after}


def test_work_follows_changes_and_not_living_keys() -> None:
    """Sums add two polynomials for each change, whether 100 keys live or 100,000; means over
    windows at most four; a function that appears is compared with pieces, not with keys."""
    for keys in (100, 100_000):
        found = work("SELECT sum(x) AS a FROM s MODEL (x = x + v * t)", keys, 400)
        assert 700 <= found["pieces added"] <= 850  # the last rows of the first epoch among them
        sql = "SELECT avg(x) AS a FROM s [RANGE 1 SECOND] MODEL (x = x + v * t)"
        assert work(sql, keys, 400)["pieces added"] <= 4 * 400
    found = work("SELECT max(x) AS a FROM s MODEL (x = x + v * t)", 100_000, 400)
    assert found["equations solved"] < 100 * 400


def test_extremes_cost_the_same_whatever_the_window() -> None:
    rng = np.random.default_rng(1)
    n = 1500
    stamps = pa.array(T0 + np.arange(n) * 100_000, pa.timestamp("us", "UTC"))
    table = pa.table({
        "k": np.zeros(n, np.int64), "x": np.cumsum(rng.normal(size=n)), "v": rng.normal(size=n),
        "ts": stamps,
    })  # fmt: skip
    counts = []
    for window in (5, 50, 500):
        runner = Runner(3)
        runner.stream("s", table, key=["k"])
        sql = f"SELECT max(x) AS a FROM s [RANGE {window} SECONDS] MODEL (x = x + v * t)"
        query = runner.query(sql, "q")
        runner.run()
        counts.append(query.stats()["counts"]["equations solved"])
    assert max(counts) < 20 * n
