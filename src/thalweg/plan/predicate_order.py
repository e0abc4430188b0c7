"""The conjunctions of a plan whose order may change while it runs, and the constraints on it.

A predicate that may fail never moves before its *guard*: a predicate before it in the text that
references one of the same columns, as in `x <> 0 AND 10 / x > 2`. User functions may be guarded by
built-in predicates only, until a profile shows otherwise; they may be declared never to raise
(`raises=False`), or to rely on all that stands before them (`raises=True`). A predicate that is not
deterministic keeps its place, and so does everything around it, unless it is declared `movable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from thalweg.plan.expr import Predicate, UserCall, columns_of, walk
from thalweg.plan.functions import can_raise
from thalweg.plan.physical import QueryPlan

Predicates = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A conjunction in text order. `guards` are, per predicate, those that must precede it;
    `learns` says whether errors may reveal more of them."""

    predicates: Predicates
    guards: tuple[frozenset[int], ...]
    learns: tuple[bool, ...]

    @staticmethod
    def of(predicates: Sequence[Predicate]) -> Ordered:
        ordered = in_text_order(predicates)
        guards = tuple(frozenset(_guards(ordered, i)) for i in range(len(ordered)))
        return Ordered(ordered, guards, tuple(_may_learn(p) for p in ordered))


def in_text_order(predicates: Sequence[Predicate]) -> Predicates:
    """The key of a conjunction, whatever order a plan has it in."""
    return tuple(sorted(predicates, key=lambda p: p.rank))


def orderable(plan: QueryPlan) -> tuple[Ordered, ...]:
    """Conjunctions of at least two predicates, each once."""
    found = {
        in_text_order(c): None
        for relation in plan.relations
        for c in relation.conjunctions()
        if len(c) > 1
    }
    return tuple(Ordered.of(c) for c in found)


def reordered(plan: QueryPlan, predicates: Predicates, order: Sequence[int]) -> QueryPlan:
    """The plan with one conjunction in another order."""
    ranks = {predicates[number]: place for place, number in enumerate(order)}

    def by_rank(items: Predicates) -> Predicates:
        if len(items) < 2 or not all(p in ranks for p in items):
            return items
        return tuple(sorted(items, key=ranks.__getitem__))

    return replace(plan, relations=tuple(r.reordered(by_rank) for r in plan.relations))


def _guards(predicates: Predicates, number: int) -> set[int]:
    own = predicates[number]
    before = range(number)
    if not is_movable(own):
        return set(before)
    found = {i for i in before if not is_movable(predicates[i])}
    if not can_raise(own.expr):
        return found
    calls = _calls(own)
    if any(c.raises for c in calls):
        return set(before)
    columns = columns_of(own.expr)
    return found | {
        i
        for i in before
        if columns & columns_of(predicates[i].expr) and not (calls and _calls(predicates[i]))
    }


def _calls(predicate: Predicate) -> list[UserCall]:
    return [e for e in walk(predicate.expr) if isinstance(e, UserCall)]


def is_movable(predicate: Predicate) -> bool:
    """Whether it may be evaluated earlier or later, or on other rows, than the text says."""
    return all(c.movable for c in _calls(predicate))


def _may_learn(predicate: Predicate) -> bool:
    return can_raise(predicate.expr) and is_movable(predicate)
