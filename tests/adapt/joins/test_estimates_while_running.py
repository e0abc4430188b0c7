"""What is estimated of a join while it runs, against the operations that it really needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cache_runs import MANY_PROBES, MANY_UPDATES, Draw, Rates, few_keys, run, watch_of

from thalweg.adapt.joins.candidates import Segment
from thalweg.adapt.joins.costs import CacheEstimate, total_cost
from thalweg.plan.joins.join_caches import Span

IN_R = Span(0, 0, 1)
"""The cache of s and t that rows of r look up."""


def partly_new(share: float) -> Draw:
    """Some rows of r have a key that none had before."""

    def draw(rng: np.random.Generator, column: str, epoch: int, rows: int) -> np.ndarray:
        known = few_keys(rng, column, epoch, rows)
        if column != "r.a":
            return known
        return np.where(rng.random(rows) < share, 10_000 * (epoch + 1) + np.arange(rows), known)

    return draw


def of_r(caches: Any) -> CacheEstimate:
    (found,) = (c for s, c in caches.items() if isinstance(s, Segment) and s.pipeline == 0)
    return found


@pytest.mark.parametrize("rates", [MANY_PROBES, MANY_UPDATES], ids=["probes", "updates"])
def test_estimated_costs_are_those_of_the_operations(rates: Rates) -> None:
    """streamon #30: rates times costs, over all operators, with caches and without."""
    _, _, without = run(rates, "mjoin")
    _, runner, cached = run(rates, "cached")
    watch = watch_of(runner)
    estimates = watch.estimates()
    assert estimates is not None
    assert watch.choice
    assert total_cost((), estimates) == pytest.approx(np.mean(without[12:]), rel=0.1)
    assert total_cost(watch.choice, estimates) == pytest.approx(np.mean(cached[12:]), rel=0.15)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_misses_of_a_cache_that_was_never_used(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """streamon #30: by its keys alone, against the fills of the same cache where it is forced on;
    all-distinct keys always miss."""
    monkeypatch.setattr("thalweg.adapt.joins.caching.CACHED_GAIN", 0.0)
    _, runner, _ = run(MANY_PROBES, "cached", draw=partly_new(share))
    watch = watch_of(runner)
    estimates = watch.estimates()
    assert estimates is not None
    assert not watch.choice
    forced, _, _ = run(MANY_PROBES, "mjoin", draw=partly_new(share), spans=[IN_R])
    counts = forced.stats()["counts"]
    measured = counts["fills:s⋈t"] / counts["lookups:s⋈t"]
    assert of_r(estimates.caches).miss_prob == pytest.approx(measured, abs=0.03)


SCANNED = """SELECT ISTREAM r.a, s.b, t.v FROM r [RANGE 4 SECONDS], s [RANGE 4 SECONDS],
  t [RANGE 4 SECONDS] WHERE r.a = s.a AND s.b >= t.b AND s.b <= t.b WITH (joins = '{joins}')"""


def never_twice(rng: np.random.Generator, column: str, epoch: int, rows: int) -> np.ndarray:
    """Every row of r has a key of its own; rows of s have it in the same or the epoch before."""
    if column.endswith(".a"):
        ahead = rng.integers(0, 2, rows) if column == "s.a" else 0
        return (epoch + ahead) * 10_000 + np.arange(rows)
    return rng.integers(0, 2_000, rows)


def test_what_would_always_miss_is_not_cached() -> None:
    """Rows of r scan all of t, which a cache by their keys would spare them if keys came twice."""
    rates: Rates = {"r": 500, "s": 500, "t": 20}
    _, _, without = run(rates, "mjoin", sql=SCANNED, draw=never_twice)
    query, runner, operations = run(rates, "cached", sql=SCANNED, draw=never_twice)
    estimates = watch_of(runner).estimates()
    assert estimates is not None
    assert of_r(estimates.caches).miss_prob == pytest.approx(1.0, abs=0.03)
    assert not [s for s in query.plan_log if s.subject == "caches"]
    assert sum(operations) == sum(without)
