"""The right side of a model: a polynomial in `t` whose coefficients are expressions of the row.

`^` is power here and binds tightest, so that `x + v*t + a*t^2` means what it means in mathematics.
"""

from __future__ import annotations

from typing import Any

from thalweg.lang.syntax import TokenType, exp


def parse_polynomial(c: Any) -> exp.Expr:
    """The tree of a polynomial; powers are calls of `pow`."""
    return c.understood(_sum(c))  # type: ignore[no-any-return]


def _sum(c: Any) -> exp.Expr:
    found = _product(c)
    while True:
        if c._match(TokenType.PLUS):
            found = exp.Add(this=found, expression=_product(c))
        elif c._match(TokenType.DASH):
            found = exp.Sub(this=found, expression=_product(c))
        else:
            return found


def _product(c: Any) -> exp.Expr:
    found = _signed(c)
    while True:
        if c._match(TokenType.STAR):
            found = exp.Mul(this=found, expression=_signed(c))
        elif c._match(TokenType.SLASH):
            found = exp.Div(this=found, expression=_signed(c))
        else:
            return found


def _signed(c: Any) -> exp.Expr:
    if c._match(TokenType.DASH):
        return exp.Neg(this=_signed(c))
    c._match(TokenType.PLUS)
    return _power(c)


def _power(c: Any) -> exp.Expr:
    base = _factor(c)
    if not c._match(TokenType.CARET):
        return base
    return exp.Anonymous(this="pow", expressions=[base, _exponent(c)])


def _exponent(c: Any) -> exp.Expr:
    if c._match(TokenType.DASH):
        return exp.Neg(this=_exponent(c))
    if c._match(TokenType.L_PAREN):
        found = _sum(c)
        c.symbol(TokenType.R_PAREN, ")")
        return found
    found = c._parse_primary()
    if found is None:
        c.unexpected("an exponent")
    return found  # type: ignore[no-any-return]


def _factor(c: Any) -> exp.Expr:
    """A number, a column, a call, or a polynomial in parentheses."""
    if c._match(TokenType.L_PAREN):
        inner = _sum(c)
        c.symbol(TokenType.R_PAREN, ")")
        return exp.Paren(this=inner)
    found = c._parse_unary()
    if found is None:
        c.unexpected("a number, a column or t")
    return found  # type: ignore[no-any-return]
