"""Conditions as conjunctions: the operands of AND, each with its place in the text."""

from __future__ import annotations

from thalweg.lang.binding.scope import Scope
from thalweg.lang.syntax import exp
from thalweg.plan.expr import Predicate


def bound_predicates(
    scope: Scope, nodes: tuple[exp.Expr, ...], *, aggregates: bool = False
) -> tuple[Predicate, ...]:
    """The conjuncts of all conditions, numbered in the order of the text."""
    conjuncts = [c for node in nodes for c in conjuncts_of(node)]
    return tuple(
        Predicate(scope.condition(c, aggregates=aggregates), i, written_condition(c))
        for i, c in enumerate(conjuncts)
    )


def conjuncts_of(node: exp.Expr) -> list[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        found: list[exp.Expr] = []
        while isinstance(node, exp.And):
            found = conjuncts_of(node.expression) + found
            node = node.this
        return conjuncts_of(node) + found
    return [node]


def written_condition(node: exp.Expr) -> str:
    """The text of a condition for display: user functions as the user writes them."""
    return str(node.sql(dialect="spark", normalize_functions=False))
