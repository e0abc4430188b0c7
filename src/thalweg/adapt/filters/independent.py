"""Independent: order by unconditional drop rate per cost, as if predicates were independent.

Optimal if they are; with correlated predicates it can be n times worse than the optimum.
"""

from __future__ import annotations

import numpy as np

from thalweg.adapt.filters.guards import available
from thalweg.adapt.filters.ordering import Order, Settings, Trigger
from thalweg.adapt.filters.window import Drops
from thalweg.adapt.filters.windowed import Windowed


class Independent(Windowed):
    name = "independent"

    def __init__(self, settings: Settings, order: Order | None = None) -> None:
        super().__init__(settings, order)
        self.drops = np.zeros(settings.predicates, np.int64)

    def _count(self, rows: Drops, expired: Drops) -> None:
        self.drops += rows.sum(0) - expired.sum(0)

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
