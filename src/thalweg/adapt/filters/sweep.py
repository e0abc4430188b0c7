"""Sweep: one predicate at a time is compared with those before it.

A profiled row costs at most one extra evaluation. The order converges to one that A-Greedy would
keep, but a violation may stay undetected for up to n - 2 stages.
"""

from __future__ import annotations

import numpy as np

from thalweg.adapt.filters.ordering import Order, Ordering, Settings, Stopwatch, Trigger
from thalweg.exec.tactics import DROPPED, UNKNOWN, Observation
from thalweg.instants import Ints


class Sweep(Ordering):
    name = "sweep"
    profiles = True

    def __init__(self, settings: Settings, order: Order | None = None) -> None:
        super().__init__(settings, order)
        self.stage = 1
        self._clear()

    def wanted(self, position: int, dropped_at: Ints) -> np.ndarray:
        return np.full(len(dropped_at), position == self.stage)

    def _learn(self, seen: Observation) -> None:
        if self.settings.predicates < 2 or seen.order != tuple(self.current):
            return  # counted under an order that is no longer in force
        if self.current[self.stage] in seen.unasked:
            return  # of a task at another stage: rows dropped before this one are unknown
        watch = Stopwatch()
        verdicts = seen.profile[:, self.current]
        first = (verdicts == DROPPED).argmax(1)
        asked = (first >= self.stage) | (verdicts[:, self.stage] != UNKNOWN)
        verdicts, first = verdicts[asked], first[asked]  # other tasks may be at other stages
        if not len(first):
            return
        drops = verdicts == DROPPED
        self.overhead.window += watch.lap()
        self._count(first[first <= self.stage], drops[first <= self.stage, self.stage])
        self.seen += len(first)
        self.overhead.matrix += watch.lap()
        if self.seen >= self.settings.evidence:
            self._check()
        self.overhead.repair += watch.lap()

    def _count(self, first: Ints, also: np.ndarray) -> None:
        """Count rows; `also` marks those that the predicate of this stage drops too."""
        self.own += np.bincount(first, minlength=len(self.own))
        reached = np.bincount(first[also], minlength=len(self.rival))
        self.rival += reached[::-1].cumsum()[::-1]  # rows that reach each position

    def _check(self) -> None:
        costs = self.costs.per_row[self.current]
        j = self.stage
        own, rival = self.own[:j] / costs[:j], self.rival[:j] / costs[j]
        for i in np.flatnonzero(own < self.settings.alpha * rival):
            if self.guards[self.current[j]] <= set(self.current[:i]):
                order = list(self.current)
                order.insert(int(i), order.pop(j))
                trigger = Trigger(
                    "drops per cost", int(i), self.current[i], self.current[j], float(own[i]),
                    float(rival[i]), self.seen,
                )  # fmt: skip
                self._adopt(tuple(order), trigger)
                self._next_stage()
                return
        if self.seen >= self.settings.window:
            self._next_stage()

    def _next_stage(self) -> None:
        self.stage = self.stage % (self.settings.predicates - 1) + 1
        self._clear()

    def _clear(self) -> None:
        self.seen = 0
        self.own = np.zeros(self.settings.predicates, np.int64)
        self.rival = np.zeros(self.settings.predicates, np.int64)

    def _restart(self) -> None:
        self._clear()
