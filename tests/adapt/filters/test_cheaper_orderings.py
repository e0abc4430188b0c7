"""Sweep, Independent and LocalSwaps: what they save, and what that costs."""

from __future__ import annotations

import numpy as np
import pytest
from filter_data import (
    blocks,
    clear_instances,
    correlated,
    drive,
    keeps_invariant,
    price,
    rng_of,
    survivors,
)
from ordering_runs import SLICE, usual

from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.independent import Independent
from thalweg.adapt.filters.localswaps import LocalSwaps
from thalweg.adapt.filters.ordering import Ordering
from thalweg.adapt.filters.static import greedy_order
from thalweg.adapt.filters.sweep import Sweep
from thalweg.exec.tactics import DROPPED


def test_sweep_converges_to_an_order_that_keeps_the_invariant() -> None:
    """streamon #15: from any order, on correlated predicates of different costs."""
    for n in (3, 4, 5):
        for seed, drops, costs in clear_instances(6, n, 40 * SLICE):
            start = tuple(rng_of("start", n, seed).permutation(n).tolist())
            ordering = usual(Sweep, costs, start, rate=1.0)
            drive(ordering, ~drops)
            assert keeps_invariant(ordering.order, drops, costs), (n, seed)
            alive = survivors(drops)
            greedy = price(greedy_order(drops, costs), alive, costs)
            assert price(ordering.order, alive, costs) == pytest.approx(greedy)


@pytest.mark.parametrize("cls", [Sweep, LocalSwaps])
def test_one_extra_evaluation_per_profiled_row_at_most(cls: type[Ordering]) -> None:
    """streamon #15: whatever n, the executor counts no more; A-Greedy asks all the rest."""
    for n in (2, 5, 12):
        passing = correlated(rng_of("extra", n), 40 * SLICE, np.full(n, 0.5), 2)
        run = drive(usual(cls, np.ones(n), rate=0.1), passing)
        for seen in run.slices:
            first = (seen.profile[:, seen.order] == DROPPED).argmax(1)
            asked = (seen.profile >= 0).sum(1) - (first + 1)
            assert (asked <= 1).all()
            assert seen.extra.sum() == asked.sum()
        assert 0 < run.profiled <= sum(len(s.profile) for s in run.slices)


@pytest.mark.parametrize("cls", [AGreedy, Independent])
def test_all_remaining_predicates_are_asked_for_a_full_profile(cls: type[Ordering]) -> None:
    """streamon #15, streamon #18: a drop at position i of n costs n - i extra evaluations."""
    passing = correlated(rng_of("full"), 20 * SLICE, np.full(6, 0.5), 2)
    run = drive(usual(cls, np.ones(6), rate=0.1), passing)
    for seen in run.slices:
        assert (seen.profile >= 0).all()
        first = (seen.profile[:, seen.order] == DROPPED).argmax(1)
        assert seen.extra.sum() == (5 - first).sum()
    assert run.profiled == sum(s.extra.sum() for s in run.slices)


@pytest.mark.parametrize("n", [3, 6, 10])
def test_independent_is_misled_by_correlation(n: int) -> None:
    """streamon #16: example 4.5.1, 0.49n + 0.51 predicates a row against A-Greedy's 1.49, from
    whatever order they begin."""
    value = blocks(rng_of("example 4.5.1", n), 100, 1_024) + 1
    passing = np.stack([value <= 49] * (n - 1) + [value >= 50], axis=1)
    for order in (tuple(range(n)), tuple(reversed(range(n)))):
        ours = [usual(c, np.ones(n), order, rate=1.0, alpha=1.0) for c in (Independent, AGreedy)]
        independent, greedy = (drive(o, passing).tail(20) for o in ours)
        assert independent == pytest.approx(0.49 * n + 0.51, rel=0.01)
        assert greedy == pytest.approx(1.49, rel=0.01)


@pytest.mark.parametrize("n", [4, 8, 16])
def test_local_swaps_stays_in_a_local_optimum(n: int) -> None:
    """streamon #17: example 4.6.1. After the last predicate has begun to drop all slices but one,
    LocalSwaps stays at (n + 1) / 2 predicates a row, A-Greedy moves to 1 + 1/n."""
    piece = blocks(rng_of("example 4.6.1", n), n, 80 * SLICE // n)
    drops = piece[:, None] == np.arange(n)
    half = len(piece) // 2
    drops[half:, n - 1] = piece[half:] != n - 2
    window = {"rate": 1.0, "window": 960}
    stuck, greedy = usual(LocalSwaps, np.ones(n), **window), usual(AGreedy, np.ones(n), **window)
    assert drive(stuck, ~drops).tail(20) == pytest.approx((n + 1) / 2)
    assert stuck.order == list(range(n))
    assert drive(greedy, ~drops).tail(20) == pytest.approx(1 + 1 / n)
    assert greedy.order[:2] == [n - 1, n - 2]


def test_local_swaps_swaps_only_neighbours_out_of_order() -> None:
    """Section 2.4: after a swap at i, entries touching i-1..i+1 are cleared on both sides of each
    comparison. Here rows fall to one predicate each, and only the first two are out of order."""
    owner = np.repeat(np.arange(4), [3, 4, 2, 1])[blocks(rng_of("disjoint"), 10, 4_096)]
    ordering = usual(LocalSwaps, np.ones(4), rate=1.0, evidence=50)
    drive(ordering, owner[:, None] != np.arange(4))
    assert [s.new for s in ordering.switches] == [(1, 0, 2, 3)]


def test_local_swaps_sorts_independent_predicates() -> None:
    """Section 2.4: without correlation its invariant is the greedy one, and it gets there."""
    passing = correlated(rng_of("sorting"), 200 * SLICE, np.array([0.95, 0.85, 0.7, 0.5, 0.3]))
    ordering = usual(LocalSwaps, np.ones(5), rate=0.2)
    drive(ordering, passing)
    assert ordering.order == [4, 3, 2, 1, 0]
