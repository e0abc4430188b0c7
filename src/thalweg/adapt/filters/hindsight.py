"""The cost of the best static order in hindsight: the return on adapting."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import HINDSIGHT_EPOCHS, HINDSIGHT_ROWS
from thalweg.adapt.filters.guards import Guards, respected
from thalweg.adapt.filters.ordering import Order, dropped
from thalweg.adapt.filters.static import best_order, cost_of
from thalweg.adapt.filters.window import Drops
from thalweg.exec.tactics import UNKNOWN, Observation
from thalweg.instants import Ints


@dataclass(frozen=True, slots=True)
class Hindsight:
    """Costs per row over all observations: as run (profiling included), under the best order that
    never changes, and in the order of the text. `static` and `text` are estimates from profiled
    rows, `adaptive` counts actual evaluations, over so many `rows`."""

    adaptive: float
    static: float
    order: Order
    text: float
    rows: int

    @property
    def gain(self) -> float:
        """The return on adapting: above 1 it paid."""
        return self.static / self.adaptive if self.adaptive else 1.0


@dataclass(frozen=True, slots=True)
class _Sample:
    """Profiled rows, each standing for so many (`weight`), and what happened to all of these."""

    drops: Drops
    weight: float
    rows: int
    evaluated: Ints
    seconds: float
    bookkeeping: float


class Memory:
    """A sample of the profile of each epoch, how many rows stood behind it, what was evaluated for
    them and how long it took; all over the same epochs, the last ones."""

    def __init__(self, predicates: int) -> None:
        self._samples: deque[_Sample] = deque()
        self._fresh: list[Drops] = []
        self._passed = self._rows = 0
        self._partial = False
        self._seconds = self._bookkeeping = self._booked = 0.0
        self._evaluated: Ints = np.zeros(predicates, np.int64)

    @property
    def rows(self) -> int:
        return self._rows + sum(s.rows for s in self._samples)

    @property
    def seconds(self) -> float:
        """How long the rows took, profiling included, as measured."""
        return self._seconds + sum(s.seconds for s in self._samples)

    @property
    def bookkeeping(self) -> float:
        """How long learning from them took, as measured."""
        return self._bookkeeping + sum(s.bookkeeping for s in self._samples)

    def add(self, seen: Observation) -> None:
        self._rows += seen.rows
        self._evaluated += seen.evaluated + seen.extra
        self._seconds += float(seen.seconds.sum() + seen.extra_seconds.sum())
        self._partial |= bool((seen.profile == UNKNOWN).any())
        if len(seen.profile):
            self._fresh.append(dropped(seen))
        self._passed += seen.passed

    def end_epoch(self, booked: float = 0.0) -> None:
        """Keep some rows, each standing for as many as it was drawn from. Learning has taken so
        many seconds (`booked`) in all."""
        self._bookkeeping += booked - self._booked
        self._booked = booked
        passed = np.zeros((self._passed, len(self._evaluated)), np.bool_)
        kept = np.concatenate([*self._fresh, passed])
        if len(kept) and not self._partial:  # rows not fully profiled would count as passed
            if len(kept) > HINDSIGHT_ROWS:
                kept = kept[np.linspace(0, len(kept) - 1, HINDSIGHT_ROWS).astype(np.int64)]
            behind = self._rows, self._evaluated, self._seconds, self._bookkeeping
            self._samples.append(_Sample(kept, self._rows / len(kept), *behind))
            if len(self._samples) > HINDSIGHT_EPOCHS:
                self._samples.popleft()
            self._rows, self._seconds, self._bookkeeping = 0, 0.0, 0.0
            self._evaluated = np.zeros_like(self._evaluated)
        self._passed = 0
        self._partial = False
        self._fresh = []

    def judged(self, costs: npt.NDArray[np.float64], guards: Guards) -> Hindsight | None:
        if not self._samples:
            return None
        drops = np.concatenate([s.drops for s in self._samples])
        weights = np.concatenate([np.full(len(s.drops), s.weight) for s in self._samples])
        evaluated = self._evaluated + np.sum([s.evaluated for s in self._samples], axis=0)
        order = best_order(drops, costs, guards, weights)
        text = respected(guards, range(len(costs)))
        return Hindsight(
            float((evaluated * costs).sum() / max(self.rows, 1)),
            cost_of(order, drops, costs, weights=weights),
            order,
            cost_of(text, drops, costs, weights=weights),
            self.rows,
        )
