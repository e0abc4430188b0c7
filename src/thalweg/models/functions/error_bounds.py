"""How far expressions over modeled columns may be from those over the true values.

Every column has a bound, as an expression of the row (a number, or a share of the column's own
size). Bounds are carried through a plan by Lipschitz factors that are known before it runs, so that
no query ever changes what another one absorbs. A comparison that holds whatever the true values are
is sure; one that holds for some is maybe.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from thalweg.models.functions.conditions import (
    Condition,
    Every,
    Holds,
    Some,
    compared,
    condition_of,
)
from thalweg.models.functions.formulas import DERIVATIVE, Known, NotSolvable, exponent_of, varies
from thalweg.plan import functions
from thalweg.plan.expr import Call, Column, Expr, Literal, columns_of
from thalweg.plan.types import BOOLEAN, DOUBLE

Errors = Mapping[str, Expr | None]
"""Bounds of columns; those that are not listed are exact, of None nothing is known."""
NO_ERROR = Literal(DOUBLE, False, 0.0)


def number(value: float) -> Literal:
    return Literal(DOUBLE, False, float(value))


def share_of(percent: float, column: Column) -> Expr:
    """The bound of a model that is within so many percent of each true value's size, by the size of
    the model: |v - m| <= e|v| gives |v - m| <= e/(1 - e) |m|."""
    share = percent / 100
    return _times(number(share / (1 - share)), _size(column))


def error_of(expr: Expr, errors: Errors, curves: Known) -> Expr:
    """The bound of an expression; raises `NotSolvable` where there is none."""
    if not any(name in errors for name in columns_of(expr)):
        return NO_ERROR
    if isinstance(expr, Column):
        return _known(expr.name, errors[expr.name])
    assert isinstance(expr, Call)
    name, args = expr.function, expr.args
    if name in ("+", "-"):
        return _plus(*(error_of(a, errors, curves) for a in args))
    if name in ("neg", "abs", "cast"):
        return error_of(args[0], errors, curves)
    if name == "sqrt":
        return _of_root(args[0], errors, curves)
    if name == "*":
        return _of_product(args[0], args[1], errors, curves)
    if name == "/" and not varies(args[1], curves):
        return functions.resolve("/", [error_of(args[0], errors, curves), _size(args[1])])
    if name == "power":
        return _of_power(args[0], exponent_of(expr), errors, curves)
    what = "derivative(x)" if name == DERIVATIVE else f"{name.upper()} of a modeled column"
    raise NotSolvable(
        f"ERROR gives no bound for {what}", "leave ERROR out, or state it for other columns"
    )


def _known(name: str, error: Expr | None) -> Expr:
    if error is None:
        raise NotSolvable(
            f"{name} has no bound, though tuples of its source are absorbed",
            f"add a bound for it: ERROR {name} WITHIN 0.5",
        )
    return error


def _of_product(left: Expr, right: Expr, errors: Errors, curves: Known) -> Expr:
    """|ab - a'b'| <= |a| e_b + |b| e_a + e_a e_b."""
    a, b = error_of(left, errors, curves), error_of(right, errors, curves)
    crossed = _plus(_times(_size(left), b), _times(_size(right), a))
    return _plus(crossed, _times(a, b))


def _of_power(base: Expr, exponent: int, errors: Errors, curves: Known) -> Expr:
    found: Expr = NO_ERROR
    whole: Expr = number(1)
    for _ in range(exponent):
        a, b = found, error_of(base, errors, curves)
        crossed = _plus(_times(_size(whole), b), _times(_size(base), a))
        found = _plus(crossed, _times(a, b))
        whole = _times(whole, base)
    return found


def _of_root(inner: Expr, errors: Errors, curves: Known) -> Expr:
    """A distance has the bound of its parts' distance: sqrt is 1-Lipschitz in Euclid's norm."""
    parts = squared_parts(inner)
    if parts is None:
        raise NotSolvable(
            "ERROR gives a bound for the square root of a sum of squares only",
            "write sqrt(pow(x, 2) + pow(y, 2)), or leave ERROR out",
        )
    bounds = [error_of(p, errors, curves) for p in parts]
    known = [b.value for b in bounds if isinstance(b, Literal)]
    if len(known) == len(bounds):
        return number(sqrt(sum(v * v for v in known)))
    found: Expr = NO_ERROR
    for bound in bounds:
        found = _plus(found, bound)
    return found


def squared_parts(expr: Expr) -> list[Expr] | None:
    """What a sum of squares is made of."""
    if isinstance(expr, Call) and expr.function == "cast":
        return squared_parts(expr.args[0])
    if isinstance(expr, Call) and expr.function == "+":
        left, right = (squared_parts(a) for a in expr.args)
        return None if left is None or right is None else left + right
    if isinstance(expr, Call) and expr.function == "power":
        try:
            return [expr.args[0]] if exponent_of(expr) == 2 else None
        except NotSolvable:
            return None
    if isinstance(expr, Call) and expr.function == "*" and expr.args[0] == expr.args[1]:
        return [expr.args[0]]
    return None


def _plus(left: Expr, right: Expr) -> Expr:
    if left == NO_ERROR:
        return right
    if right == NO_ERROR:
        return left
    if isinstance(left, Literal) and isinstance(right, Literal):
        return number(left.value + right.value)
    return functions.resolve("+", [left, right])


def _times(left: Expr, right: Expr) -> Expr:
    if NO_ERROR in (left, right):
        return NO_ERROR
    if isinstance(left, Literal) and isinstance(right, Literal):
        return number(left.value * right.value)
    if left == number(1):
        return right
    return left if right == number(1) else functions.resolve("*", [left, right])


def _size(expr: Expr) -> Expr:
    while isinstance(expr, Call) and expr.function == "cast" and isinstance(expr.args[0], Literal):
        expr = expr.args[0]
    if isinstance(expr, Literal):
        return number(abs(float(expr.value)))
    return functions.resolve("abs", [expr])


# -- conditions ------------------------------------------------------------------------------------


def possible(expr: Expr, curves: Known, errors: Errors) -> Condition:
    """Where a condition may hold for the true values: a superset of where it does."""
    return condition_of(expr, curves, compare=lambda a, op, b: _widened(a, op, b, curves, errors))


def certain(expr: Expr, curves: Known, errors: Errors) -> Condition:
    """Where a condition holds whatever the true values are: a subset of where it does."""
    return condition_of(expr, curves, compare=lambda a, op, b: _narrowed(a, op, b, curves, errors))


def _widened(left: Expr, operator: str, right: Expr, curves: Known, errors: Errors) -> Condition:
    left, right = _rooted(left, operator, right)
    error = _plus(error_of(left, errors, curves), error_of(right, errors, curves))
    if error == NO_ERROR:
        return compared(left, operator, right, curves)
    more, less = (functions.resolve(sign, [right, error]) for sign in "+-")
    if operator in ("<", "<="):
        return compared(left, operator, more, curves)
    if operator in (">", ">="):
        return compared(left, operator, less, curves)
    if operator == "<>":
        return Holds(Literal(BOOLEAN, False, True))
    return Every((compared(left, "<=", more, curves), compared(left, ">=", less, curves)))


def _narrowed(left: Expr, operator: str, right: Expr, curves: Known, errors: Errors) -> Condition:
    left, right = _rooted(left, operator, right)
    error = _plus(error_of(left, errors, curves), error_of(right, errors, curves))
    if error == NO_ERROR:
        return compared(left, operator, right, curves)
    more, less = (functions.resolve(sign, [right, error]) for sign in "+-")
    if operator in ("<", "<="):
        return compared(left, operator, less, curves)
    if operator in (">", ">="):
        return compared(left, operator, more, curves)
    if operator == "=":
        return Holds(Literal(BOOLEAN, False, False))
    return Some((compared(left, "<", less, curves), compared(left, ">", more, curves)))


def _rooted(left: Expr, operator: str, right: Expr) -> tuple[Expr, Expr]:
    """A sum of squares beside a number, as a distance: its bound is tighter."""
    sides = [left, right]
    for i, other in ((0, right), (1, left)):
        parts = squared_parts(sides[i])
        value = _literal(other)
        if parts is not None and len(parts) > 1 and value is not None and value >= 0:
            sides[i] = functions.resolve("sqrt", [sides[i]])
            sides[1 - i] = number(sqrt(value))
            return sides[0], sides[1]
    return left, right


def _literal(expr: Expr) -> float | None:
    while isinstance(expr, Call) and expr.function == "cast":
        expr = expr.args[0]
    if isinstance(expr, Literal) and isinstance(expr.value, (int, float)):
        return float(expr.value)
    return None
