"""The slow, obvious evaluator of bound expressions over one row.

Semantics are Spark SQL's under ANSI, time zone UTC. Values are Python's: None for NULL, TIMESTAMP
and INTERVAL as int µs, DATE as int days since 1970. What Spark would raise is a `RowError`.

Where the order of evaluation could show, it must not: `AND` is false if either side is false even
if the other fails, `OR` dually; `CASE`, `IF`, `COALESCE` and `NANVL` evaluate only what they return
and the conditions before it; every other function fails if any argument fails, even beside a NULL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from thalweg.plan.expr import Call, Column, Expr, Literal, UserCall
from thalweg.plan.types import to_arrow
from thalweg.plan.values import order_key
from thalweg.testing.casts import (
    DAY,
    DIVISION_BY_ZERO,
    OVERFLOW,
    SECOND,
    WIDE,
    RowError,
    cast,
    civil,
    days_from_civil,
    fit,
)
from thalweg.testing.compare import column_values
from thalweg.testing.functions import FUNCTIONS, SEES_NULL

__all__ = ["NO_FUNCTIONS", "RowError", "evaluate"]

_WIDEST = Context(prec=1200, rounding=ROUND_HALF_UP)
NO_FUNCTIONS: Mapping[str, Any] = MappingProxyType({})

Evaluate = Callable[[Expr], Any]


def evaluate(
    expr: Expr, row: Mapping[str, Any], functions: Mapping[str, Any] = NO_FUNCTIONS
) -> Any:
    """The value of an expression on a row; raises `RowError` if it has none."""
    if isinstance(expr, Column):
        return row[expr.name]
    if isinstance(expr, Literal):
        return expr.value

    def value_of(part: Expr) -> Any:
        return evaluate(part, row, functions)

    if isinstance(expr, UserCall):
        return _user_call(expr, [value_of(a) for a in expr.args], functions)
    if isinstance(expr, Call):
        return _call(expr, value_of)
    raise TypeError(f"{expr} has no value on a single row")


def _call(call: Call, value_of: Evaluate) -> Any:
    if call.function in _LAZY:
        return _LAZY[call.function](call, value_of)
    values = [value_of(a) for a in call.args]
    if call.function in _NULL_AWARE:
        return _NULL_AWARE[call.function](*values)
    if call.function not in _STRICT:
        raise TypeError(f"the reference does not know the function {call.function}")
    if any(v is None for v in values):
        return None
    return fit(_STRICT[call.function](call, *values), call.type)


def _user_call(call: UserCall, values: list[Any], functions: Mapping[str, Any]) -> Any:
    registered = functions[call.name]
    try:
        if registered.vectorized:
            columns = zip(values, call.args, strict=True)
            result = registered.function(*(pa.array([v], to_arrow(a.type)) for v, a in columns))
        else:
            result = pa.array([registered.function(*values)], to_arrow(call.type))
        return column_values(result.cast(to_arrow(call.type)))[0]
    except Exception as error:
        raise RowError(f"{type(error).__name__}: {error}") from error


# --- functions that decide themselves which arguments they evaluate


def _connective(decisive: bool) -> Callable[[Call, Evaluate], bool | None]:
    """AND (False decides) and OR (True decides): a decisive side wins over any error."""

    def connect(call: Call, value_of: Evaluate) -> bool | None:
        values: list[Any] = []
        failed: RowError | None = None
        for arg in call.args:
            try:
                values.append(value_of(arg))
            except RowError as error:
                failed = failed or error
        if decisive in values:
            return decisive
        if failed:
            raise failed
        return None if None in values else not decisive

    return connect


def _case(call: Call, value_of: Evaluate) -> Any:
    *branches, default = call.args
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        if value_of(condition) is True:
            return value_of(value)
    return value_of(default)


def _coalesce(call: Call, value_of: Evaluate) -> Any:
    for arg in call.args:
        value = value_of(arg)
        if value is not None:
            return value
    return None


def _nanvl(call: Call, value_of: Evaluate) -> Any:
    value = value_of(call.args[0])
    return value_of(call.args[1]) if value is not None and math.isnan(value) else value


def _cast(call: Call, value_of: Evaluate) -> Any:
    (arg,) = call.args
    return cast(value_of(arg), arg.type, call.type)


def _try_cast(call: Call, value_of: Evaluate) -> Any:
    (arg,) = call.args
    value = value_of(arg)
    try:
        return cast(value, arg.type, call.type)
    except RowError:
        return None


_LAZY: dict[str, Callable[[Call, Evaluate], Any]] = {
    "and": _connective(False),
    "or": _connective(True),
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
    "nanvl": _nanvl,
    "cast": _cast,
    "try_cast": _try_cast,
}


# --- functions that see NULLs


def _same(left: Any, right: Any) -> bool:
    return order_key(left) == order_key(right)


def _in(value: Any, *candidates: Any) -> bool | None:
    if value is None:
        return None
    if any(c is not None and _same(value, c) for c in candidates):
        return True
    return None if None in candidates else False


def _greatest(*values: Any) -> Any:
    return max((v for v in values if v is not None), key=order_key, default=None)


def _least(*values: Any) -> Any:
    return min((v for v in values if v is not None), key=order_key, default=None)


_NULL_AWARE: dict[str, Callable[..., Any]] = {
    "is_null": lambda value: value is None,
    "is_not_null": lambda value: value is not None,
    "<=>": _same,
    "in": _in,
    "greatest": _greatest,
    "least": _least,
    "nullif": lambda a, b: None if a is not None and _same(a, b) else a,
    **SEES_NULL,
}


# --- functions of non-NULL values


def _operands(call: Call, values: tuple[Any, ...]) -> list[Any]:
    """Days count as microseconds where the result is finer than a day."""
    fine = call.type.name in ("TIMESTAMP", "INTERVAL")
    pairs = zip(call.args, values, strict=True)
    return [v * DAY if fine and a.type.name == "DATE" else v for a, v in pairs]


def _decimal(*values: Any) -> bool:
    return any(isinstance(v, Decimal) for v in values)


def _add(call: Call, *values: Any) -> Any:
    a, b = _operands(call, values)
    return WIDE.add(a, b) if _decimal(a, b) else a + b


def _subtract(call: Call, *values: Any) -> Any:
    a, b = _operands(call, values)
    return WIDE.subtract(a, b) if _decimal(a, b) else a - b


def _multiply(call: Call, a: Any, b: Any) -> Any:
    if call.type.name == "INTERVAL":
        return _half_up(WIDE.multiply(_exact(a), _exact(b)))
    return WIDE.multiply(a, b) if _decimal(a, b) else a * b


def _divide(call: Call, a: Any, b: Any) -> Any:
    if b == 0:
        raise RowError(DIVISION_BY_ZERO)
    if call.type.is_float:
        return float(a) / float(b)
    if isinstance(b, float) and math.isinf(b):
        return 0
    quotient = WIDE.divide(_exact(a), _exact(b))
    return _half_up(quotient) if call.type.name == "INTERVAL" else quotient


def _integer_divide(call: Call, a: Any, b: Any) -> int:
    if b == 0:
        raise RowError(DIVISION_BY_ZERO)
    if _decimal(a, b):
        return int(WIDE.divide_int(a, b))
    return int(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def _remainder(call: Call, a: Any, b: Any) -> Any:
    if b == 0:
        raise RowError(DIVISION_BY_ZERO)
    if isinstance(a, float) or isinstance(b, float):
        return math.nan if math.isinf(a) else math.fmod(a, b)
    if _decimal(a, b):
        return WIDE.remainder(a, b)
    return int(math.copysign(1, a)) * (abs(a) % abs(b))


def _exact(value: Any) -> Decimal:
    if isinstance(value, float) and not math.isfinite(value):
        raise RowError(OVERFLOW)
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _half_up(value: Decimal) -> int:
    if abs(value) > 1 << 64:
        raise RowError(OVERFLOW)
    return int(value.quantize(Decimal(1), ROUND_HALF_UP, WIDE))


def _whole(value: Any, direction: int) -> Any:
    """floor (direction 1) or ceil (-1); like Java, NaN gives 0."""
    if isinstance(value, Decimal):
        return direction * (direction * value).quantize(Decimal(1), ROUND_FLOOR, WIDE)
    if isinstance(value, int):
        return value
    if math.isnan(value):
        return 0
    if math.isinf(value):
        raise RowError(OVERFLOW)
    return direction * math.floor(direction * value)


def _round(call: Call, value: Any, digits: int = 0) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return value
    if abs(digits) > 350:
        return value if digits > 0 else type(value)(0)
    rounded = _exact(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _WIDEST)
    return rounded if isinstance(value, Decimal) else type(value)(rounded)


def _compare(test: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    return lambda call, a, b: test(order_key(a), order_key(b))


def _like(call: Call, text: str, pattern: str, escape: str = "\\") -> bool:
    regex, position = "", 0
    while position < len(pattern):
        sign = pattern[position]
        if sign == escape:
            position += 1
            sign = pattern[position : position + 1]
            if sign not in ("%", "_", escape):
                raise RowError("bad pattern")
            regex += re.escape(sign)
        else:
            regex += {"%": ".*", "_": "."}.get(sign) or re.escape(sign)
        position += 1
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _substring(call: Call, text: Any, position: int, length: int = 1 << 31) -> Any:
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)] if length > 0 else text[:0]


def _date_part(index: int) -> Callable[..., int]:
    def part(call: Call, value: int) -> int:
        return civil(value if call.args[0].type.name == "DATE" else value // DAY)[index]

    return part


def _clock_part(size: int, count: int) -> Callable[..., int]:
    return lambda call, value: value // (size * SECOND) % count


_TRUNCATE_CLOCK = {"HOUR": 3600 * SECOND, "MINUTE": 60 * SECOND, "SECOND": SECOND,
                   "MILLISECOND": 1000, "MICROSECOND": 1, "DAY": DAY, "DD": DAY}  # fmt: skip
_TRUNCATE_MONTHS = {"YEAR": 12, "YYYY": 12, "YY": 12, "QUARTER": 3, "MONTH": 1, "MON": 1, "MM": 1}


def _date_trunc(call: Call, unit: str, value: int) -> int | None:
    unit = unit.upper()
    if call.args[1].type.name == "DATE":
        value *= DAY
    if unit in _TRUNCATE_CLOCK:
        return value - value % _TRUNCATE_CLOCK[unit]
    days = value // DAY
    if unit == "WEEK":
        return (days - (days + 3) % 7) * DAY  # 1970-01-01 was a Thursday
    if unit in _TRUNCATE_MONTHS:
        year, month, _ = civil(days)
        return days_from_civil(year, month - (month - 1) % _TRUNCATE_MONTHS[unit], 1) * DAY
    return None


def _concat(call: Call, *parts: Any) -> Any:
    if not parts:
        return ""
    return type(parts[0])().join(parts)


_STRICT: dict[str, Callable[..., Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "div": _integer_divide,
    "&": lambda call, a, b: a & b,
    "|": lambda call, a, b: a | b,
    "^": lambda call, a, b: a ^ b,
    "neg": lambda call, a: -a,
    "not": lambda call, a: not a,
    "=": _compare(lambda a, b: a == b),
    "<>": _compare(lambda a, b: a != b),
    "<": _compare(lambda a, b: a < b),
    "<=": _compare(lambda a, b: a <= b),
    ">": _compare(lambda a, b: a > b),
    ">=": _compare(lambda a, b: a >= b),
    "like": _like,
    "||": _concat,
    "concat": _concat,
    "upper": lambda call, text: text.upper(),
    "lower": lambda call, text: text.lower(),
    "length": lambda call, text: len(text),
    "trim": lambda call, text, signs=" ": text.strip(signs),
    "substring": _substring,
    "abs": lambda call, a: abs(a),
    "ceil": lambda call, a: _whole(a, -1),
    "floor": lambda call, a: _whole(a, 1),
    "round": _round,
    "sqrt": lambda call, a: math.sqrt(a) if not a < 0 else math.nan,
    "year": _date_part(0),
    "month": _date_part(1),
    "day": _date_part(2),
    "dayofmonth": _date_part(2),
    "hour": _clock_part(3600, 24),
    "minute": _clock_part(60, 60),
    "second": _clock_part(1, 60),
    "date_trunc": _date_trunc,
    **FUNCTIONS,
}
