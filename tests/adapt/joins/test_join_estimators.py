"""Estimates of pipelines and caches, against what was true of the data."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from filter_data import rng_of

from thalweg.adapt.constants import DISTINCT_RUN
from thalweg.adapt.joins.estimators import DistinctShare, Recent, counted, operator_of, raw_share

Keys = np.ndarray


def hashed(keys: Keys) -> np.ndarray:
    """A random but fixed hash of each key."""
    table = rng_of("hashes").integers(0, 2**64, int(keys.max()) + 1, dtype=np.uint64)
    return table[keys]


def true_share(keys: Keys, run: int = DISTINCT_RUN, window: int = 10) -> float:
    """Distinct keys per key, over the last complete runs."""
    runs = [keys[i : i + run] for i in range(0, len(keys) - run + 1, run)][-window:]
    return float(np.mean([len(set(r.tolist())) / run for r in runs]))


# --- 30: means


def test_the_last_observations_count() -> None:
    seen = Recent()
    assert isnan(seen.mean)
    for value in range(1, 26):
        seen.add(value)
        last = list(range(max(1, value - 9), value + 1))
        assert seen.mean == sum(last) / len(last)
        assert seen.count == len(last)
        assert seen.full == (value >= 10)


def test_rates_and_costs_of_operators() -> None:
    """streamon #30: d and c from profiled tuples, one of fifty, against counts over all of them. A
    tuple that became many weighs as many."""
    rng = rng_of("operators")
    handled = rng.geometric(0.3, 200_000) - 1  # tuples each arrival becomes at the operator
    spent = handled * rng.uniform(0.5, 1.5, len(handled)) * 4e-6
    seconds, window = 50.0, 4_000
    few, dear = Recent(window), Recent(window)
    for i in np.flatnonzero(rng.random(len(handled)) < 0.02).tolist():
        few.add(handled[i])
        dear.add(spent[i])
    found = operator_of(len(handled) / seconds, few, dear)
    assert found.rate == pytest.approx(handled.sum() / seconds, rel=0.05)
    assert found.cost == pytest.approx(spent.sum() / handled.sum(), rel=0.05)


def test_an_operator_that_nothing_reached_costs_nothing() -> None:
    few, dear = Recent(), Recent()
    few.add(0)
    dear.add(0.0)
    assert operator_of(10.0, few, dear).spent == 0


# --- 30: misses


@pytest.mark.parametrize(("alpha", "raw"), [(1, 0.63), (2, 0.79), (4, 0.88), (8, 0.94), (16, 0.97)])
def test_all_distinct_keys_always_miss(alpha: float, raw: float) -> None:
    """streamon #30: about 1.00 whatever the number of bits; bits that are only counted, as the seed
    has it, give what the note says they do."""
    hashes = rng_of("distinct", alpha).integers(0, 2**64, 10 * DISTINCT_RUN, dtype=np.uint64)
    seen = DistinctShare(alpha)
    seen.add(hashes)
    assert seen.miss_probability() == pytest.approx(1.0, abs=0.02)
    uncorrected = np.mean([raw_share(h, alpha) for h in np.split(hashes, 10)])
    assert uncorrected == pytest.approx(raw, abs=0.01)


@pytest.mark.parametrize("alpha", [1, 4, 8])
@pytest.mark.parametrize("keys", [1, 10, 300, 1_000, 5_000, 10**6])
def test_misses_of_repeated_keys(alpha: float, keys: int) -> None:
    """streamon #30: within 0.03 of the share of distinct keys, for few keys and many."""
    drawn = rng_of("uniform", alpha, keys).integers(0, keys, 10_000)
    seen = DistinctShare(alpha)
    seen.add(hashed(drawn))
    assert seen.miss_probability() == pytest.approx(true_share(drawn), abs=0.03)
    assert seen.entries() == pytest.approx(true_share(drawn) * DISTINCT_RUN, abs=30)


def test_misses_of_skewed_keys() -> None:
    """streamon #30: against an unlimited cache that is emptied after each run."""
    drawn = np.minimum(rng_of("skew").zipf(1.3, 20_000), 10**6)
    misses = 0
    for start in range(10_000, 20_000, DISTINCT_RUN):
        cache: set[int] = set()
        for key in drawn[start : start + DISTINCT_RUN].tolist():
            misses += key not in cache
            cache.add(key)
    seen = DistinctShare()
    seen.add(hashed(drawn))
    assert seen.miss_probability() == pytest.approx(misses / 10_000, abs=0.02)


def test_runs_do_not_depend_on_how_keys_arrive() -> None:
    """One by one, in uneven pieces or all at once: the same runs, the same answer."""
    hashes = hashed(rng_of("pieces").integers(0, 400, 7_777))
    whole, pieces, single = DistinctShare(run=500), DistinctShare(run=500), DistinctShare(run=500)
    whole.add(hashes)
    for piece in np.split(hashes, [0, 3, 499, 500, 501, 2_600, 7_000]):
        pieces.add(piece)
    for i in range(len(hashes)):
        single.add(hashes[i : i + 1])
    assert whole.miss_probability() == pieces.miss_probability() == single.miss_probability()
    assert whole.runs == pieces.runs == single.runs == 10


def test_old_runs_are_forgotten() -> None:
    """Ten runs of distinct keys after ten of one key leave no trace of it."""
    seen = DistinctShare(run=100)
    seen.add(np.zeros(1_000, np.uint64))
    assert seen.miss_probability() == pytest.approx(0.01, abs=0.001)
    seen.add(rng_of("forgotten").integers(0, 2**64, 1_000, dtype=np.uint64))
    assert seen.miss_probability() > 0.97


def test_an_unfinished_run_says_nothing() -> None:
    seen = DistinctShare(run=100)
    seen.add(np.arange(99, dtype=np.uint64))
    assert seen.runs == 0
    assert isnan(seen.miss_probability())
    assert isnan(seen.entries())
    seen.add(np.arange(1, dtype=np.uint64))
    assert seen.runs == 1


@pytest.mark.parametrize("shift", [0, 24, 56])
def test_hashes_of_one_bucket_are_told_apart(shift: int) -> None:
    """Rows are routed by bits of the same hash, so that in a task these may all be equal."""
    hashes = rng_of("bucket").integers(0, 2**64, 10_000, dtype=np.uint64)
    same = np.uint64(255 << shift)
    seen = DistinctShare(alpha=1.024)  # 1,024 bits: the lowest ones alone would decide
    seen.add((hashes & ~same) | np.uint64(7 << shift))
    assert seen.miss_probability() == pytest.approx(1.0, abs=0.03)


def test_short_runs_overestimate_the_misses_of_keys_that_come_back() -> None:
    """As the note warns: each run begins with an empty cache."""
    drawn = hashed(rng_of("cold").integers(0, 200, 20_000))
    shares = []
    for run in (50, 500, 2_000):
        seen = DistinctShare(run=run)
        seen.add(drawn)
        shares.append(seen.miss_probability())
    assert shares[0] > 0.8
    assert shares == sorted(shares, reverse=True)
    assert shares[2] == pytest.approx(0.1, abs=0.01)


def test_linear_counting() -> None:
    assert counted(0, 100, 50) == 0
    assert counted(50, 100, 100) == pytest.approx(69.3, abs=0.1)
    assert counted(100, 100, 80) == 80, "all bits set: as many as there can be"


@pytest.mark.parametrize(("alpha", "run"), [(0.5, 100), (8, 0)])
def test_impossible_settings_are_refused(alpha: float, run: int) -> None:
    with pytest.raises(ValueError, match="cannot be counted"):
        DistinctShare(alpha, run)
