"""The coefficients of a polynomial in `t`, as expressions of the row."""

from __future__ import annotations

from typing import NoReturn

from thalweg.errors import BindError, TypeMismatch
from thalweg.lang.parsing.select_clauses import SourceBinder
from thalweg.lang.syntax import exp
from thalweg.models.polynomials import MOST_DEGREE
from thalweg.plan import functions
from thalweg.plan.expr import Expr, Literal
from thalweg.plan.types import DOUBLE

TIME_NAME = "t"
Terms = dict[int, Expr]
"""Coefficients by power."""


def coefficients(tree: exp.Expr, binder: SourceBinder) -> tuple[Expr, ...]:
    """Ascending, as many as the degree asks for."""
    terms = _Polynomial(binder).terms(tree)
    degree = max(terms, default=0)
    if degree > MOST_DEGREE:
        binder.fail(
            BindError(
                f"a polynomial of degree {degree}",
                remedy=f"the largest degree is {MOST_DEGREE}: use a model of a lower one",
            ),
            tree,
        )
    return tuple(terms.get(i, _ZERO) for i in range(degree + 1))


def has_time(tree: exp.Expr) -> bool:
    """Whether it reads `t`; a column of that name is written with its source."""
    return any(map(_is_time, tree.find_all(exp.Column)))


def _is_time(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.table and node.name.lower() == TIME_NAME


_ZERO = Literal(DOUBLE, False, 0.0)
_ONE = Literal(DOUBLE, False, 1.0)


class _Polynomial:
    def __init__(self, binder: SourceBinder) -> None:
        self._binder = binder

    def terms(self, node: exp.Expr) -> Terms:
        if isinstance(node, exp.Paren):
            return self.terms(node.this)
        if not has_time(node):
            return {0: self._scalar(node)}
        if _is_time(node):
            return {1: _ONE}
        if isinstance(node, exp.Add):
            return _added(self.terms(node.this), self.terms(node.expression))
        if isinstance(node, exp.Sub):
            return _added(self.terms(node.this), _negative(self.terms(node.expression)))
        if isinstance(node, exp.Neg):
            return _negative(self.terms(node.this))
        if isinstance(node, exp.Mul):
            return _multiplied(self.terms(node.this), self.terms(node.expression))
        if isinstance(node, exp.Div):
            return self._divided(node)
        if isinstance(node, exp.Anonymous) and str(node.this).lower() in ("pow", "power"):
            return self._power(node)
        self._refuse("t stands inside something that is no polynomial", node)

    def _scalar(self, node: exp.Expr) -> Expr:
        bound = self._binder.scalar(node)
        if not bound.type.is_numeric:
            self._binder.fail(
                TypeMismatch(
                    f"a coefficient of a model must be a number, this is {bound.type}",
                    remedy="CAST(... AS DOUBLE), or model another column",
                ),
                node,
            )
        return functions.cast(bound, DOUBLE)

    def _divided(self, node: exp.Div) -> Terms:
        if has_time(node.expression):
            self._refuse("a model may not divide by t", node)
        by = self._scalar(node.expression)
        return {i: functions.resolve("/", [e, by]) for i, e in self.terms(node.this).items()}

    def _power(self, node: exp.Anonymous) -> Terms:
        base, exponent = node.expressions
        wanted = self._exponent(exponent)
        if wanted > MOST_DEGREE:
            self._refuse(f"the exponent {wanted} is too large", node)
        found: Terms = {0: _ONE}
        factor = self.terms(base)
        for _ in range(wanted):
            found = _multiplied(found, factor)
        return found

    def _exponent(self, node: exp.Expr) -> int:
        text = node.name if isinstance(node, exp.Literal) else ""
        if not text.isdigit():
            self._refuse("exponents of t are whole numbers from 0 on", node)
        return int(text)

    def _refuse(self, what: str, node: exp.Expr) -> NoReturn:
        self._binder.fail(
            BindError(
                what,
                remedy="a model is a polynomial: t, numbers and expressions of the row, with +, -, "
                f"*, and t^k for k from 0 to {MOST_DEGREE}",
            ),
            node,
        )


def _added(left: Terms, right: Terms) -> Terms:
    found = dict(left)
    for power, term in right.items():
        found[power] = functions.resolve("+", [found[power], term]) if power in found else term
    return found


def _negative(terms: Terms) -> Terms:
    return {power: functions.resolve("neg", [term]) for power, term in terms.items()}


def _multiplied(left: Terms, right: Terms) -> Terms:
    found: Terms = {}
    for i, a in left.items():
        for j, b in right.items():
            found = _added(found, {i + j: _product(a, b)})
    return found


def _product(left: Expr, right: Expr) -> Expr:
    if left == _ONE:
        return right
    return left if right == _ONE else functions.resolve("*", [left, right])
