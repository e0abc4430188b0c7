"""Estimates of pipelines and caches, against what was true of the data."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from filter_data import rng_of

from thalweg.adapt.constants import NEW_KEY_BITS, SAMPLE_OBSERVATIONS
from thalweg.adapt.joins.estimators import NewKeyShare, Recent, counted
from thalweg.adapt.joins.profiles import PipelineProfile
from thalweg.adapt.operation_costs import UNITS
from thalweg.exec.tactics import Effort, Sample

Keys = np.ndarray


def hashed(keys: Keys) -> np.ndarray:
    """A random but fixed hash of each key."""
    table = rng_of("hashes").integers(0, 2**64, int(keys.max()) + 1, dtype=np.uint64)
    return table[keys]


def new_keys(batches: list[Keys]) -> list[float]:
    """The share of keys that no batch had before, each counted once, in every batch."""
    known: set[int] = set()
    found = []
    for batch in batches:
        found.append(len(set(batch.tolist()) - known) / len(batch))
        known |= set(batch.tolist())
    return found


# --- means


def test_the_last_observations_count() -> None:
    seen = Recent()
    assert isnan(seen.mean)
    for value in range(1, 26):
        seen.add(value)
        last = list(range(max(1, value - 9), value + 1))
        assert seen.mean == sum(last) / len(last)
        assert seen.count == len(last)
        assert seen.full == (value >= 10)


# --- rates and costs


def test_rates_and_costs_of_operators() -> None:
    """streamon #30: d and c from profiled rows, one of fifty, against counts over all of them; what
    a row became at the first operator goes through the second, and each tuple counts there."""
    rng = rng_of("operators")
    rows, epochs = 4_000, 40
    fan_out = rng.geometric(0.3, (epochs, rows)) - 1  # tuples that each row becomes
    passed = rng.binomial(fan_out, 0.4)
    profile = PipelineProfile.of(2)
    for became, left in zip(fan_out, passed, strict=True):
        profile.rows.add(rows)
        some = rng.random(rows) < 0.02
        first, last, asked = int(became[some].sum()), int(left[some].sum()), int(some.sum())
        effort = Effort(asked, (asked, first), (first, 2 * last), last)
        profile.add(Sample((asked, first, last), effort))
    one, two = profile.operators(UNITS)
    assert one.rate == rows
    assert one.cost == pytest.approx(1 + fan_out.mean(), rel=0.15)
    assert two.rate == pytest.approx(rows * fan_out.mean(), rel=0.15)
    assert two.cost == pytest.approx(1 + 2 * passed.sum() / fan_out.sum(), rel=0.15)
    assert profile.output == pytest.approx(passed.sum() / epochs, rel=0.15)


def test_a_sample_counts_as_several_observations() -> None:
    profile = PipelineProfile.of(1)
    profile.rows.add(10)
    for results in (0, 0, 100):
        profile.add(Sample((10, results), Effort(10, (10,), (results,), results)))
    assert profile.handled[0].count == 2 * SAMPLE_OBSERVATIONS
    assert profile.output == 50, "the last two samples"


def test_an_operator_that_nothing_reached_costs_nothing() -> None:
    profile = PipelineProfile.of(2)
    profile.rows.add(10)
    profile.add(Sample((10, 0, 0), Effort(10, (10, 0), (0, 0), 0)))
    assert [o.spent for o in profile.operators(UNITS)] == [10, 0]


# --- misses


def test_all_distinct_keys_always_miss() -> None:
    """streamon #30: about 1.00, also while the bits fill and are forgotten; bits that are only
    counted, as the seed has it, would give less and less."""
    seen, marked = NewKeyShare(), np.zeros(NEW_KEY_BITS, np.bool_)
    for number in range(200):
        hashes = rng_of("distinct", number).integers(0, 2**64, 1_000, dtype=np.uint64)
        seen.add(hashes)
        assert seen.miss_probability() == pytest.approx(1.0, abs=0.1)
        before = np.count_nonzero(marked)
        marked[(hashes % np.uint64(NEW_KEY_BITS)).astype(np.int64)] = True
    assert np.count_nonzero(marked) - before < 300, "of a thousand"


@pytest.mark.parametrize("keys", [1, 10, 300, 1_000, 5_000, 10**6])
def test_misses_of_repeated_keys(keys: int) -> None:
    """streamon #30: in every batch within 0.03 of the share of keys that are new, for few keys and
    many."""
    drawn = np.split(rng_of("uniform", keys).integers(0, keys, 20_000), 20)
    seen, known = NewKeyShare(), 0.0
    for batch, share in zip(drawn, new_keys(drawn), strict=True):
        seen.add(hashed(batch))
        known += share * len(batch)
        assert seen.miss_probability() == pytest.approx(share, abs=0.03)
        assert seen.entries() == pytest.approx(known, rel=0.02, abs=1)


def test_misses_of_skewed_keys() -> None:
    """streamon #30: against an unlimited cache."""
    drawn = np.split(np.minimum(rng_of("skew").zipf(1.3, 20_000), 10**6), 20)
    seen = NewKeyShare()
    for batch, share in zip(drawn, new_keys(drawn), strict=True):
        seen.add(hashed(batch))
        assert seen.miss_probability() == pytest.approx(share, abs=0.03)


def test_a_small_domain_becomes_known() -> None:
    """streamon #30: after a while no key is new, and it is known how many there are."""
    seen = NewKeyShare()
    for number in range(20):
        seen.add(hashed(rng_of("domain", number).integers(0, 400, 1_000)))
    assert seen.miss_probability() == 0.0
    assert seen.entries() == pytest.approx(400, rel=0.02)


def test_no_keys_say_nothing() -> None:
    seen = NewKeyShare()
    seen.add(np.empty(0, np.uint64))
    assert isnan(seen.miss_probability())
    seen.add(np.arange(9, dtype=np.uint64))
    assert seen.miss_probability() == pytest.approx(1.0, abs=0.01)
    seen.add(np.empty(0, np.uint64))
    assert seen.miss_probability() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("shift", [0, 24, 56])
def test_hashes_of_one_bucket_are_told_apart(shift: int) -> None:
    """Rows are routed by bits of the same hash, so that in a task these may all be equal."""
    hashes = rng_of("bucket").integers(0, 2**64, 1_000, dtype=np.uint64)
    same = np.uint64(255 << shift)
    seen = NewKeyShare(bits=1 << 12)  # the lowest ones alone would decide
    seen.add((hashes & ~same) | np.uint64(7 << shift))
    assert seen.miss_probability() == pytest.approx(1.0, abs=0.1)


def test_linear_counting() -> None:
    assert counted(0, 100, 50) == 0
    assert counted(50, 100, 100) == pytest.approx(69.3, abs=0.1)
    assert counted(100, 100, 80) == 80, "all bits set: as many as there can be"
