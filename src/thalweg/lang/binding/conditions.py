"""Conditions as conjunctions: the operands of AND, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.errors import ThalwegError
from thalweg.lang.binding.scope import Scope
from thalweg.lang.parsing.places import span_of
from thalweg.lang.syntax import exp
from thalweg.plan.expr import Expr, Predicate


@dataclass(frozen=True, slots=True)
class Conjunct:
    """An operand of AND in WHERE or in an ON: where it stands in the text (None: unknown), and what
    it is bound to; None where it asks another query, or a source that is not in view."""

    span: tuple[int, int] | None
    expr: Expr | None
    in_where: bool


def bound_conjunct(scope: Scope, node: exp.Expr, in_where: bool) -> Conjunct:
    """A conjunct as far as the sources in view bind it."""
    try:
        asks = any("query" in part.meta for part in node.walk())
        found = None if asks else scope.condition(node)
    except ThalwegError:
        found = None
    return Conjunct(span_of(node), found, in_where)


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
