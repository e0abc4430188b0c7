"""derivative(x): how fast a modeled column changes, per second."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.errors import BindError
from thalweg.lang.binding.own_functions import OwnFunction
from thalweg.models.functions.formulas import DERIVATIVE
from thalweg.plan import functions
from thalweg.plan.expr import AggregateCall, Call, Expr, columns_of, walk
from thalweg.plan.types import DOUBLE


def _derivative(args: Sequence[Expr], modeled: frozenset[str]) -> Expr:
    if len(args) != 1:
        raise BindError(
            f"derivative() takes one argument, {len(args)} given", remedy="write derivative(x)"
        )
    (argument,) = args
    aggregated = any(isinstance(e, AggregateCall) for e in walk(argument)) and modeled
    if not aggregated and not columns_of(argument) & modeled:
        raise BindError(
            "derivative() is of a modeled column: the rows of a stream are at single instants",
            remedy="model the stream, FROM s MODEL (x = x + v * t), or subtract the value before "
            "by lag(x) OVER (...)",
        )
    return Call(DOUBLE, argument.nullable, DERIVATIVE, (functions.cast(argument, DOUBLE),))


FUNCTION = OwnFunction(DERIVATIVE, _derivative)
