"""The matrix view: kept up to date it is the recomputed one, and repair restores its invariant."""

from __future__ import annotations

from collections import deque
from copy import deepcopy

import numpy as np
import pytest
from filter_data import (
    Bools,
    Floats,
    cheapest,
    correlated,
    drive,
    evaluations,
    keeps_invariant,
    matrix_of,
    rng_of,
    survivors,
)
from ordering_runs import SLICE, usual

from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.matrix import MatrixView
from thalweg.adapt.filters.ordering import Ordering
from thalweg.adapt.filters.static import greedy_order
from thalweg.adapt.filters.window import ProfileWindow
from thalweg.exec.tactics import DROPPED

VECTORS = {1: "0000", 2: "0010", 3: "0001", 4: "0111", 5: "1101", 6: "0001", 7: "1000"}
GOLDEN_INPUT = [1, 2, 1, 4, 7, 2, 5, 4]
GOLDEN_ORDER = (2, 0, 1, 3)


def golden(numbers: list[int]) -> Bools:
    return np.array([[bit == "1" for bit in VECTORS[i]] for i in numbers])


@pytest.mark.parametrize(
    ("order", "asked"), [((0, 1, 2, 3), 20), ((2, 1, 3, 0), 18), (GOLDEN_ORDER, 16)]
)
def test_evaluations_of_the_worked_example(order: tuple[int, ...], asked: int) -> None:
    """streamon #10: 20, 18 and 16 evaluations, the last being the optimum."""
    run = drive(usual(Ordering, np.ones(4), order), ~golden(GOLDEN_INPUT))
    assert run.evaluated == asked == evaluations(order, golden(GOLDEN_INPUT))
    assert run.profiled == 0
    assert cheapest(survivors(golden(GOLDEN_INPUT)), np.ones(4)) * len(GOLDEN_INPUT) == 16


def test_matrix_of_the_worked_example() -> None:
    """streamon #10: V for F3 F1 F2 F4, by the view alone and by A-Greedy through the executor."""
    expected = [[4, 2, 3, 3], [0, 2, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    view = MatrixView(4)
    view.order = list(GOLDEN_ORDER)
    view.add(golden(GOLDEN_INPUT)[[1, 3, 4, 5, 6, 7]])
    assert view.counts.tolist() == expected
    ordering = usual(AGreedy, np.ones(4), GOLDEN_ORDER, rate=1.0, window=6, evidence=1)
    drive(ordering, ~golden(GOLDEN_INPUT))
    assert ordering.matrix.counts.tolist() == expected
    assert ordering.order == list(GOLDEN_ORDER)
    assert ordering.switches == []


def test_the_worked_example_goes_on() -> None:
    """streamon #11: inputs 3 and 6 push the two oldest profile rows out and violate the first
    position; one switch restores the invariant."""
    ordering = usual(AGreedy, np.ones(4), GOLDEN_ORDER, rate=1.0, window=6, evidence=1)
    drive(ordering, ~golden(GOLDEN_INPUT))
    drive(ordering, ~golden([3, 6]))
    left = golden([7, 2, 5, 4, 3, 6])
    assert ordering.window.rows().tolist() == left.tolist()
    assert not keeps_invariant(GOLDEN_ORDER, left, np.ones(4), 0.9)
    assert keeps_invariant(ordering.order, left, np.ones(4))
    assert ordering.order[0] == 3
    assert [s.trigger.position for s in ordering.switches] == [0]


@pytest.mark.parametrize("seed", range(40))
def test_an_incremental_matrix_is_the_recomputed_one(seed: int) -> None:
    """streamon #10: after any sequence of inserts, expiries and changes of order."""
    rng = rng_of("matrix", seed)
    n, size = int(rng.integers(1, 8)), int(rng.integers(1, 30))
    window, kept = ProfileWindow(n, size), deque[list[bool]](maxlen=size)
    view = MatrixView(n)
    view.recount(window.rows(), rng.permutation(n).tolist())
    for _ in range(12):
        rows = rng.random((rng.integers(0, 2 * size), n)) < rng.uniform(0.1, 0.7)
        expired = window.push(rows)
        signed = [(rows, 1), (expired, -1)]
        for part, sign in signed if rng.random() < 0.5 else signed[::-1]:
            view.add(part, sign)
        kept.extend(rows.tolist())
        assert window.rows().tolist() == list(kept)
        assert (view.counts == matrix_of(view.order, window.rows())).all()
        if rng.random() < 0.2:
            view.recount(window.rows(), rng.permutation(n).tolist())


def test_only_dropped_rows_are_profiled() -> None:
    """streamon #10: the window holds dropped rows of the sample, the others are but counted."""
    passing = correlated(rng_of("dropped"), 20 * SLICE, np.full(4, 0.6), 2)
    run = drive(usual(AGreedy, np.ones(4), rate=0.3), passing)
    sampled = [len(s.profile) + s.passed for s in run.slices]
    assert abs(sum(sampled) / len(passing) - 0.3) < 0.01
    assert all((s.profile == DROPPED).any(1).all() for s in run.slices)
    assert abs(sum(s.passed for s in run.slices) / sum(sampled) - passing.all(1).mean()) < 0.02


def perturbed(rng: np.random.Generator) -> tuple[MatrixView, Bools, Floats]:
    """A view whose order kept the invariant until many rows of its window were replaced."""
    n, size = int(rng.integers(3, 8)), int(rng.integers(10, 60))
    window = ProfileWindow(n, size)
    costs = rng.choice([0.5, 1.0, 2.0, 3.0], n)
    window.push(rng.random((size, n)) < rng.uniform(0.1, 0.7, n))
    view = MatrixView(n)
    view.recount(window.rows(), greedy_order(window.rows(), costs))
    fresh = rng.random((rng.integers(1, size + 1), n)) < rng.uniform(0.1, 0.7, n)
    expired = window.push(fresh)
    view.add(fresh)
    view.add(expired, -1)
    return view, window.rows(), costs


def test_repair_restores_the_invariant() -> None:
    """streamon #11: 3,000 random perturbations, most with several violated positions; afterwards
    the invariant holds at alpha = 1 and V is right. One pass alone would not always do."""
    rng = rng_of("repair")
    violated = several = short = 0
    for _ in range(3_000):
        view, rows, costs = perturbed(rng)
        found = view.violations(costs)
        assert bool(found) == (not keeps_invariant(view.order, rows, costs))
        if not found:
            continue
        violated += 1
        several += len(found) > 1
        once = deepcopy(view)
        once._repair_once(found[0][0], rows, costs)
        short += not keeps_invariant(once.order, rows, costs)
        view.repair(found[0][0], rows, costs)
        assert sorted(view.order) == list(range(len(costs)))
        assert keeps_invariant(view.order, rows, costs)
        assert not view.violations(costs)
        assert (view.counts == matrix_of(view.order, rows)).all()
    assert violated > 1_500
    assert several > 500
    assert short > 0
