"""Constant folding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from thalweg.plan import expr as ex
from thalweg.plan.expr import Call, Expr, Literal
from thalweg.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Named,
    NamedAggregate,
    Node,
    OuterJoin,
    Project,
    transform,
)
from thalweg.plan.types import BOOLEAN


def fold_constants(node: Node, evaluate: Callable[[Expr], Literal | None]) -> Node:
    """Built-in calls on literals become literals; predicates that are always true disappear.

    A constant that raises stays as it is: `1/0 = 1` must still reject the rows it meets.
    """

    def fold(expr: Expr) -> Expr:
        if isinstance(expr, Call) and all(isinstance(a, Literal) for a in expr.args):
            found = evaluate(expr)
            return expr if found is None else found
        return expr

    def folded(expr: Expr) -> Expr:
        return ex.transform(expr, fold)

    def change(one: Node) -> Node:
        if isinstance(one, (Filter, Join, OuterJoin)):
            kept = tuple(replace(p, expr=folded(p.expr)) for p in one.predicates)
            kept = tuple(p for p in kept if p.expr != Literal(BOOLEAN, False, True))
            if not kept and isinstance(one, Filter):
                return one.input
            return replace(one, predicates=kept)
        if isinstance(one, Project):
            return replace(one, columns=tuple(Named(c.name, folded(c.expr)) for c in one.columns))
        if isinstance(one, Aggregate):
            return replace(one, aggregates=tuple(_folded(a, folded) for a in one.aggregates))
        return one

    return transform(node, change)


def _folded(aggregate: NamedAggregate, folded: Callable[[Expr], Expr]) -> NamedAggregate:
    call = aggregate.call
    return replace(aggregate, call=replace(call, arguments=tuple(map(folded, call.arguments))))
