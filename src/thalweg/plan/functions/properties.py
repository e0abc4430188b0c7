"""Properties of an expression that the planner relies on before it runs."""

from __future__ import annotations

from thalweg.plan.expr import Call, Expr, UserCall, walk
from thalweg.plan.functions.casting import cast_raises
from thalweg.plan.functions.signature import DEFINITIONS


def can_raise(expr: Expr) -> bool:
    """Whether evaluation may fail on some row; False is always right."""
    return any(_node_raises(e) for e in walk(expr))


def _node_raises(expr: Expr) -> bool:
    if isinstance(expr, UserCall):
        return expr.raises is not False
    if not isinstance(expr, Call) or expr.function == "try_cast":
        return False
    if expr.function == "cast":
        return cast_raises(expr.args[0].type, expr.type)
    return DEFINITIONS[expr.function].raises(expr)


def is_deterministic(expr: Expr) -> bool:
    """Whether equal rows always give equal values."""
    return all(e.deterministic for e in walk(expr) if isinstance(e, UserCall))
