"""Independent: order by unconditional drop rate per cost, as if predicates were independent.

Optimal if they are; with correlated predicates it can be n times worse than the optimum.
"""

from __future__ import annotations

import numpy as np

from thalweg.adapt.filters.guards import available
from thalweg.adapt.filters.ordering import (
    Order,
    Ordering,
    Settings,
    Stopwatch,
    Trigger,
    dropped,
)
from thalweg.adapt.filters.static import cost_of
from thalweg.adapt.filters.window import ProfileWindow
from thalweg.exec.tactics import Observation


class Independent(Ordering):
    name = "independent"
    profiles = True

    def __init__(self, settings: Settings, order: Order | None = None) -> None:
        super().__init__(settings, order)
        self.window = ProfileWindow(settings.predicates, settings.window)
        self.drops = np.zeros(settings.predicates, np.int64)

    def _learn(self, seen: Observation) -> None:
        watch = Stopwatch()
        rows = dropped(seen)
        expired = self.window.push(rows, seen.passed)
        self.overhead.window += watch.lap()
        self.drops += rows.sum(0) - expired.sum(0)
        self.overhead.matrix += watch.lap()
        if len(self.window) >= self.settings.evidence:
            self._check()
        self.overhead.repair += watch.lap()

    def _check(self) -> None:
        ratios = self.drops / self.costs.per_row
        for position, incumbent in enumerate(self.current):
            free = available(self.guards, self.current[:position])
            best = max(free, key=lambda i: ratios[i])
            if ratios[incumbent] < self.settings.alpha * ratios[best]:
                trigger = Trigger(
                    "drops per cost, each by itself", position, incumbent, best,
                    float(ratios[incumbent]), float(ratios[best]), len(self.window),
                )  # fmt: skip
                self._adopt(self._sorted(ratios), trigger)
                return

    def _sorted(self, ratios: np.ndarray) -> Order:
        order: list[int] = []
        while len(order) < len(ratios):
            free = available(self.guards, order)
            order.append(max(free, key=lambda i: (ratios[i], -self.current.index(i))))
        return tuple(order)

    def predicted(self, order: Order) -> float | None:
        if len(self.window) < self.settings.evidence:
            return None
        return cost_of(order, self.window.rows(), self.costs.per_row, round(self.window.passed))
