"""Arithmetic, comparison and logic.

DECIMAL is carried, compared and cast exactly; arithmetic on it is done in DOUBLE.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.expr import Call, Expr, Literal
from thalweg.plan.functions.casting import cast, coerced, common_type, implicit
from thalweg.plan.functions.signature import (
    define,
    divisor_raises,
    make,
    mismatch,
)
from thalweg.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
)


def _overflows(call: Call) -> bool:
    return not call.type.is_float


def binary(name: str, args: Sequence[Expr]) -> tuple[Expr, Expr]:
    if len(args) != 2:
        raise mismatch(name, args)
    return args[0], args[1]


def unified(name: str, args: Sequence[Expr]) -> tuple[list[Expr], DataType]:
    """The arguments cast to their common type."""
    wanted = common_type(a.type for a in args)
    if wanted is None:
        raise mismatch(name, args)
    return [coerced(a, wanted) for a in args], wanted


def ordered(name: str, args: Sequence[Expr]) -> tuple[list[Expr], DataType]:
    """The arguments cast to their common type, of which one value is less than another."""
    fitted, wanted = unified(name, args)
    if not wanted.is_ordered:
        raise mismatch(name, args)
    return fitted, wanted


def numbers(name: str, args: Sequence[Expr]) -> tuple[list[Expr], DataType]:
    """The arguments cast to one type arithmetic runs in."""
    texts = [a.type == STRING for a in args]
    wanted = common_type(a.type for a in args)
    if wanted == NULL:
        wanted = DOUBLE
    if all(texts) or wanted is None or not wanted.is_numeric:
        raise mismatch(name, args)
    if wanted.name == "DECIMAL":
        wanted = DOUBLE
    return [coerced(a, wanted) for a in args], wanted


_ARITHMETIC = "two numbers, or TIMESTAMP/DATE/INTERVAL with INTERVAL"


@define("+", usage=_ARITHMETIC, raises=_overflows)
def _plus(name: str, args: Sequence[Expr]) -> Expr:
    left, right = binary(name, args)
    if left.type in (INTERVAL, INT) and right.type in (TIMESTAMP, DATE):
        left, right = right, left
    return _shifted("+", left, right) or _arithmetic("+", args)


@define("-", usage=_ARITHMETIC + ", or TIMESTAMP with TIMESTAMP", raises=_overflows)
def _minus(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) == 1:
        return _negative("neg", args)
    left, right = binary(name, args)
    times = (DATE, TIMESTAMP)
    if left.type in times and right.type in times:
        moments = [cast(left, TIMESTAMP), cast(right, TIMESTAMP)]
        return make("-", INTERVAL, moments)
    return _shifted("-", left, right) or _arithmetic("-", args)


def _shifted(name: str, left: Expr, right: Expr) -> Expr | None:
    """A time or interval moved by an interval, or a date by whole days."""
    if left.type == DATE and (right.type.is_integer and right.type != BIGINT):
        days = cast(right, INT)
        return make("date_add" if name == "+" else "date_sub", DATE, [left, days])
    if right.type != INTERVAL:
        return None
    if left.type in (TIMESTAMP, DATE):
        return make(name, TIMESTAMP, [cast(left, TIMESTAMP), right])
    if left.type in (INTERVAL, NULL):
        return make(name, INTERVAL, [cast(left, INTERVAL), right])
    return None


def _arithmetic(name: str, args: Sequence[Expr]) -> Expr:
    fitted, wanted = numbers(name, args)
    return make(name, wanted, fitted)


@define("*", usage="two numbers, or INTERVAL and a number", raises=_overflows)
def _times(name: str, args: Sequence[Expr]) -> Expr:
    left, right = binary(name, args)
    if right.type == INTERVAL:
        left, right = right, left
    if left.type == INTERVAL:
        return _scaled("*", left, right)
    return _arithmetic("*", args)


@define("/", usage="two numbers, or INTERVAL and a number", raises=divisor_raises)
def _divide(name: str, args: Sequence[Expr]) -> Expr:
    left, right = binary(name, args)
    if left.type == INTERVAL:
        return _scaled("/", left, right)
    fitted, _ = numbers(name, args)
    return make(name, DOUBLE, [cast(a, DOUBLE) for a in fitted])


def _scaled(name: str, interval: Expr, factor: Expr) -> Expr:
    """The product; `factor` stays a whole number if it is one: no microsecond gets lost."""
    if not (factor.type.is_numeric or factor.type in (NULL, STRING)):
        raise mismatch(name, [interval, factor])
    wanted = BIGINT if factor.type.is_integer else DOUBLE
    return make(name, INTERVAL, [interval, cast(factor, wanted)])


@define("%", "pmod", usage="two numbers", raises=divisor_raises)
def _remainder(name: str, args: Sequence[Expr]) -> Expr:
    binary(name, args)
    return _arithmetic(name, args)


@define("div", usage="two whole numbers", raises=divisor_raises)
def _whole_division(name: str, args: Sequence[Expr]) -> Expr:
    binary(name, args)
    fitted, wanted = numbers(name, args)
    if not wanted.is_integer and any(a.type != NULL for a in args):
        raise mismatch(name, args)
    return make(name, BIGINT, [cast(a, BIGINT) for a in fitted])


@define("neg", "abs", usage="a number or an INTERVAL", raises=_overflows)
def _negative(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 1:
        raise mismatch(name, args)
    if name == "neg" and isinstance(args[0], Literal) and args[0].type.is_integer:
        return _negated(args[0])
    if args[0].type == INTERVAL:
        return make(name, INTERVAL, args)
    if args[0].type == STRING:
        args = [cast(args[0], DOUBLE)]
    fitted, wanted = numbers(name, args)
    return make(name, wanted, fitted)


def _negated(literal: Literal) -> Literal:
    """The negation; `-1` is a constant, so that it may stand where only constants may."""
    value = None if literal.value is None else -literal.value
    return Literal(literal.type, literal.nullable, value)


@define("&", "|", "^", "~", usage="whole numbers")
def _bits(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != (1 if name == "~" else 2):
        raise mismatch(name, args)
    fitted, wanted = numbers(name, args)
    if not wanted.is_integer:
        raise mismatch(name, args)
    return make(name, wanted, fitted)


@define("=", "<>", usage="two values of one type")
def _equal(name: str, args: Sequence[Expr]) -> Expr:
    binary(name, args)
    fitted, _ = unified(name, args)
    return make(name, BOOLEAN, fitted)


@define("<", "<=", ">", ">=", usage="two values of one type that has an order; arrays have none")
def _compare(name: str, args: Sequence[Expr]) -> Expr:
    binary(name, args)
    fitted, _ = ordered(name, args)
    return make(name, BOOLEAN, fitted)


@define("<=>", usage="two values of one type")
def _same(name: str, args: Sequence[Expr]) -> Expr:
    binary(name, args)
    fitted, _ = unified(name, args)
    return make(name, BOOLEAN, fitted, nullable=False)


@define("in", usage="a value and at least one candidate of its type")
def _member(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) < 2:
        raise mismatch(name, args)
    fitted, _ = unified(name, args)
    return make(name, BOOLEAN, fitted)


@define("between", usage="a value and two bounds of its type")
def _between(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 3:
        raise mismatch(name, args)
    value, low, high = args
    return _connective("and", [_compare(">=", [value, low]), _compare("<=", [value, high])])


@define("and", "or", usage="two conditions")
def _connective(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) < 2:
        raise mismatch(name, args)
    fitted = [condition(name, a, args) for a in args]
    joined = fitted[0]
    for other in fitted[1:]:
        joined = make(name, BOOLEAN, [joined, other])
    return joined


@define("not", usage="a condition")
def _not(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 1:
        raise mismatch(name, args)
    return make(name, BOOLEAN, [condition(name, args[0], args)])


def condition(name: str, expr: Expr, args: Sequence[Expr]) -> Expr:
    """The expression as a condition."""
    allowed = (BOOLEAN, NULL, STRING) if name in ("and", "or", "not") else (BOOLEAN, NULL)
    if expr.type not in allowed:
        raise mismatch(name, args)
    return coerced(expr, BOOLEAN)


@define("is_null", "is_not_null", usage="one value")
def _is_null(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 1:
        raise mismatch(name, args)
    return make(name, BOOLEAN, args, nullable=False)


@define("||", "concat", usage="values that have a text")
def _concat(name: str, args: Sequence[Expr]) -> Expr:
    if not args:
        return Literal(STRING, False, "")
    if all(a.type == BINARY for a in args):
        return make("concat", BINARY, args)
    fitted = [implicit(a, STRING) for a in args]
    if None in fitted:
        raise mismatch(name, args)
    return make("concat", STRING, [a for a in fitted if a is not None])
