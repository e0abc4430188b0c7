"""Selection of candidates, given their benefit and cost.

Without sharing the best set is found tree by tree; with it the problem is NP-hard, so there is a
search while candidates are few, and a greedy cover beyond. All leave out caches without benefit,
and return caches that can be in use together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations
from math import fsum, inf

from thalweg.adapt.constants import EXHAUSTIVE_CANDIDATES
from thalweg.adapt.joins.candidates import Segment, Shared, clash
from thalweg.adapt.joins.costs import (
    Estimates,
    benefit,
    net_benefit,
    processing,
    shared_upkeep,
    upkeep,
)

Chosen = frozenset[Segment]
Place = tuple[int, int]
"""A pipeline and the place of an operator in it."""


def select(candidates: Iterable[Segment], e: Estimates) -> Chosen:
    """The best set of caches, or where that would take too long a good one."""
    worthy = _worthy(candidates, e)
    if _is_forest(worthy, e):
        return by_tree(worthy, e)
    if len(worthy) <= EXHAUSTIVE_CANDIDATES:
        return exhaustive(worthy, e)
    return greedy(worthy, e)


def _worthy(candidates: Iterable[Segment], e: Estimates) -> list[Segment]:
    """Candidates that save something, in an order that does not depend on the caller's. The others
    are in no best set: upkeep can only make them worse."""
    found = {s for s in candidates if benefit(s, e) > 0}
    return sorted(found, key=lambda s: (s.pipeline, s.first, s.last, s.key, sorted(s.beside)))


# -- without sharing -----------------------------------------------------------------------------


def by_tree(candidates: Iterable[Segment], e: Estimates) -> Chosen:
    """The best set where candidates of a pipeline nest or are apart and none is shared: of each
    tree either the outermost cache, or the best below it."""
    worthy = _worthy(candidates, e)
    if not _is_forest(worthy, e):
        raise ValueError("candidates share or cross: choose by `exhaustive` or `greedy`")
    return _best_of(worthy, e)[1]


def _is_forest(candidates: Sequence[Segment], e: Estimates) -> bool:
    if len({s.shared for s in candidates}) < len(candidates):
        return False
    return not any(
        clash(a, b, e.pipelines) and not a.within(b) and not b.within(a)
        for a, b in combinations(candidates, 2)
    )


def _best_of(candidates: Sequence[Segment], e: Estimates) -> tuple[float, Chosen]:
    """The largest benefit of a forest, and the caches that give it."""
    total, chosen = 0.0, Chosen()
    for root in candidates:
        if any(root.within(s) for s in candidates):
            continue
        gain, caches = _best_of([s for s in candidates if s.within(root)], e)
        own = benefit(root, e) - upkeep(root, e)
        if own > 0 and own >= gain:
            gain, caches = own, Chosen([root])
        total, chosen = total + gain, chosen | caches
    return total, chosen


# -- all sets ------------------------------------------------------------------------------------


def exhaustive(candidates: Iterable[Segment], e: Estimates) -> Chosen:
    """The best of all sets, found in time exponential in the number of candidates."""
    worthy = _worthy(candidates, e)
    search = _Search(worthy, e)
    search.run(0, (), 0.0, {})
    return Chosen(worthy[i] for i in search.best)


class _Search:
    """Depth-first search that takes or leaves one candidate after another, and prunes where even
    all that are left, free of upkeep, could not improve on the best set."""

    def __init__(self, candidates: Sequence[Segment], e: Estimates) -> None:
        self.best: tuple[int, ...] = ()
        self._most = 0.0
        self._benefits = [benefit(s, e) for s in candidates]
        self._upkeeps = [upkeep(s, e) for s in candidates]
        self._groups = [s.shared for s in candidates]
        self._left = [*accumulate(reversed(self._benefits), initial=0.0)][::-1]
        self._clashes = [
            {j for j, other in enumerate(candidates[:i]) if clash(one, other, e.pipelines)}
            for i, one in enumerate(candidates)
        ]

    def run(self, at: int, taken: tuple[int, ...], gain: float, paid: dict[Shared, float]) -> None:
        if gain > self._most:
            self._most, self.best = gain, taken
        if at == len(self._benefits) or gain + self._left[at] <= self._most:
            return
        if self._clashes[at].isdisjoint(taken):
            group = self._groups[at]
            before = paid.get(group, 0.0)
            after = max(before, self._upkeeps[at])
            more = gain + self._benefits[at] - (after - before)
            self.run(at + 1, (*taken, at), more, {**paid, group: after})
        self.run(at + 1, taken, gain, paid)


# -- a cover -------------------------------------------------------------------------------------


def greedy(candidates: Iterable[Segment], e: Estimates) -> Chosen:
    """A good set, by weighted set cover: every operator has to be covered, by itself or by a cache
    for some of the pipelines that share it. The cheapest step per newly covered operator is taken
    repeatedly; a cache replaces those it contains, and its price is lower by theirs."""
    groups = _groups(_worthy(candidates, e))
    cover = _Cover(e)
    while (step := _best_step(cover, groups)) is not None:
        cover = step
    return _trimmed(cover.caches, e)


@dataclass(frozen=True, slots=True)
class _Cover:
    """Some operators covered, by caches or by themselves."""

    e: Estimates
    caches: Chosen = frozenset()
    alone: frozenset[Place] = frozenset()
    covered: frozenset[Place] = field(init=False)
    price: float = field(init=False)

    def __post_init__(self) -> None:
        by_caches = {place for s in self.caches for place in _places_of(s)}
        spent = [self.e.operators[i][at].spent for i, at in self.alone]
        looked_up = [processing(s, self.e) for s in self.caches]
        price = fsum([*spent, *looked_up, shared_upkeep(self.caches, self.e)])
        object.__setattr__(self, "covered", self.alone | by_caches)
        object.__setattr__(self, "price", price)

    def with_operator(self, place: Place) -> _Cover:
        return _Cover(self.e, self.caches, self.alone | {place})

    def with_caches(self, added: Sequence[Segment]) -> _Cover:
        inside = {s for s in self.caches if any(s.within(one) for one in added)}
        places = {place for s in added for place in _places_of(s)}
        return _Cover(self.e, self.caches - inside | set(added), self.alone - places)

    def admits(self, segment: Segment) -> bool:
        """Whether it could be added to the caches that it would not replace."""
        return not any(
            clash(segment, s, self.e.pipelines) for s in self.caches if not s.within(segment)
        )

    def rank_of(self, step: _Cover) -> float:
        """The cost of a step per newly covered operator; steps that cover no less at less cost are
        first."""
        gain = len(step.covered) - len(self.covered)
        if gain:
            return (step.price - self.price) / gain
        return -inf if step.price < self.price else inf


def _places_of(segment: Segment) -> Iterator[Place]:
    return ((segment.pipeline, at) for at in segment.places)


def _groups(candidates: Iterable[Segment]) -> list[list[Segment]]:
    groups: dict[Shared, list[Segment]] = {}
    for s in candidates:
        groups.setdefault(s.shared, []).append(s)
    return list(groups.values())


def _best_step(cover: _Cover, groups: Iterable[Sequence[Segment]]) -> _Cover | None:
    """The cover with the cheapest addition, `None` if there is nothing left to gain."""
    steps = [step for group in groups for step in _steps_of(cover, group)]
    steps += [cover.with_operator(place) for place in _cheapest_left(cover)]
    best = min(steps, key=cover.rank_of, default=None)
    return best if best is not None and cover.rank_of(best) < inf else None


def _cheapest_left(cover: _Cover) -> list[Place]:
    """The uncovered operator that costs least by itself, if any is left."""
    operators = cover.e.operators
    left = (
        (pipeline, at)
        for pipeline in sorted(operators)
        for at in range(len(operators[pipeline]))
        if (pipeline, at) not in cover.covered
    )
    return sorted(left, key=lambda place: operators[place[0]][place[1]].spent)[:1]


def _steps_of(cover: _Cover, group: Sequence[Segment]) -> list[_Cover]:
    """A shared cache for the pipeline where it is cheapest, for the two cheapest, and so on; other
    choices of pipelines are hardly ever better, with the upkeep to be paid once."""
    free = [s for s in group if s not in cover.caches and cover.admits(s)]
    free.sort(key=lambda s: cover.rank_of(cover.with_caches([s])))
    return [cover.with_caches(free[:count]) for count in range(1, len(free) + 1)]


def _trimmed(chosen: Chosen, e: Estimates) -> Chosen:
    """Without shared caches that no longer pay, since some pipelines were served otherwise."""
    losing = {group[0].shared for group in _groups(chosen) if net_benefit(group, e) <= 0}
    return Chosen(s for s in chosen if s.shared not in losing)
