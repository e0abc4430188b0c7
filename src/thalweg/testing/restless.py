"""Plans that change all the time, to show that no row depends on them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from thalweg.adapt.filters.guards import respected
from thalweg.adapt.filters.ordering import Order, Ordering, Settings
from thalweg.adapt.loop import Adaptation
from thalweg.exec.tactics import Observation
from thalweg.instants import Ints
from thalweg.plan.conjunctions import Ordered
from thalweg.plan.physical import QueryPlan
from thalweg.plan.query import QueryOptions
from thalweg.plan.relations.block import blocks_of
from thalweg.plan.subresults import Span, all_spans, compatible, with_spans

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
    """Every conjunction and pipeline of every query is restless, whatever its options say; which
    subresults are kept is drawn by the runner."""

    chooses_caches = False

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


def with_random_subresults(plan: QueryPlan, rng: Random) -> QueryPlan:
    """The plan with some of the subresults that it may keep: large, tiny, whole or none."""
    for number, relation in blocks_of(plan.relations):
        if rng.random() < 0.3:
            continue
        chosen: list[Span] = []
        found = all_spans(relation)
        for span in rng.sample(found, len(found)):
            span = replace(
                span,
                whole=rng.random() < 0.3,
                buckets=rng.choice((1, 3, 64)),
                limit=rng.choice((0, 300, 1 << 20)),
            )
            if rng.random() < 0.7 and compatible([*chosen, span]):
                chosen.append(span)
        if chosen:
            plan = with_spans(plan, number, chosen)
    return plan
