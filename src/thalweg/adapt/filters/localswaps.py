"""LocalSwaps: compare each predicate with its neighbour, and swap them if they are out of order.

A profiled row costs at most one extra evaluation. The order may stay in a local optimum up to n
times worse than the best.
"""

from __future__ import annotations

import numpy as np

from thalweg.adapt.filters.ordering import Order, Ordering, Settings, Stopwatch, Trigger
from thalweg.exec.tactics import DROPPED, Observation
from thalweg.instants import Ints


class LocalSwaps(Ordering):
    name = "local-swaps"
    profiles = True

    def __init__(self, settings: Settings, order: Order | None = None) -> None:
        super().__init__(settings, order)
        self.positions: Ints = np.empty(0, np.int64)
        self.also = np.empty(0, np.bool_)
        self.seen = 0
        self.since: Ints = np.zeros(settings.predicates, np.int64)

    def wanted(self, position: int, dropped_at: Ints) -> np.ndarray:
        return np.equal(dropped_at, position - 1)

    def _learn(self, seen: Observation) -> None:
        if self.settings.predicates < 2 or seen.order != tuple(self.current):
            return
        watch = Stopwatch()
        drops = seen.profile[:, self.current] == DROPPED
        if not len(drops):
            return
        first = drops.argmax(1)
        following = np.minimum(first + 1, self.settings.predicates - 1)
        also = drops[np.arange(len(drops)), following] & (following > first)
        self.seen += len(first)
        self.positions = np.concatenate([self.positions, first])[-self.settings.window :]
        self.also = np.concatenate([self.also, also])[-self.settings.window :]
        self.overhead.window += watch.lap()
        own, rival = self._counts()
        self.overhead.matrix += watch.lap()
        self._check(own, rival)
        self.overhead.repair += watch.lap()

    def _counts(self) -> tuple[Ints, Ints]:
        """Per position i the rows dropped there, and the rows that the predicate after it would
        drop if it were first: the two diagonals of the matrix view. Both count the same rows: those
        since a swap last touched the pair."""
        pairs = self.settings.predicates - 1
        number = np.arange(self.seen - len(self.positions), self.seen)
        here = (self.positions < pairs) & (number >= self.since[self.positions])
        after = (self.positions > 0) & (number >= self.since[self.positions - 1])
        own = np.bincount(self.positions[here], minlength=pairs)
        both = np.bincount(self.positions[here & self.also], minlength=pairs)
        return own, both + np.bincount(self.positions[after] - 1, minlength=pairs)

    def _check(self, own: Ints, rival: Ints) -> None:
        """Swap the first pair out of order, then look again: pairs that the swap touches begin to
        count anew, so the loop ends."""
        old, since, trigger = list(self.current), self.since, None
        while True:
            costs = self.costs.per_row[self.current]
            had, has = own / costs[:-1], rival / costs[1:]
            counted = np.minimum(self.seen - self.since[:-1], len(self.positions))
            enough = counted >= self.settings.evidence
            found = [
                int(i)
                for i in np.flatnonzero(enough & (had < self.settings.alpha * has))
                if self.current[i] not in self.guards[self.current[i + 1]]
            ]
            if not found:
                break
            i = found[0]
            trigger = trigger or Trigger(
                "drops per cost of neighbours", i, self.current[i], self.current[i + 1],
                float(had[i]), float(has[i]), int(counted[i]),
            )  # fmt: skip
            before = list(self.current)
            self.current[i : i + 2] = self.current[i + 1], self.current[i]
            self.since = self._counting_since(before)
            own, rival = self._counts()
        new, self.current, self.since = tuple(self.current), old, since
        if trigger is not None and self._adopt(new, trigger):
            self._taken(old)

    def _counting_since(self, old: list[int]) -> Ints:
        """Pairs with a predicate that was at another place begin to count anew."""
        since = self.since.copy()
        for i, number in enumerate(old):
            if number != self.current[i]:
                since[max(i - 1, 0) : i + 1] = self.seen
        return since

    def _taken(self, old: list[int]) -> None:
        self.since = self._counting_since(old)

    def _restart(self) -> None:
        self.positions = np.empty(0, np.int64)
        self.also = np.empty(0, np.bool_)
        self.seen = 0
        self.since = np.zeros(self.settings.predicates, np.int64)
