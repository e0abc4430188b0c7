"""Filter pushdown: predicates move towards the streams they reference."""

from __future__ import annotations

from dataclasses import replace

from thalweg.plan.expr import Predicate, columns_of
from thalweg.plan.functions import can_raise, is_deterministic
from thalweg.plan.logical import Filter, Join, Node, Window, transform


def push_filters(node: Node) -> Node:
    """Predicates on one input sink below the join, and below `[RANGE]`, never below `[ROWS]`.

    A row window counts rows: dropping some before it would let older ones back in. A predicate that
    may raise stays above a join: an error matters only on combinations that everything else
    accepts, and that is known above only.
    """
    return transform(node, _push)


def _push(node: Node) -> Node:
    if not isinstance(node, Filter):
        return node
    below = node.input
    if isinstance(below, Filter):
        return _push(Filter(below.input, below.predicates + node.predicates))
    if isinstance(below, Window) and not below.window.is_ordered:
        return replace(below, input=_push(Filter(below.input, node.predicates)))
    if isinstance(below, Join):
        return _into_join(below, node.predicates)
    return node


def _into_join(join: Join, predicates: tuple[Predicate, ...]) -> Join:
    members = list(join.members)
    stay: list[Predicate] = []
    for predicate in predicates:
        target = _only_member(join, predicate)
        if target is None or can_raise(predicate.expr) or not is_deterministic(predicate.expr):
            stay.append(predicate)
        else:
            members[target] = _push(Filter(members[target], (predicate,)))
    return Join(tuple(members), join.predicates + tuple(stay))


def _only_member(join: Join, predicate: Predicate) -> int | None:
    needed = columns_of(predicate.expr)
    for i, member in enumerate(join.members):
        if needed and needed <= {f.name for f in member.schema}:
            return i
    return None
