"""The benefit and the cost of a cache, per unit of time.

A look-up is paid for every tuple that reaches the cache, the operators behind it and the fill for
those that miss. Upkeep is paid for every change of the cached join, once for all pipelines that
share the cache.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import fsum

from thalweg.adapt.joins.candidates import Pipelines, Segment, Shared


@dataclass(frozen=True, slots=True)
class Operator:
    """Tuples that reach an operator per unit of time, and the cost of each of them there. Where
    tuples have a row in common that is looked up once, fewer are `asked` for."""

    rate: float
    cost: float
    asked: float | None = None

    @property
    def spent(self) -> float:
        return self.rate * self.cost


@dataclass(frozen=True, slots=True)
class CacheEstimate:
    """How often a lookup misses, and what a lookup and a change of an entry cost."""

    miss_prob: float
    probe_cost: float
    update_cost: float


@dataclass(frozen=True, slots=True)
class Apart:
    """Changes of a cache that the pipelines of these leaves do not produce: how many there are per
    unit of time, and the cost of computing them."""

    leaves: frozenset[int] = frozenset()
    deltas: float = 0.0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Estimates:
    """The input of the choice of caches. Rates are those of pipelines without caches; `outputs` are
    the rates at which they produce results. The rate of changes of a cache follows from them,
    unless some changes are computed `apart`. Tuples go through a pipeline several times, `passes`,
    where they do so when they vanish too; no cache has to be told of that."""

    pipelines: Pipelines
    operators: Mapping[int, tuple[Operator, ...]]
    outputs: Mapping[int, float]
    caches: Mapping[Segment, CacheEstimate]
    apart: Mapping[Segment, Apart] = field(default_factory=dict)
    passes: Mapping[int, float] = field(default_factory=dict)

    def passes_of(self, pipeline: int) -> float:
        return self.passes.get(pipeline, 1.0)

    def rate_after(self, pipeline: int, count: int) -> float:
        """Tuples per unit of time that leave the first `count` operators."""
        operators = self.operators[pipeline]
        return operators[count].rate if count < len(operators) else self.outputs[pipeline]

    def asked(self, segment: Segment) -> float:
        """Look-ups per unit of time in a cache."""
        operator = self.operators[segment.pipeline][segment.first]
        return operator.rate if operator.asked is None else operator.asked

    def delta_rate(self, segment: Segment) -> float:
        """Changes per unit of time of a cache, from all its leaves."""
        others = len(segment.maintained) - 1
        apart = self.apart.get(segment, Apart())
        come_by = [leaf for leaf in segment.maintained if leaf in self.operators]
        rates = [self.rate_after(leaf, others) for leaf in come_by if leaf not in apart.leaves]
        return fsum([*rates, apart.deltas])


def bare(segment: Segment, e: Estimates) -> float:
    """The cost of its operators without the cache."""
    spent = fsum(e.operators[segment.pipeline][place].spent for place in segment.places)
    return spent * e.passes_of(segment.pipeline)


def processing(segment: Segment, e: Estimates) -> float:
    """The cost of look-ups, and of misses with everything they entail."""
    cache = e.caches[segment]
    passes = e.passes_of(segment.pipeline)
    looked_up = passes * e.asked(segment) * cache.probe_cost
    filled = passes * e.rate_after(segment.pipeline, segment.last + 1) * cache.update_cost
    return looked_up + cache.miss_prob * (bare(segment, e) + filled)


def benefit(segment: Segment, e: Estimates) -> float:
    """The saving of the pipeline, upkeep not counted; negative if it loses."""
    return bare(segment, e) - processing(segment, e)


def upkeep(segment: Segment, e: Estimates) -> float:
    """The cost of maintaining the cache, independent of how many pipelines use it."""
    apart = e.apart.get(segment, Apart())
    return e.caches[segment].update_cost * e.delta_rate(segment) + apart.spent


def shared_upkeep(chosen: Iterable[Segment], e: Estimates) -> float:
    """The upkeep of caches together, of one that is shared only once (the highest estimate)."""
    paid: dict[Shared, float] = {}
    for segment in chosen:
        paid[segment.shared] = max(paid.get(segment.shared, 0.0), upkeep(segment, e))
    return fsum(paid.values())


def net_benefit(chosen: Collection[Segment], e: Estimates) -> float:
    """The benefit of caches together after upkeep."""
    return fsum(benefit(s, e) for s in chosen) - shared_upkeep(chosen, e)


def total_cost(chosen: Collection[Segment], e: Estimates) -> float:
    """The cost of all pipelines with these caches, which must not overlap."""
    cached = [(s.pipeline, place) for s in chosen for place in s.places]
    if len(set(cached)) < len(cached):
        raise ValueError("caches overlap: an operator can be replaced by one of them only")
    asked = (
        operator.spent * e.passes_of(pipeline)
        for pipeline, operators in e.operators.items()
        for place, operator in enumerate(operators)
        if (pipeline, place) not in cached
    )
    return fsum([*asked, *(processing(s, e) for s in chosen), shared_upkeep(chosen, e)])
