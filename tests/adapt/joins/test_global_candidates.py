"""Global caches as candidates: only to fill the quota, and only legal ones."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_data import GOLDEN, KEYS, is_prefix_set, one_column, random_estimates, random_pipelines

from thalweg.adapt.constants import CACHE_QUOTA
from thalweg.adapt.joins.candidates import (
    KeyOf,
    Pipelines,
    Segment,
    candidates,
    compatible,
    global_candidates,
    straddles,
)
from thalweg.adapt.joins.selection import exhaustive, greedy, select

THREE: Pipelines = {1: (2, 3), 2: (1, 3), 3: (2, 1)}
NONE: Pipelines = {1: (2, 3, 4), 2: (3, 4, 1), 3: (4, 1, 2), 4: (1, 2, 3)}
"""A ring: no set but that of all leaves keeps the invariant."""

drawn = st.tuples(st.integers(0, 2**32), st.integers(3, 7), st.sampled_from([0.0, 0.3, 1.0]))
some_pipelines = drawn.map(lambda d: random_pipelines(Random(d[0]), d[1], d[2]))


def test_the_cache_of_the_burst() -> None:
    """streamon #36: of R - S - T with an ordinary cache of R and S, (T join S) with a partner in R
    is the cache that the note's experiment changes to."""
    prefix = candidates(THREE, one_column)
    assert [(s.pipeline, s.leaves) for s in prefix] == [(3, {1, 2})]
    found = global_candidates(THREE, one_column, prefix, CACHE_QUOTA)
    assert [(s.pipeline, s.leaves, s.beside) for s in found] == [
        (1, {2, 3}, {1}),
        (2, {1, 3}, {2}),
    ]


def test_quota_of_the_example() -> None:
    """streamon #36: ten ordinary candidates leave no room for six, and room for two of twelve."""
    prefix = candidates(GOLDEN, one_column)
    assert global_candidates(GOLDEN, one_column, prefix, CACHE_QUOTA) == []
    assert global_candidates(GOLDEN, one_column, prefix, len(prefix)) == []
    found = global_candidates(GOLDEN, one_column, prefix, 12)
    assert [(s.pipeline, len(s.leaves), s.beside) for s in found] == [(1, 5, {1}), (2, 5, {2})]


def test_most_leaves_come_first() -> None:
    """streamon #36: all but one leaf, then all but two."""
    found = global_candidates(NONE, one_column, [], 7)
    assert [len(s.leaves) for s in found] == [3, 3, 3, 3, 2, 2, 2]
    assert all(s.maintained == frozenset(NONE) for s in found)
    everything = global_candidates(NONE, one_column, [], 100)
    assert len(everything) == 12
    assert global_candidates(NONE, one_column, [], 0) == []


@settings(max_examples=300, deadline=None)
@given(some_pipelines, st.integers(0, 14), st.sampled_from(KEYS))
def test_quota_and_legality(pipelines: Pipelines, quota: int, key_of: KeyOf) -> None:
    """streamon #36: never more than the quota in all; every part fails the invariant on its own,
    keeps it with what is beside, and with nothing smaller."""
    prefix = candidates(pipelines, key_of)
    found = global_candidates(pipelines, key_of, prefix, quota)
    assert len(prefix) >= quota or len(prefix) + len(found) <= quota
    assert not (len(prefix) >= quota and found)
    sizes = [len(s.leaves) for s in found]
    assert sizes == sorted(sizes, reverse=True)
    for s in found:
        assert not is_prefix_set(pipelines, s.leaves)
        assert not s.leaves & s.beside
        assert is_prefix_set(pipelines, s.maintained)
        assert s.key
        others = sorted(set(pipelines) - s.leaves)
        smaller = chain.from_iterable(combinations(others, k) for k in range(len(s.beside)))
        assert not any(is_prefix_set(pipelines, s.leaves | set(y)) for y in smaller)
        assert not straddles(s, [s.maintained], pipelines), "a cache gets along with itself"


@settings(max_examples=200, deadline=None)
@given(some_pipelines, st.sampled_from(KEYS))
def test_without_a_limit_all_parts_are_candidates(pipelines: Pipelines, key_of: KeyOf) -> None:
    """streamon #36: what is not an ordinary candidate is a global one if a key links it."""
    n = len(pipelines)
    prefix = candidates(pipelines, key_of)
    found = global_candidates(pipelines, key_of, prefix, 10_000)
    parts = {(s.pipeline, s.first, s.last) for s in [*prefix, *found]}
    assert len(parts) == len(prefix) + len(found)
    if key_of is one_column:
        assert len(parts) == n * (n - 1) * (n - 2) // 2


@pytest.mark.parametrize("choose", [exhaustive, greedy, select], ids=lambda f: f.__name__)
def test_no_choice_hides_a_change(choose: object) -> None:
    """streamon #36: however candidates cross and straddle, chosen ones do not."""
    crossing = 0
    for seed in range(150):
        rng = Random(seed)
        pipelines = random_pipelines(rng, rng.randint(3, 5), broken=0.4)
        prefix = candidates(pipelines, one_column)
        found = prefix + global_candidates(pipelines, one_column, prefix, 12)
        crossing += _straddling(found, pipelines)
        assert compatible(choose(found, random_estimates(rng, pipelines, found)), pipelines)  # type: ignore[operator]
    assert crossing > 50, "there was something to avoid"


def _straddling(found: list[Segment], pipelines: Pipelines) -> int:
    return sum(straddles(a, [b.maintained], pipelines) for a in found for b in found)
