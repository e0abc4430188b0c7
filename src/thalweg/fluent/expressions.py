"""Expressions: operators and methods that build the trees the parser would give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from thalweg.errors import ConfigError, ParseError, TypeMismatch
from thalweg.fluent.foreign import SparkColumn, converted
from thalweg.fluent.literals import Value, is_value, literal
from thalweg.fluent.names import column, identifier
from thalweg.fluent.precedence import ATOM, BITS, COMPARISON, infix, tied
from thalweg.fluent.text import expression_text
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.fragments import parse_expression, parse_item, parse_ordering
from thalweg.lang.syntax import exp


class Subquery(ABC):
    """A built query, as an expression sees it."""

    __slots__ = ()

    @property
    @abstractmethod
    def tree(self) -> ast.Query:
        """The query as the parser would give it, but for places in a text."""


def _operator(symbol: str, doc: str | None = None) -> Callable[[Expression, Operand], Expression]:
    """The method that an infix operator is."""

    def operator(self: Expression, other: Operand) -> Expression:
        return _infix(symbol, self, other)

    operator.__doc__ = doc
    return operator


def _reflected(symbol: str) -> Callable[[Expression, Operand], Expression]:
    """The same, if what stands before it is a plain value."""

    def operator(self: Expression, other: Operand) -> Expression:
        return _infix(symbol, other, self)

    return operator


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

    __eq__ = _operator("=")  # type: ignore[assignment]
    __ne__ = _operator("<>")  # type: ignore[assignment]
    __lt__ = _operator("<")
    __le__ = _operator("<=")
    __gt__ = _operator(">")
    __ge__ = _operator(">=")
    same_as = _operator("<=>", "`<=>`: equal, NULL being equal to NULL.")

    def is_null(self) -> Expression:
        return Expression(exp.Is(this=_operand(self, BITS), expression=exp.Null()))

    def is_not_null(self) -> Expression:
        return ~self.is_null()

    def is_true(self) -> Expression:
        return Expression(exp.Is(this=_operand(self, BITS), expression=exp.Boolean(this=True)))

    def is_false(self) -> Expression:
        return Expression(exp.Is(this=_operand(self, BITS), expression=exp.Boolean(this=False)))

    def isin(self, *values: Operand | Iterable[Operand] | Subquery) -> Expression:
        """Whether the value is one of these (one by one or in one list), or in the answer of a
        built query of one column."""
        this = _operand(self, BITS)
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
        low_node, high_node = _operand(low, BITS), _operand(high, BITS)
        return Expression(exp.Between(this=_operand(self, BITS), low=low_node, high=high_node))

    def like(self, pattern: Operand) -> Expression:
        """`%` stands for any text, `_` for any character."""
        return _infix("LIKE", self, pattern)

    def rlike(self, pattern: Operand) -> Expression:
        """Whether a regular expression is found in the text."""
        return _infix("RLIKE", self, pattern)

    # -- boolean -----------------------------------------------------------------------------

    __and__ = _operator("AND")
    __rand__ = _reflected("AND")
    __or__ = _operator("OR")
    __ror__ = _reflected("OR")

    def __invert__(self) -> Expression:
        return Expression(exp.Not(this=_operand(self, COMPARISON)))

    # -- arithmetic --------------------------------------------------------------------------

    __add__ = _operator("+")
    __radd__ = _reflected("+")
    __sub__ = _operator("-")
    __rsub__ = _reflected("-")
    __mul__ = _operator("*")
    __rmul__ = _reflected("*")
    __truediv__ = _operator("/")
    __rtruediv__ = _reflected("/")
    __mod__ = _operator("%")
    __rmod__ = _reflected("%")
    div = _operator("DIV", "Division of whole numbers, towards zero (unlike Python's `//`).")
    concat = _operator("||", "`||`: this text followed by the other.")
    bit_and = _operator("&")
    bit_or = _operator("|")
    bit_xor = _operator("^")

    def __neg__(self) -> Expression:
        return Expression(exp.Neg(this=_operand(self, ATOM)))

    def bit_not(self) -> Expression:
        return Expression(exp.BitwiseNot(this=_operand(self, ATOM)))

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


def _infix(symbol: str, left: Operand, right: Operand) -> Expression:
    return Expression(infix(symbol, scalar(left), scalar(right)))


def _operand(value: object, level: int) -> exp.Expr:
    return tied(scalar(value), level)


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


def listed(given: Any) -> tuple[Any, ...]:
    """One key, or several."""
    several = isinstance(given, list | tuple)
    return tuple(given) if several else (given,)


def _spread(values: tuple[Any, ...]) -> list[Any]:
    if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset | range):
        return list(values[0])
    return list(values)
