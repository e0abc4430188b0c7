"""The matrix view: conditional drop counts of a profile window under an order.

`counts[i, j]` is the number of profiled rows that the predicate at position j drops among those
that no predicate at positions 0..i-1 drops (positions count from 0, the matrix is upper
triangular). With costs `a` the **greedy invariant** says `counts[i, i] / a[i] >= counts[i, j] /
a[j]` for all j > i: at each position stands the predicate that drops most per unit of cost among
those that may stand there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from thalweg.adapt.filters.guards import Guards, free
from thalweg.adapt.filters.window import Drops
from thalweg.instants import Ints

Costs = npt.NDArray[np.float64]


class MatrixView:
    """Incrementally maintained: inserting or expiring rows costs one pass over those rows."""

    def __init__(self, predicates: int, guards: Guards | None = None) -> None:
        self.order = list(range(predicates))
        self.guards = guards or free(predicates)
        self.counts: Ints = np.zeros((predicates, predicates), np.int64)

    def add(self, rows: Drops, sign: int = 1) -> None:
        """Add rows to the window (+1) or remove them (-1)."""
        if len(rows):
            self.counts += sign * _tallied(rows[:, self.order])

    def recount(self, rows: Drops, order: Sequence[int]) -> None:
        """Recompute the counts for another order."""
        self.order = list(order)
        self.counts = _tallied(rows[:, self.order])

    # -- the invariant -----------------------------------------------------------------------

    def violations(self, costs: Costs, alpha: float = 1.0) -> list[tuple[int, int]]:
        """Per position that is violated, the challenger with the largest ratio."""
        ratios = self._ratios(costs)
        own = np.diagonal(ratios)[:, None]
        beaten = np.triu(own < alpha * ratios, 1)
        if not beaten.any():
            return []
        found = []
        for i in np.flatnonzero(beaten.any(1)):
            rivals = [j for j in np.flatnonzero(beaten[i]) if self._may_stand(int(i), int(j))]
            if rivals:
                found.append((int(i), int(max(rivals, key=lambda j: ratios[i, j]))))
        return found

    def repair(self, position: int, window: Drops, costs: Costs) -> None:
        """Restore the invariant from a violated position on; loops until none is violated."""
        while True:
            self._repair_once(position, window, costs)
            left = self.violations(costs)
            if not left:
                return
            position = left[0][0]

    def _repair_once(self, position: int, window: Drops, costs: Costs) -> None:
        reach = row = position
        while row <= reach:
            untouched = window[~window[:, self.order[:row]].any(1)]
            self.counts[row, row:] = untouched[:, self.order[row:]].sum(0)
            ratios = self.counts[row] / costs[self.order]
            best = row if self._may_stand(row, row) else -1
            for column in range(row + 1, len(self.order)):
                if self._may_stand(row, column) and (best < 0 or ratios[column] > ratios[best]):
                    best = column
            reach = max(reach, best)
            self._rotate(best, row)
            row += 1

    def _rotate(self, source: int, target: int) -> None:
        """Move a predicate forward; those between shift back, so guards stay before them."""
        if source == target:
            return
        self.order.insert(target, self.order.pop(source))
        moved = self.counts[: target + 1, source].copy()
        between = self.counts[: target + 1, target:source].copy()
        self.counts[: target + 1, target + 1 : source + 1] = between
        self.counts[: target + 1, target] = moved

    def _may_stand(self, position: int, candidate: int) -> bool:
        """Whether the predicate at `candidate` may move to an earlier position."""
        return self.guards[self.order[candidate]] <= set(self.order[:position])

    def _ratios(self, costs: Costs) -> npt.NDArray[np.float64]:
        return self.counts / costs[self.order]


def _tallied(drops: Drops) -> Ints:
    """The matrix of rows whose columns are in the order of the plan."""
    n = drops.shape[1]
    first = np.where(drops.any(1), drops.argmax(1), n)
    by_first = np.zeros((n + 1, n), np.int64)
    np.add.at(by_first, first, drops.astype(np.int64))
    sums: Ints = by_first[:n][::-1].cumsum(0)[::-1]
    return sums
