"""The base of orderings that judge by a sliding window of fully profiled rows."""

from __future__ import annotations

from abc import ABC, abstractmethod

from thalweg.adapt.filters.ordering import Order, Ordering, Settings, Stopwatch, dropped
from thalweg.adapt.filters.static import cost_of
from thalweg.adapt.filters.window import Drops, ProfileWindow
from thalweg.exec.tactics import Observation


class Windowed(Ordering, ABC):
    """Adds rows to the window, has them counted, and checks the order."""

    profiles = True

    def __init__(self, settings: Settings, order: Order | None = None) -> None:
        super().__init__(settings, order)
        self.window = ProfileWindow(settings.predicates, settings.window)

    def _learn(self, seen: Observation) -> None:
        watch = Stopwatch()
        rows = dropped(seen)
        expired = self.window.push(rows, seen.passed)
        self.overhead.window += watch.lap()
        self._count(rows, expired)
        self.overhead.matrix += watch.lap()
        if len(self.window) >= self.settings.evidence:
            self._check()
        self.overhead.repair += watch.lap()

    def predicted(self, order: Order) -> float | None:
        if len(self.window) < self.settings.evidence:
            return None
        return cost_of(order, self.window.rows(), self.costs.per_row, round(self.window.passed))

    @abstractmethod
    def _count(self, rows: Drops, expired: Drops) -> None:
        """Count the rows that entered the window, and subtract those that left it."""

    @abstractmethod
    def _check(self) -> None:
        """Adopt another order if the window shows a violation."""
