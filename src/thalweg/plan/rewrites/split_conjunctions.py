"""Splitting of `p AND q` inside a filter into two predicates."""

from __future__ import annotations

from dataclasses import replace

from thalweg.plan.expr import Call, Expr, Predicate
from thalweg.plan.logical import Filter, Join, Node, OuterJoin, transform


def split_conjunctions(node: Node) -> Node:
    """Predicates that are conjunctions become their parts.

    Both parts keep the position and text of the whole: AND and a list of predicates agree on
    errors (false wins over an error), so a rejected row is rejected under the same name.
    """
    return transform(node, _split)


def _split(node: Node) -> Node:
    if isinstance(node, (Filter, Join, OuterJoin)):
        parts = tuple(part for p in node.predicates for part in _parts(p))
        if len(parts) != len(node.predicates):
            return replace(node, predicates=parts)
    return node


def _parts(predicate: Predicate) -> list[Predicate]:
    found = _conjuncts(predicate.expr)
    if len(found) == 1:
        return [predicate]
    return [replace(predicate, expr=e, part=i) for i, e in enumerate(found)]


def _conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call) and expr.function == "and":
        return [e for arg in expr.args for e in _conjuncts(arg)]
    return [expr]
