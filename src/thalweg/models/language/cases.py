"""ABS among the columns of a SELECT: rows where its argument is not below zero, and the others."""

from __future__ import annotations

from thalweg.models.functions.conditions import condition_of, first_call, replaced
from thalweg.models.functions.curve import Curves
from thalweg.models.relations.mapped import Map
from thalweg.models.relations.solved import Solve
from thalweg.plan import functions
from thalweg.plan.expr import Expr, Literal
from thalweg.plan.logical import Named, Node, Union
from thalweg.plan.types import DOUBLE

_ZERO = Literal(DOUBLE, False, 0.0)


def mapped(body: Node, columns: tuple[Named, ...], curves: Curves) -> tuple[Node, Curves]:
    """Columns as functions of time, and which of them are such."""
    maps = _maps(body, columns, curves)
    return maps[0] if len(maps) == 1 else Union(tuple(maps)), maps[0].made


def _maps(body: Node, columns: tuple[Named, ...], curves: Curves) -> list[Map]:
    known = dict(curves)
    found = (first_call(c.expr, ("abs",), known) for c in columns)
    call = next((one for one in found if one is not None), None)
    if call is None:
        return [Map(body, columns, curves)]
    (inner,) = call.args
    maps = []
    for operator, value in ((">=", inner), ("<", functions.resolve("neg", [inner]))):
        part = Solve(body, condition_of(_compared(inner, operator), known), curves)
        chosen = tuple(Named(c.name, replaced(c.expr, call, value)) for c in columns)
        maps += _maps(part, chosen, curves)
    return maps


def _compared(inner: Expr, operator: str) -> Expr:
    return functions.resolve(operator, [inner, _ZERO])
