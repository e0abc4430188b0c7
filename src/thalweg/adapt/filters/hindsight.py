"""The cost of the best static order in hindsight: the return on adapting."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import HINDSIGHT_EPOCHS, HINDSIGHT_ROWS
from thalweg.adapt.filters.guards import Guards
from thalweg.adapt.filters.ordering import Order, dropped
from thalweg.adapt.filters.static import best_order, cost_of
from thalweg.adapt.filters.window import Drops
from thalweg.exec.tactics import UNKNOWN, Observation
from thalweg.instants import Ints


@dataclass(frozen=True, slots=True)
class Hindsight:
    """Costs per row over all observations: as run (profiling included), and under the best order
    that never changes. `static` is an estimate from profiled rows, `adaptive` counts actual
    evaluations."""

    adaptive: float
    static: float
    order: Order

    @property
    def gain(self) -> float:
        """The return on adapting: above 1 it paid."""
        return self.static / self.adaptive if self.adaptive else 1.0


class Memory:
    """A sample of the profile of each epoch, and how many rows stood behind it."""

    def __init__(self, predicates: int) -> None:
        self._samples: deque[tuple[Drops, float]] = deque(maxlen=HINDSIGHT_EPOCHS)
        self._fresh: list[Drops] = []
        self._passed = self._rows = 0
        self._partial = False
        self.rows = 0
        self.evaluated: Ints = np.zeros(predicates, np.int64)

    def add(self, seen: Observation) -> None:
        self.rows += seen.rows
        self._rows += seen.rows
        self.evaluated += seen.evaluated + seen.extra
        self._partial |= bool((seen.profile == UNKNOWN).any())
        if len(seen.profile):
            self._fresh.append(dropped(seen))
        self._passed += seen.passed

    def end_epoch(self) -> None:
        """Keep some rows, each standing for as many as it was drawn from."""
        passed = np.zeros((self._passed, len(self.evaluated)), np.bool_)
        kept = np.concatenate([*self._fresh, passed])
        if len(kept) and not self._partial:  # rows not fully profiled would count as passed
            if len(kept) > HINDSIGHT_ROWS:
                kept = kept[np.linspace(0, len(kept) - 1, HINDSIGHT_ROWS).astype(np.int64)]
            self._samples.append((kept, self._rows / len(kept)))
            self._rows = 0
        self._passed = 0
        self._partial = False
        self._fresh = []

    def judged(self, costs: npt.NDArray[np.float64], guards: Guards) -> Hindsight | None:
        if not self._samples:
            return None
        rows = np.concatenate([s for s, _ in self._samples])
        weights = np.concatenate([np.full(len(s), w) for s, w in self._samples])
        order = best_order(rows, costs, guards, weights)
        return Hindsight(
            float((self.evaluated * costs).sum() / max(self.rows, 1)),
            cost_of(order, rows, costs, weights=weights),
            order,
        )
