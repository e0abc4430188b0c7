"""Orderings that change their mind all the time, to show that no row depends on them."""

from __future__ import annotations

from thalweg.adapt.filters.guards import respected
from thalweg.adapt.filters.ordering import Order, Ordering, Settings
from thalweg.adapt.loop import Adaptation
from thalweg.exec.frame import Ints
from thalweg.exec.tactics import Observation
from thalweg.plan.conjunctions import Ordered
from thalweg.plan.query import QueryOptions

_LONGEST = 7


class Restless(Ordering):
    """Another order after every few rows, and a profile now and then."""

    name = "restless"
    profiles = True

    def slice_rows(self) -> int:
        return int(self._random.integers(1, _LONGEST))

    def sample(self, rows: int) -> Ints:
        self.rate = float(self._random.choice([0.0, 0.3, 1.0]))
        return super().sample(rows)

    def _learn(self, seen: Observation) -> None:
        shuffled = self._random.permutation(self.settings.predicates).tolist()
        self.current = respected(self.guards, shuffled)


class RestlessAdaptation(Adaptation):
    """Every conjunction and pipeline of every query is restless, whatever its options say."""

    def __init__(self, seed: int, costs: dict[str, float]) -> None:
        super().__init__(costs)
        self.seed = seed

    def _ordering(
        self, conjunction: Ordered, options: QueryOptions, order: Order | None
    ) -> Ordering:
        count = len(conjunction.predicates)
        # guards only keep costs down: no row may depend on them either
        return Restless(Settings(count), order).fork(self.seed)

    def _pipeline_ordering(
        self, leaves: int, options: QueryOptions, order: Order | None
    ) -> Ordering:
        return Restless(Settings(leaves), order).fork(self.seed + 1)
