"""Expressions over columns that are functions of time: which there are, and what they are per row.

Parts that read no such column are ordinary expressions, evaluated once per row. What is left is
arithmetic: +, -, *, division by an ordinary expression, whole powers, and derivatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from thalweg.columns.vector import Codes, Mask, Vector
from thalweg.exec.expressions.evaluate import UserFunction, evaluate
from thalweg.instants import Ints
from thalweg.models.functions.curve import Curve
from thalweg.models.functions.time_functions import TimeFunctions, constants
from thalweg.models.polynomials import MOST_DEGREE, Floats
from thalweg.plan import functions
from thalweg.plan.expr import Call, Column, Expr, Literal, columns_of, walk
from thalweg.plan.types import DOUBLE

DERIVATIVE = "derivative"
Known = Mapping[str, Curve]


class NotSolvable(Exception):
    """An expression has no form as polynomials; the message says which part, and what helps."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


SAMPLED = "take it of samples: FROM (SELECT ... SAMPLE EVERY 1 SECOND) [...]"


def derivatives_in(expr: Expr) -> list[Expr]:
    return [e for e in walk(expr) if isinstance(e, Call) and e.function == DERIVATIVE]


def varies(expr: Expr, curves: Known) -> bool:
    """Whether it reads a column that is a function of time."""
    return any(name in curves for name in columns_of(expr))


def degrees(expr: Expr, curves: Known) -> tuple[int, int]:
    """The degrees of the polynomial that an expression is and of its divisor (-1: there is none);
    raises `NotSolvable` if it is none."""
    found = _degrees(expr, curves)
    if max(found) > MOST_DEGREE:
        raise NotSolvable(
            f"{expr} is a polynomial of degree {max(found)}",
            f"the largest degree is {MOST_DEGREE}: use models of lower ones",
        )
    return found


@dataclass(frozen=True, slots=True)
class Form:
    """An expression as polynomials: `inner`, of the degrees of its polynomial and of the divisor
    (-1: there is none), or its square root."""

    inner: Expr
    top: int
    bottom: int
    is_root: bool


def form_of(expr: Expr, curves: Known) -> Form:
    """The form of an expression; raises `NotSolvable` if it has none."""
    if isinstance(expr, Column) and expr.name in curves and curves[expr.name].is_root:
        curve = curves[expr.name]
        return Form(expr, curve.degree, len(curve.divisor) - 1, True)
    inner, is_root = without_root(expr, curves)
    return Form(inner, *degrees(inner, curves), is_root)


def without_root(expr: Expr, curves: Known) -> tuple[Expr, bool]:
    """What a square root over modeled columns is taken of, and whether there is one; other
    expressions as they are."""
    if isinstance(expr, Call) and expr.function == "sqrt" and varies(expr, curves):
        inner = expr.args[0]
        while isinstance(inner, Call) and inner.function == "cast":
            (inner,) = inner.args
        return inner, True
    return expr, False


def _degrees(expr: Expr, curves: Known) -> tuple[int, int]:
    if not varies(expr, curves):
        return 0, -1
    if isinstance(expr, Column):
        curve = curves[expr.name]
        if curve.is_root:
            raise NotSolvable(
                f"{expr} is a square root",
                "use its square: select what stands under sqrt() in the subquery",
            )
        if curve.is_instant:
            raise NotSolvable(
                f"{expr} is the instant itself, and no number",
                "compare it with a TIMESTAMP, or select it as it is",
            )
        return curve.degree, len(curve.divisor) - 1
    assert isinstance(expr, Call) or not columns_of(expr)
    if not isinstance(expr, Call):
        raise NotSolvable(f"{expr} is no polynomial", SAMPLED)
    return _of_call(expr, curves)


def _of_call(call: Call, curves: Known) -> tuple[int, int]:
    name, args = call.function, call.args
    if name in ("+", "-"):
        (a, b), (c, d) = (_degrees(x, curves) for x in args)
        if b < 0 and d < 0:
            return max(a, c), -1
        b, d = max(b, 0), max(d, 0)
        return max(a + d, c + b), b + d
    if name in ("neg", "abs") or (name == "cast" and call.type == DOUBLE):
        return _degrees(args[0], curves)
    if name == "*":
        (a, b), (c, d) = (_degrees(x, curves) for x in args)
        return a + c, -1 if b < 0 and d < 0 else max(b, 0) + max(d, 0)
    if name == "/" and not varies(args[1], curves):
        return _degrees(args[0], curves)
    if name == "power":
        top, bottom = _degrees(args[0], curves)
        k = exponent_of(call)
        return top * k, bottom if bottom < 0 else bottom * k
    if name == DERIVATIVE:
        top, bottom = _degrees(args[0], curves)
        if bottom < 0:
            return max(top - 1, 0), -1
        return top + bottom, 2 * bottom
    raise NotSolvable(f"{_shown(call)} of a modeled column is no polynomial", SAMPLED)


