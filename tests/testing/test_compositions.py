"""Queries made of queries: equal to the reference, however they are run."""

from __future__ import annotations

from collections import Counter

import pytest

from thalweg.testing.compositions import OUTER, SET, SHAPES, random_composition
from thalweg.testing.grid import VARIANTS, check_variant, reference_result

SEEDS = range(300)
PER_SEED = 2


@pytest.mark.parametrize("seed", SEEDS)
def test_compositions_equal_the_reference(seed: int) -> None:
    case = random_composition(seed)
    expected = reference_result(case)
    for i in range(PER_SEED):
        check_variant(case, VARIANTS[(seed * PER_SEED + i) % len(VARIANTS)], expected)


def test_the_seeds_cover_every_shape() -> None:
    seen = Counter(f for seed in SEEDS for f in random_composition(seed).features)
    wanted = [f"shape:{s}" for s in SHAPES] + [f"outer:{k.lower()}" for k in OUTER]
    wanted += [f"set:{o.lower()}" for o in SET] + ["outer:third", "outer:residual", "set:three"]
    wanted += ["input:table", "member:in", "member:not in", "member:two"]
    wanted += ["inner:istream", "inner:dstream", "inner:rstream", "stream:joined"]
    wanted += ["subquery:joined", "over:lag", "over:lead", "over:row_number"]
    assert not [f for f in wanted if seen[f] < 3], seen
