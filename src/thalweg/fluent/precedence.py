"""How close operators bind, and parentheses where that has to be said.

Parentheses are part of the parser's trees. They are put where an operand binds looser than its
place asks for, so that the text of an expression is always read back as the same tree.
"""

from __future__ import annotations

from functools import cache

from thalweg.lang.parsing.fragments import parse_expression
from thalweg.lang.syntax import exp

OR, AND, NOT, COMPARISON, BITS, SUM, PRODUCT, SIGN, ATOM = range(1, 10)
_LEVELS: dict[type[exp.Expr], int] = {
    exp.Or: OR,
    exp.And: AND,
    exp.Not: NOT,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), COMPARISON),
    **dict.fromkeys((exp.NullSafeEQ, exp.Is, exp.In, exp.Between), COMPARISON),
    **dict.fromkeys((exp.Like, exp.RegexpLike), COMPARISON),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.DPipe), BITS),
    **dict.fromkeys((exp.Add, exp.Sub), SUM),
    **dict.fromkeys((exp.Mul, exp.Div, exp.Mod, exp.IntDiv), PRODUCT),
    **dict.fromkeys((exp.Neg, exp.BitwiseNot), SIGN),
    **dict.fromkeys((exp.Column, exp.Star, exp.Literal, exp.Boolean, exp.Null), ATOM),
    **dict.fromkeys((exp.Anonymous, exp.Filter, exp.Window, exp.WithinGroup), ATOM),
    **dict.fromkeys((exp.Paren, exp.Cast, exp.TryCast, exp.Case, exp.If, exp.Extract), ATOM),
    **dict.fromkeys((exp.Subquery, exp.Exists, exp.Interval), ATOM),
}


def tied(node: exp.Expr, level: int) -> exp.Expr:
    """A tree that binds at least as close as `level`."""
    return node if _LEVELS.get(type(node), 0) >= level else exp.Paren(this=node)


def infix(symbol: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """An operator between two operands."""
    node = _pattern(f"a {symbol} b").copy()
    level = _LEVELS[type(node)]
    chains = level != COMPARISON
    first = tied(left, level if chains else level + 1)
    # sqlglot reads INTERVAL '1' DAY + 2 as a sum of two intervals
    node.set("this", exp.Paren(this=first) if _ends_in_interval(first) else first)
    node.set("expression", tied(right, level + 1))
    node.meta.clear()
    return node


@cache
def _pattern(text: str) -> exp.Expr:
    """What the parser makes of an operator between `a` and `b`."""
    return parse_expression(text)


def _ends_in_interval(node: exp.Expr) -> bool:
    while isinstance(node, exp.Binary | exp.Neg | exp.BitwiseNot):
        node = node.expression if isinstance(node, exp.Binary) else node.this
    return isinstance(node, exp.Interval)
