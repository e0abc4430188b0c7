"""Spark's `Column` as an expression of the language.

The text that Spark 4 gives of a column, `>(price, 100)`, is neither SQL nor complete: DISTINCT is
missing, and times are not quoted. So its tree of `ColumnNode`s is walked instead. What has no
counterpart (lambdas, Spark's own UDFs, elements of arrays, columns of Spark Connect) is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from pyspark.sql import Column

from thalweg.errors import ConfigError
from thalweg.fluent.calls import Call, when
from thalweg.fluent.expressions import Expression, Ordering, col, lit
from thalweg.fluent.foreign import register
from thalweg.fluent.functions import fn
from thalweg.lang.parsing.fragments import parse_item
from thalweg.lang.syntax import exp

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INFIX: dict[str, Callable[[Expression, Expression], Expression]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "=": lambda a, b: a == b,
    "==": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<=>": lambda a, b: a.same_as(b),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "like": lambda a, b: a.like(b),
    "rlike": lambda a, b: a.rlike(b),
    "&": lambda a, b: a.bit_and(b),
    "|": lambda a, b: a.bit_or(b),
    "^": lambda a, b: a.bit_xor(b),
}
_PREFIX: dict[str, Callable[[Expression], Expression]] = {
    "!": lambda a: ~a,
    "not": lambda a: ~a,
    "~": lambda a: a.bit_not(),
    "negative": lambda a: -a,
    "isnull": lambda a: a.is_null(),
    "isnotnull": lambda a: a.is_not_null(),
}


def column_expression(value: object) -> exp.Expr | None:
    """The expression that a Spark column is; None for anything else."""
    if not isinstance(value, Column):
        return None
    if not hasattr(value, "_jc"):
        raise ConfigError(
            "a column of Spark Connect cannot be read here", remedy="write it as SQL text"
        )
    node = value._jc.node()
    kind = _kind(node)
    if kind == "Alias" and node.name().size() == 1:
        return _expression(node.child()).alias(node.name().apply(0)).node
    return _ordering(node).node if kind == "SortOrder" else _expression(node).node


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _refused(node: Any) -> ConfigError:
    return ConfigError(
        f"the Spark column {node.sql()} has no form in the language", remedy="write it as SQL text"
    )


def _expression(node: Any) -> Expression:
    rule = _RULES.get(_kind(node))
    if rule is None:
        raise _refused(node)
    return rule(node)


def _list(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]


def _attribute(node: Any) -> Expression:
    parts = ["`" + str(p).replace("`", "``") + "`" for p in _list(node.nameParts())]
    if len(parts) > 2:
        raise _refused(node)
    return col(".".join(parts))


def _star(node: Any) -> Expression:
    target = node.unparsedTarget()
    return col(f"{str(target.get()).removesuffix('.*')}.*" if target.isDefined() else "*")


def _literal(node: Any) -> Expression:
    value = node.value()
    if hasattr(value, "getClass"):
        rule = _TIMES.get(str(value.getClass().getName()))
        if rule is None:
            raise _refused(node)
        value = rule(value)
    if isinstance(value, bytes | bytearray):
        raise _refused(node)
    return lit(value)


def _timestamp(value: Any) -> datetime:
    seconds, micros = value.getTime() // 1000, value.getNanos() // 1000
    return _EPOCH + timedelta(seconds=seconds, microseconds=micros)


_TIMES: dict[str, Callable[[Any], Any]] = {
    "java.sql.Timestamp": _timestamp,
    "java.sql.Date": lambda v: date.fromisoformat(v.toString()),
    "java.time.Duration": lambda v: timedelta(
        seconds=v.getSeconds(), microseconds=v.getNano() // 1000
    ),
}


def _function(node: Any) -> Expression:
    if node.isInternal() or node.isUserDefinedFunction():
        raise _refused(node)
    name, args = str(node.functionName()).lower(), [_expression(a) for a in _list(node.arguments())]
    if name in _INFIX and len(args) == 2:
        return _INFIX[name](*args)
    if name in _PREFIX and len(args) == 1:
        return _PREFIX[name](*args)
    if name == "in":
        return args[0].isin(*args[1:])
    if not name.isidentifier():
        raise _refused(node)
    call: Call = getattr(fn, name)(*args)
    return call.distinct() if node.isDistinct() else call


def _cast(node: Any) -> Expression:
    child, type, mode = _expression(node.child()), node.dataType().sql(), node.evalMode()
    tried = mode.isDefined() and "Try" in str(mode.get().getClass().getName())
    return child.try_cast(type) if tried else child.cast(type)


def _case(node: Any) -> Expression:
    first, *others = [(_expression(b._1()), _expression(b._2())) for b in _list(node.branches())]
    case = when(*first)
    for branch in others:
        case = case.when(*branch)
    last = node.otherwise()
    return case.otherwise(_expression(last.get())) if last.isDefined() else case


def _text(node: Any) -> Expression:
    return Expression(parse_item(node.expression()))


def _ordering(node: Any) -> Ordering:
    child = _expression(node.child())
    nulls_first = "NULLS FIRST" in node.nullOrdering().sql()
    descending = "DESC" in node.sortDirection().sql()
    return (child.desc if descending else child.asc)(nulls_first=nulls_first)


def _window(node: Any) -> Expression:
    function, spec = node.windowFunction(), node.windowSpec()
    if spec.frame().isDefined() or _kind(function) != "UnresolvedFunction":
        raise _refused(node)
    call = _expression(function)
    if not isinstance(call, Call):
        raise _refused(node)
    by = [_expression(c) for c in _list(spec.partitionColumns())]
    return _without_flag(call).over(by, [_ordering(s) for s in _list(spec.sortColumns())])


def _without_flag(call: Call) -> Call:
    """`lag(a, 1, NULL, false)`: that NULLs count is what it means here, too."""
    args = call.node.expressions
    if len(args) == 4 and args[3] == exp.false():
        return Call(exp.Anonymous(this=call.node.this, expressions=[a.copy() for a in args[:3]]))
    return call


_RULES: dict[str, Callable[[Any], Expression]] = {
    "UnresolvedAttribute": _attribute,
    "UnresolvedStar": _star,
    "Literal": _literal,
    "UnresolvedFunction": _function,
    "Cast": _cast,
    "CaseWhenOtherwise": _case,
    "SqlExpression": _text,
    "Window": _window,
    "LazyExpression": lambda node: _expression(node.child()),
}

register(column_expression)
