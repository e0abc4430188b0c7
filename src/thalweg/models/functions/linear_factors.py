"""How much an expression moves with each modeled column: its Lipschitz factors."""

from __future__ import annotations

from thalweg.models.functions.error_bounds import squared_parts
from thalweg.models.functions.formulas import Known, NotSolvable, varies
from thalweg.plan.expr import AggregateCall, Call, Column, Expr, Literal

Factors = dict[str, float]


def linear_factors(expr: Expr, curves: Known, integral: float | None = None) -> Factors:
    """The largest factors by which it moves, by column; raises `NotSolvable` if there are none. An
    integral moves so many times as much as what it is of (None: there is no bound of it)."""
    if isinstance(expr, AggregateCall):
        factor = aggregate_factor(expr, integral)
        inner = linear_factors(expr.arguments[0], curves)
        return {n: f * factor for n, f in inner.items() if factor}
    if not varies(expr, curves):
        return {}
    if isinstance(expr, Column):
        return {expr.name: 1.0}
    assert isinstance(expr, Call)
    name, args = expr.function, expr.args
    if name in ("neg", "abs", "cast"):
        return linear_factors(args[0], curves, integral)
    if name in ("+", "-"):
        left, right = (linear_factors(a, curves, integral) for a in args)
        return {n: left.get(n, 0.0) + right.get(n, 0.0) for n in {**left, **right}}
    if name in ("*", "/"):
        scaled = _scaled(name, args[0], args[1], curves, integral)
        if scaled is not None:
            return scaled
    if name == "sqrt":
        parts = squared_parts(args[0])
        if parts is not None:
            return _distance(parts, curves)
    raise NotSolvable(
        f"no bound of {expr} follows from bounds of the columns it is made of",
        "state bounds of the sources' columns: ERROR x WITHIN 0.5",
    )


def aggregate_factor(call: AggregateCall, integral: float | None) -> float:
    """By how much an aggregate moves with its argument: an average over many keys, or over time, no
    more than they all do."""
    name = call.kind.name
    if name in ("avg", "min", "max"):
        return 1.0
    if name == "coverage":
        return 0.0
    if integral is None:
        raise NotSolvable(
            f"no bound of {call} follows, for it is over several keys",
            "GROUP BY the key of the source, or state bounds of the sources' columns",
        )
    return integral


def _scaled(
    name: str, left: Expr, right: Expr, curves: Known, integral: float | None
) -> Factors | None:
    for one, other in ((left, right), (right, left)):
        value = _number(other)
        if value is None or (name == "/" and other is left) or (name == "/" and not value):
            continue
        factor = abs(value) if name == "*" else 1 / abs(value)
        return {n: f * factor for n, f in linear_factors(one, curves, integral).items()}
    return None


def _distance(parts: list[Expr], curves: Known) -> Factors:
    """A distance moves no more than all its parts together."""
    found: Factors = {}
    for part in parts:
        for name, factor in linear_factors(part, curves).items():
            found[name] = found.get(name, 0.0) + factor
    return found


def _number(expr: Expr) -> float | None:
    while isinstance(expr, Call) and expr.function in ("cast", "neg"):
        expr = expr.args[0]
    if isinstance(expr, Literal) and isinstance(expr.value, (int, float)):
        return float(expr.value)
    return None
