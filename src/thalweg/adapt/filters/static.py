"""Orders for known statistics: greedy, the optimum, and the cost of an order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from thalweg.adapt.filters.guards import Guards, available, free
from thalweg.adapt.filters.window import Drops

Floats = npt.NDArray[np.float64]
EXHAUSTIVE = 12
"""The largest number of predicates for which the optimum is searched."""


def cost_of(
    order: Sequence[int],
    drops: Drops,
    costs: npt.NDArray[np.float64],
    passed: int = 0,
    weights: Floats | None = None,
) -> float:
    """Mean cost per row: rows as given (each as often as its weight says), and `passed` more that
    no predicate drops.

    >>> rows = np.array([[1, 0], [0, 1]], bool)
    >>> cost_of((0, 1), rows, np.array([1.0, 4.0]))
    3.0
    """
    if not len(drops) + passed:
        return float(costs.sum())
    weights = np.ones(len(drops)) if weights is None else weights
    gone = np.logical_or.accumulate(drops[:, list(order)], axis=1)
    asked = np.full(len(order), passed, np.float64)
    asked[0] += weights.sum()
    asked[1:] += weights @ ~gone[:, :-1]
    return float((asked * costs[list(order)]).sum() / asked[0])


def greedy_order(
    drops: Drops, costs: npt.NDArray[np.float64], guards: Guards | None = None
) -> tuple[int, ...]:
    """Static Greedy: repeatedly append the predicate that drops most per unit of cost."""
    guards = guards or free(len(costs))
    order: list[int] = []
    rows = drops
    while len(order) < len(costs):
        ratios = rows.sum(0) / costs
        best = max(available(guards, order), key=lambda i: (ratios[i], -i))
        order.append(best)
        rows = rows[~rows[:, best]]
    return tuple(order)


def best_order(
    drops: Drops,
    costs: npt.NDArray[np.float64],
    guards: Guards | None = None,
    weights: Floats | None = None,
) -> tuple[int, ...]:
    """The cheapest order, by dynamic programming over sets of predicates; beyond `EXHAUSTIVE`
    predicates Static Greedy's."""
    n = len(costs)
    if n > EXHAUSTIVE:
        return greedy_order(drops, costs, guards)
    before = [sum(1 << g for g in gs) for gs in guards or free(n)]
    surviving = _surviving(drops, weights)
    best = np.full(1 << n, np.inf)
    last = np.zeros(1 << n, np.int64)
    best[0] = 0.0
    for done in range(1 << n):
        if not np.isfinite(best[done]):
            continue
        for i in range(n):
            if done >> i & 1 or before[i] & ~done:
                continue
            cost = best[done] + costs[i] * surviving[done]
            if cost < best[done | 1 << i]:
                best[done | 1 << i], last[done | 1 << i] = cost, i
    order: list[int] = []
    done = (1 << n) - 1
    while done:
        order.append(int(last[done]))
        done ^= 1 << order[-1]
    return tuple(reversed(order))


def _surviving(drops: Drops, weights: Floats | None) -> Floats:
    """Per set of predicates the weight of the rows that none of them drops."""
    n = drops.shape[1]
    marks = drops @ (1 << np.arange(n)) if len(drops) else np.empty(0, np.int64)
    inside = np.bincount(marks, weights, minlength=1 << n).astype(np.float64)
    for i in range(n):  # rows whose dropping predicates all lie within a set
        pairs = inside.reshape(-1, 2, 1 << i)
        pairs[:, 1] += pairs[:, 0]
    return inside[::-1]  # none of a set drops it: all droppers lie in the complement
