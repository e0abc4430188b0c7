"""Ranges and sets of constants that the filters of one input imply."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.estimate.join_query import Condition
from thalweg.plan.expr import Call, Column, Expr, Literal, Predicate

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def conditions_of(predicates: Sequence[Predicate]) -> tuple[Condition, ...]:
    """What comparisons of a bare column with constants say, one condition each; all others say
    nothing here."""
    found = (_condition(p.expr) for p in predicates)
    return tuple(c for c in found if c is not None)


def _condition(expr: Expr) -> Condition | None:
    if not isinstance(expr, Call) or not expr.args:
        return None
    function, args = expr.function, expr.args
    if function == "in":
        return _of_set(args[0], args[1:])
    if function not in _MIRRORED:
        return None
    left, right = args
    if isinstance(left, Literal):
        left, right, function = right, left, _MIRRORED[function]
    if not isinstance(left, Column) or not isinstance(right, Literal) or right.value is None:
        return None
    column = _short(left)
    if function == "=":
        return Condition(column, values=(right.value,))
    if function in (">", ">="):
        return Condition(column, low=right.value, low_included=function == ">=")
    return Condition(column, high=right.value, high_included=function == "<=")


def _of_set(value: Expr, candidates: Sequence[Expr]) -> Condition | None:
    """NULL among the candidates makes no row pass."""
    constants = [c.value for c in candidates if isinstance(c, Literal)]
    if not isinstance(value, Column) or len(constants) != len(candidates):
        return None
    return Condition(_short(value), values=tuple(c for c in constants if c is not None))


def _short(column: Column) -> str:
    return column.name.split(".", 1)[1]
