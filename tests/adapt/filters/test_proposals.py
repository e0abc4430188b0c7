"""In the driver an ordering proposes and the loop decides: what is proposed is what a task with the
same rows does by itself."""

from __future__ import annotations

import numpy as np
import pytest
from filter_data import drive

from thalweg.adapt.constants import SLICE_ROWS
from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.catalog import ORDERINGS, make_ordering
from thalweg.adapt.filters.localswaps import LocalSwaps
from thalweg.adapt.filters.ordering import Ordering, Settings
from thalweg.adapt.filters.sweep import Sweep

COSTS = (1.0, 1.0, 1.0, 1.0)
ORDERED = [name for name in ORDERINGS if name not in ("fixed",)]


def rows(passing: list[float], count: int = 20 * SLICE_ROWS, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random((count, len(passing))) < np.array(passing)


def settings(n: int = 4) -> Settings:
    return Settings(n, injected=(1.0,) * n, rate=1.0)


def obeying(ordering: Ordering, *slices: object) -> list[tuple[int, ...]]:
    """The driver's ordering, told what a task has seen; its first proposal is taken each time."""
    ordering.proposes = True
    taken = []
    for seen in slices:
        ordering.observe(seen)  # type: ignore[arg-type]
        if ordering.proposals:
            taken.append(ordering.proposals[0].new)
            ordering.take(taken[-1])
    return taken


@pytest.mark.parametrize("name", ORDERED)
def test_the_driver_comes_to_the_order_of_a_task(name: str) -> None:
    task = drive(make_ordering(name, settings()), rows([0.9, 0.4, 0.9, 0.4]))
    driver = make_ordering(name, settings())
    taken = obeying(driver, *task.slices)
    assert taken
    assert {driver.order[0], driver.order[1]} == {1, 3}


def test_all_swaps_of_a_slice_are_proposed_as_one_order() -> None:
    """Otherwise what tasks see after their second swap would be lost on the driver."""
    seen = drive(LocalSwaps(settings()), rows([0.9, 0.4, 0.9, 0.4], SLICE_ROWS)).slices
    driver = LocalSwaps(settings())
    assert obeying(driver, *seen)[0] == (1, 0, 3, 2)


def test_the_cost_of_what_a_sweep_proposes_is_known() -> None:
    """The profile from before the sweep is given up when its proposal is taken, not before."""
    driver = Auto(settings(6))
    driver.proposes = True
    for seen in drive(Auto(settings(6)), rows([0.5] * 5 + [0.9])).slices:
        driver.observe(seen)
        if driver.proposals:
            driver.take(driver.proposals[0].new)
    driver._begin_sweep()
    driver._forget_rates()  # so that it is the sweep that notices the change
    changed = rows([0.9] + [0.5] * 4 + [0.05], seed=4)
    for seen in drive(Sweep(settings(6), tuple(driver.order)), changed).slices:
        driver.observe(seen)
        if driver.proposals:
            break
    assert driver.sweep is not None
    assert driver.predicted(tuple(driver.order)) is not None
    assert driver.predicted(driver.proposals[0].new) is not None
    driver.take(driver.proposals[0].new)
    assert driver.sweep is None
    assert len(driver.window) == 0


def test_what_is_refused_leaves_the_order_and_is_proposed_again() -> None:
    everything = AGreedy(Settings(4, injected=COSTS, rate=1.0, evidence=10**9))
    driver = make_ordering("a-greedy", settings())
    driver.proposes = True
    refused = 0
    for seen in drive(everything, rows([0.9, 0.4, 0.9, 0.4])).slices:
        driver.observe(seen)
        refused += bool(driver.proposals)
        driver.refuse()
    assert refused > 3
    assert driver.order == [0, 1, 2, 3]
    assert driver.proposals == []
