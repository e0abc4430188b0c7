"""Rows that appear and vanish, paired into lifetimes."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.exec.leaves.lifetimes import paired
from thalweg.instants import AFTER_TIME


@pytest.mark.parametrize("seed", range(20))
def test_at_every_instant_as_many_are_alive_as_the_sum_of_the_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    content, instants = rng.integers(0, 4, n), rng.integers(0, 12, n)
    weights = rng.integers(-2, 3, n)
    rows, starts, ends = paired(content, instants, weights)
    assert (starts < ends).all()
    assert (starts == instants[rows]).all()
    for at in range(13):
        alive = content[rows[(starts <= at) & (ends > at)]]
        for one in range(4):
            total = weights[(content == one) & (instants <= at)].sum()
            assert np.count_nonzero(alive == one) == max(total, 0)


def test_the_first_to_appear_is_the_first_to_vanish() -> None:
    rows, starts, ends = paired(
        np.zeros(4, np.int64), np.array([1, 2, 5, 6]), np.array([1, 1, -1, 1])
    )
    assert list(zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)) == [
        (0, 1, 5), (1, 2, AFTER_TIME), (3, 6, AFTER_TIME),
    ]  # fmt: skip


def test_nothing_gives_nothing() -> None:
    none = np.empty(0, np.int64)
    assert [len(found) for found in paired(none, none, none)] == [0, 0, 0]
