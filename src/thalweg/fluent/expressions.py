"""Expressions: operators and methods that build the trees the parser would give.

Parentheses are part of such a tree. They are put where the operand binds looser than its place
asks for, so that the text of an expression is always read back as the same tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn, cast

from sqlglot import exp

from thalweg.errors import ConfigError, ParseError, TypeMismatch
from thalweg.fluent.foreign import SparkColumn, converted
from thalweg.fluent.literals import Value, is_value, literal
from thalweg.fluent.names import column, identifier
from thalweg.fluent.text import expression_text
from thalweg.lang import ast
from thalweg.lang.fragments import parse_expression, parse_item, parse_ordering

_OR, _AND, _NOT, _COMPARISON, _BITS, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 10)
_LEVELS: dict[type[exp.Expr], int] = {
    exp.Or: _OR,
    exp.And: _AND,
    exp.Not: _NOT,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _COMPARISON),
    **dict.fromkeys((exp.NullSafeEQ, exp.Is, exp.In, exp.Between), _COMPARISON),
    **dict.fromkeys((exp.Like, exp.RegexpLike), _COMPARISON),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.DPipe), _BITS),
    **dict.fromkeys((exp.Add, exp.Sub), _SUM),
    **dict.fromkeys((exp.Mul, exp.Div, exp.Mod, exp.IntDiv), _PRODUCT),
    **dict.fromkeys((exp.Neg, exp.BitwiseNot), _SIGN),
    **dict.fromkeys((exp.Column, exp.Star, exp.Literal, exp.Boolean, exp.Null), _ATOM),
    **dict.fromkeys((exp.Anonymous, exp.Filter, exp.Window, exp.WithinGroup), _ATOM),
    **dict.fromkeys((exp.Paren, exp.Cast, exp.TryCast, exp.Case, exp.If, exp.Extract), _ATOM),
    **dict.fromkeys((exp.Subquery, exp.Exists, exp.Interval), _ATOM),
}


class Subquery(ABC):
    """A built query, as an expression sees it."""

    __slots__ = ()

    @property
    @abstractmethod
    def tree(self) -> ast.Query:
        """The query as the parser would give it, but for places in a text."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """Something with a value per row. Operators combine expressions; plain values become constants.

    >>> from thalweg import col
    >>> (col("price") - col("open")) / col("open") > 0.05
    (price - open) / open > 0.05
    """

    node: exp.Expr

    def sql(self) -> str:
        """The text of the expression."""
        return expression_text(self.node)

    def __repr__(self) -> str:
        return self.sql()

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self.sql()} has no truth value here: it has one per row. Write & for and, | for or, "
            "~ for not (with parentheses: (a > 1) & (b > 2)), .between(x, y) for x <= a <= y, and "
            ".isin(...) for in"
        )

    # -- comparison --------------------------------------------------------------------------

    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]
        return _infix("=", self, other)

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]
        return _infix("<>", self, other)

    def __lt__(self, other: Operand) -> Expression:
        return _infix("<", self, other)

    def __le__(self, other: Operand) -> Expression:
        return _infix("<=", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return _infix(">", self, other)

    def __ge__(self, other: Operand) -> Expression:
        return _infix(">=", self, other)

    def same_as(self, other: Operand) -> Expression:
        """`<=>`: equal, NULL being equal to NULL."""
        return _infix("<=>", self, other)

    def is_null(self) -> Expression:
        return Expression(exp.Is(this=_operand(self, _BITS), expression=exp.Null()))

    def is_not_null(self) -> Expression:
        return ~self.is_null()

    def is_true(self) -> Expression:
        return Expression(exp.Is(this=_operand(self, _BITS), expression=exp.Boolean(this=True)))

    def is_false(self) -> Expression:
        return Expression(exp.Is(this=_operand(self, _BITS), expression=exp.Boolean(this=False)))

    def isin(self, *values: Operand | Iterable[Operand] | Subquery) -> Expression:
        """Whether the value is one of these (one by one or in one list), or in the answer of a
        built query of one column."""
        this = _operand(self, _BITS)
        if len(values) == 1 and isinstance(values[0], Subquery):
            node = exp.In(this=this)
            node.meta["query"] = values[0].tree
            return Expression(node)
        given = _spread(values)
        if not given:
            raise ConfigError(
                f"{self.sql()}.isin() has nothing to look in", remedy="write lit(False)"
            )
        return Expression(exp.In(this=this, expressions=[scalar(v) for v in given]))

    def between(self, low: Operand, high: Operand) -> Expression:
        """From `low` to `high`, both included."""
        low_node, high_node = _operand(low, _BITS), _operand(high, _BITS)
        return Expression(exp.Between(this=_operand(self, _BITS), low=low_node, high=high_node))

    def like(self, pattern: Operand) -> Expression:
        """`%` stands for any text, `_` for any character."""
        return _infix("LIKE", self, pattern)

    def rlike(self, pattern: Operand) -> Expression:
        """Whether a regular expression is found in the text."""
        return _infix("RLIKE", self, pattern)

    # -- boolean -----------------------------------------------------------------------------

    def __and__(self, other: Operand) -> Expression:
        return _infix("AND", self, other)

    def __rand__(self, other: Operand) -> Expression:
        return _infix("AND", other, self)

    def __or__(self, other: Operand) -> Expression:
        return _infix("OR", self, other)

    def __ror__(self, other: Operand) -> Expression:
        return _infix("OR", other, self)

    def __invert__(self) -> Expression:
        return Expression(exp.Not(this=_operand(self, _COMPARISON)))

    # -- arithmetic --------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Expression:
        return _infix("+", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return _infix("+", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return _infix("-", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return _infix("-", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return _infix("*", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return _infix("*", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return _infix("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return _infix("/", other, self)

    def __mod__(self, other: Operand) -> Expression:
        return _infix("%", self, other)

    def __rmod__(self, other: Operand) -> Expression:
        return _infix("%", other, self)

    def __neg__(self) -> Expression:
        return Expression(exp.Neg(this=_operand(self, _ATOM)))

    def div(self, other: Operand) -> Expression:
        """Division of whole numbers, towards zero (unlike Python's `//`)."""
        return _infix("DIV", self, other)

    def concat(self, other: Operand) -> Expression:
        """`||`: this text followed by the other."""
        return _infix("||", self, other)

    def bit_and(self, other: Operand) -> Expression:
        return _infix("&", self, other)

    def bit_or(self, other: Operand) -> Expression:
        return _infix("|", self, other)

    def bit_xor(self, other: Operand) -> Expression:
        return _infix("^", self, other)

    def bit_not(self) -> Expression:
        return Expression(exp.BitwiseNot(this=_operand(self, _ATOM)))

    # -- types, names, order -----------------------------------------------------------------

    def cast(self, type: str) -> Expression:
        """The value as another type; a row on which that fails is rejected.

        >>> from thalweg import col
        >>> col("price").cast("BIGINT")
        CAST(price AS BIGINT)
        """
        return _cast("CAST", self, type)

    def try_cast(self, type: str) -> Expression:
        """The value as another type, NULL where that fails."""
        return _cast("TRY_CAST", self, type)

    def alias(self, name: str) -> Aliased:
        """The expression under a name, as an item of SELECT."""
        return Aliased(exp.Alias(this=self.node.copy(), alias=identifier(name)))

    def asc(self, *, nulls_first: bool = True) -> Ordering:
        """The expression as a key of ORDER BY, the least value first."""
        return Ordering(exp.Ordered(this=self.node.copy(), nulls_first=nulls_first))

    def desc(self, *, nulls_first: bool = False) -> Ordering:
        """The expression as a key of ORDER BY, the greatest value first."""
        return Ordering(exp.Ordered(this=self.node.copy(), desc=True, nulls_first=nulls_first))


Operand = Expression | Value | SparkColumn


class Call(Expression):
    """The call of a function. The methods are for aggregates, and `over` for functions that look
    at other rows."""

    __slots__ = ()

    def distinct(self) -> Call:
        """Each value once: `count(DISTINCT x)`."""
        call = self._plain("distinct()")
        call.set("expressions", [exp.Distinct(expressions=call.expressions)])
        return Call(call)

    def filter(self, where: Condition) -> Call:
        """Only the rows for which a condition holds."""
        return Call(exp.Filter(this=self.node.copy(), expression=exp.Where(this=condition(where))))

    def within_group(self, order_by: Key) -> Call:
        """The values in this order: `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`."""
        order = exp.Order(expressions=[ordering(order_by)])
        return Call(exp.WithinGroup(this=self._plain("within_group()"), expression=order))

    def over(
        self, partition_by: Key | Iterable[Key] = (), order_by: Key | Iterable[Key] = ()
    ) -> Expression:
        """For lag, lead and row_number: among the rows of the stream with equal `partition_by`.

        >>> from thalweg import col, fn
        >>> fn.lag(col("price")).over(partition_by="sym", order_by="ts")
        lag(price) OVER (PARTITION BY sym ORDER BY ts)
        """
        window = exp.Window(this=self._plain("over()"), over="OVER")
        by = [condition(cast(Condition, key)) for key in _listed(partition_by)]
        keys = [ordering(key) for key in _listed(order_by)]
        if by:
            window.set("partition_by", by)
        if keys:
            window.set("order", exp.Order(expressions=keys))
        return Expression(window)

    def _plain(self, method: str) -> exp.Anonymous:
        if not isinstance(self.node, exp.Anonymous):
            raise ConfigError(
                f"{self.sql()} cannot be followed by {method}",
                remedy=f"let {method} stand directly after the function",
            )
        return self.node.copy()


class Case(Expression):
    """CASE WHEN ... THEN ...; without `otherwise`, NULL where no condition holds."""

    __slots__ = ()

    def when(self, where: Condition, value: Operand) -> Case:
        """And where this holds (and nothing before), this value."""
        case = self.node.copy()
        branch = exp.If(this=condition(where), true=scalar(value))
        case.set("ifs", [*case.args.get("ifs", ()), branch])
        return Case(case)

    def otherwise(self, value: Operand) -> Expression:
        """And where no condition holds, this value."""
        case = self.node.copy()
        case.set("default", scalar(value))
        return Expression(case)


@dataclass(frozen=True, slots=True)
class Aliased:
    """An expression with a name: an item of SELECT."""

    node: exp.Expr

    def __repr__(self) -> str:
        return expression_text(self.node)


@dataclass(frozen=True, slots=True)
class Ordering:
    """An expression with a direction: a key of ORDER BY."""

    node: exp.Expr

    def __repr__(self) -> str:
        return expression_text(self.node)


Condition = Expression | str | bool | SparkColumn
"""A string is text of the language."""
Item = Expression | Aliased | Value | SparkColumn
"""An item of SELECT; a string is text of the language."""
Key = Expression | Ordering | str | SparkColumn
"""A key of ORDER BY; a string is text of the language."""


# -- what one begins with ----------------------------------------------------------------------


def col(name: str) -> Expression:
    """A column: `col("price")`, `col("t.price")`, `col("*")` or `col("t.*")`.

    >>> col("t.price"), col("unit price"), col("`a.b`")
    (t.price, `unit price`, `a.b`)
    """
    return Expression(column(name))


def lit(value: Value) -> Expression:
    """A constant, for where a string would be read as text of the language.

    >>> from datetime import timedelta
    >>> lit("it's"), lit(None), lit(timedelta(minutes=90))
    ('it\\'s', NULL, INTERVAL '90' MINUTES)
    """
    if not is_value(value):
        raise ConfigError(
            f"{value!r} of type {type(value).__name__} is no constant",
            remedy="use a number, text, bool, None, datetime, date, timedelta or Decimal",
        )
    return Expression(literal(value))


def sql(text: str) -> Expression:
    """An expression from text of the language, for where a string would be a value.

    >>> col("qty") + sql("coalesce(extra, 0) * 2")
    qty + coalesce(extra, 0) * 2
    """
    return Expression(parse_expression(text))


def when(where: Condition, value: Operand) -> Case:
    """The first branch of a CASE.

    >>> when(col("price") > 100, "high").when("price > 10", "middle").otherwise("low")
    CASE WHEN price > 100 THEN 'high' WHEN price > 10 THEN 'middle' ELSE 'low' END
    """
    return Case(exp.Case(ifs=[exp.If(this=condition(where), true=scalar(value))]))


# -- what is given, as trees -------------------------------------------------------------------


def scalar(value: object) -> exp.Expr:
    """An operand; a string is a constant."""
    if isinstance(value, Expression):
        return value.node.copy()
    if isinstance(value, Subquery):
        raise ConfigError(
            "a query is no value", remedy="join it, or ask col('x').isin(query) by itself"
        )
    if is_value(value):
        return literal(cast(Value, value))
    node = value.node if isinstance(value, Aliased | Ordering) else converted(value)
    if isinstance(node, exp.Alias | exp.Ordered):
        what = "a name" if isinstance(node, exp.Alias) else "a direction"
        raise ConfigError(
            f"{expression_text(node)} has {what} already, so nothing can be done with it",
            remedy="let .alias(), .asc() and .desc() stand last",
        )
    return node


def _is_foreign(value: object) -> bool:
    own = isinstance(value, Expression | Aliased | Ordering | Subquery)
    return not own and not is_value(value)


def condition(value: Condition) -> exp.Expr:
    """A condition or a key; a string is text of the language."""
    return parse_expression(value) if isinstance(value, str) else scalar(value)


def item(value: Item) -> exp.Expr:
    """An item of SELECT; a string is text of the language."""
    if isinstance(value, Aliased):
        return value.node.copy()
    if isinstance(value, str):
        return parse_item(value)
    if _is_foreign(value) and isinstance(found := converted(value), exp.Alias):
        return found
    return scalar(value)


def ordering(value: Key) -> exp.Expr:
    """A key of ORDER BY; a string is text of the language."""
    if isinstance(value, Ordering):
        return value.node.copy()
    if isinstance(value, str):
        return parse_ordering(value)
    if _is_foreign(value) and isinstance(found := converted(value), exp.Ordered):
        return found
    return exp.Ordered(this=scalar(value), nulls_first=True)


def all_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    """The conditions, of which there is at least one, joined by AND."""
    first, *others = (Expression(c) for c in conditions)
    for other in others:
        first = first & other
    return first.node


# -- operators ---------------------------------------------------------------------------------


@cache
def _pattern(text: str) -> exp.Expr:
    """What the parser makes of an operator between `a` and `b`."""
    return parse_expression(text)


def _infix(symbol: str, left: Operand, right: Operand) -> Expression:
    node = _pattern(f"a {symbol} b").copy()
    level = _LEVELS[type(node)]
    chains = level != _COMPARISON
    first = _operand(left, level if chains else level + 1)
    # sqlglot reads INTERVAL '1' DAY + 2 as a sum of two intervals
    node.set("this", exp.Paren(this=first) if _ends_in_interval(first) else first)
    node.set("expression", _operand(right, level + 1))
    node.meta.clear()
    return Expression(node)


def _ends_in_interval(node: exp.Expr) -> bool:
    while isinstance(node, exp.Binary | exp.Neg | exp.BitwiseNot):
        node = node.expression if isinstance(node, exp.Binary) else node.this
    return isinstance(node, exp.Interval)


def _operand(value: object, level: int) -> exp.Expr:
    """A tree that binds at least as close as `level`."""
    node = scalar(value)
    return node if _LEVELS.get(type(node), 0) >= level else exp.Paren(this=node)


def _cast(word: str, value: Expression, type: str) -> Expression:
    try:
        node = parse_expression(f"{word}(a AS {type})")
    except ParseError:
        node = exp.Null()
    if not isinstance(node, exp.Cast) or not isinstance(node.this, exp.Column):
        raise TypeMismatch(
            f"{type!r} is not a type", remedy="use BOOLEAN, BIGINT, DOUBLE, STRING, TIMESTAMP, ..."
        )
    node = node.copy()
    node.set("this", value.node.copy())
    return Expression(node)


def _listed(given: Any) -> tuple[Any, ...]:
    """One key, or several."""
    several = isinstance(given, list | tuple)
    return tuple(given) if several else (given,)


def _spread(values: tuple[Any, ...]) -> list[Any]:
    if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset | range):
        return list(values[0])
    return list(values)
