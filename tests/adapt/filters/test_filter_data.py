"""The rows that tests of filters draw are those of the note."""

from __future__ import annotations

import numpy as np
import pytest
from filter_data import cheapest, correlated, price, rng_of, survivors


@pytest.mark.parametrize(("n", "gamma", "best", "random"), [(3, 2, 1.75, 1.80), (4, 2, 1.95, 2.00)])
def test_the_generator_is_that_of_the_note(n: int, gamma: int, best: float, random: float) -> None:
    """Section 5.1: predicates of a group agree on 80 % of the rows, others on half, and the best
    and a random order cost what the note says."""
    passing = correlated(rng_of("generator", n), 200_000, np.full(n, 0.5), gamma)
    assert abs((passing[:, 0] == passing[:, 1]).mean() - 0.8) < 0.01
    assert abs((passing[:, 0] == passing[:, n - 1]).mean() - 0.5) < 0.01
    alive, ones = survivors(~passing), np.ones(n)
    assert abs(cheapest(alive, ones) - best) < 0.01
    rng = rng_of("orders")
    assert (
        abs(np.mean([price(rng.permutation(n), alive, ones) for _ in range(300)]) - random) < 0.02
    )
