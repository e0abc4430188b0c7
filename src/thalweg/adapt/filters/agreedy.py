"""A-Greedy: keep the greedy invariant over a sliding profile of dropped rows.

All predicates are evaluated on every profiled row. Under stable statistics the order converges to
Static Greedy's, whose cost is at most four times the optimum (4/alpha with hysteresis) however the
predicates are correlated; a violation is repaired in the slice that shows it.
"""

from __future__ import annotations

from thalweg.adapt.filters.matrix import MatrixView
from thalweg.adapt.filters.ordering import Order, Settings, Trigger
from thalweg.adapt.filters.window import Drops
from thalweg.adapt.filters.windowed import Windowed


class AGreedy(Windowed):
    name = "a-greedy"

    def __init__(self, settings: Settings, order: Order | None = None) -> None:
        super().__init__(settings, order)
        self.matrix = MatrixView(settings.predicates, self.guards)
        self.matrix.order = list(self.current)

    def _count(self, rows: Drops, expired: Drops) -> None:
        self.matrix.add(rows)
        self.matrix.add(expired, -1)

    def _check(self) -> None:
        costs = self.costs.per_row
        found = self.matrix.violations(costs, self.settings.alpha)
        if not found:
            return
        position, rival = found[0]
        order = self.matrix.order
        had, has = (self.matrix.counts[position, c] / costs[order[c]] for c in (position, rival))
        trigger = Trigger(
            "drops per cost", position, order[position], order[rival], float(had), float(has),
            len(self.window),
        )  # fmt: skip
        rows = self.window.rows()
        self.matrix.repair(position, rows, costs)
        if not self._adopt(tuple(self.matrix.order), trigger):
            self.matrix.recount(rows, self.current)

    def _restart(self) -> None:
        self.matrix.guards = self.guards
        self.matrix.recount(self.window.rows(), self.current)