def _shown(call: Call) -> str:
    return "division" if call.function == "/" else f"{call.function.upper()}"


def exponent_of(call: Call) -> int:
    """The exponent of a power; raises `NotSolvable` unless it is a small whole number."""
    wanted = call.args[1]
    while isinstance(wanted, Call) and wanted.function == "cast":
        (wanted,) = wanted.args
    value = wanted.value if isinstance(wanted, Literal) else None
    if value is None or value != int(value) or not 0 <= value <= MOST_DEGREE:
        raise NotSolvable(
            f"a power of a modeled column takes a whole number from 0 to {MOST_DEGREE}",
            "write pow(x, 2), or take other powers of samples",
        )
    return int(value)


# -- per row ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rows:
    """The rows that formulas are evaluated on; `errors` are those of the ordinary parts."""

    columns: Mapping[str, Vector]
    length: int
    curves: Known
    functions: Mapping[str, UserFunction]
    errors: Codes | None = None

    def curve(self, curve: Curve) -> TimeFunctions:
        """The functions that columns hold."""
        bottom = _stacked(self.columns, curve.divisor) if curve.divisor else None
        start = np.asarray(self.columns[curve.start].data)
        first = self.columns[curve.coefficients[0]]
        return TimeFunctions(_stacked(self.columns, curve.coefficients), start, bottom, first.valid)

    def at(self, curve: Curve, instants: Ints) -> Floats:
        """The values of a column at an instant of each row."""
        values = self.curve(curve).at(instants)
        return np.sqrt(np.maximum(values, 0.0)) if curve.is_root else values

    def plain(self, expr: Expr) -> Vector:
        """An ordinary part; its errors are noted."""
        found = evaluate(expr, self.columns, self.length, self.functions)
        if found.errors is not None:
            self.errors = _first(self.errors, found.errors)
        return found

    def formula(self, expr: Expr) -> TimeFunctions:
        if not varies(expr, self.curves):
            return self._constant(expr)
        if isinstance(expr, Column):
            return self.curve(self.curves[expr.name])
        assert isinstance(expr, Call)
        return self._call(expr)

    def _constant(self, expr: Expr) -> TimeFunctions:
        found = self.plain(functions.cast(expr, DOUBLE))
        usable = found.usable
        return constants(np.where(usable, found.data, 0.0), None if usable.all() else usable)

    def _call(self, call: Call) -> TimeFunctions:
        name, args = call.function, call.args
        if name == "cast":
            return self.formula(args[0])
        if name == "/":
            one = functions.resolve("/", [Literal(DOUBLE, False, 1.0), args[1]])
            return self.formula(args[0]).times(self._constant(one))
        if name == "power":
            return self._power(args[0], exponent_of(call))
        if name == DERIVATIVE:
            return self.formula(args[0]).derivative()
        first = self.formula(args[0])
        if name == "neg":
            return first.negative()
        second = self.formula(args[1])
        if name == "*":
            return first.times(second)
        return first.plus(second) if name == "+" else first.minus(second)

    def _power(self, base: Expr, exponent: int) -> TimeFunctions:
        found = constants(np.ones(self.length))
        factor = self.formula(base)
        for _ in range(exponent):
            found = found.times(factor)
        return found

    def bad(self) -> Ints:
        """The rows on which an ordinary part erred."""
        errors = self.errors
        return np.empty(0, np.int64) if errors is None else np.flatnonzero(errors)


def _stacked(columns: Mapping[str, Vector], names: tuple[str, ...]) -> np.ndarray:
    return np.stack([np.asarray(columns[n].data, np.float64) for n in names], axis=1)


def _first(known: Codes | None, found: Codes) -> Codes:
    if known is None:
        return found.copy()
    return np.where(known != 0, known, found)


def masked(valid: Mask | None, length: int) -> Mask:
    return np.ones(length, np.bool_) if valid is None else valid
