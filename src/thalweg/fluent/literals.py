"""Python values as constants of the language."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from thalweg.errors import ConfigError
from thalweg.lang.durations import parse_duration
from thalweg.lang.parsing.fragments import parse_expression
from thalweg.lang.syntax import exp

Value = None | bool | int | float | str | Decimal | datetime | date | timedelta
_UNITS = (
    ("WEEK", 604_800_000_000),
    ("DAY", 86_400_000_000),
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
    ("MILLISECOND", 1_000),
    ("MICROSECOND", 1),
)


def is_value(value: object) -> bool:
    """Whether there is a constant for this."""
    kinds = (bool, int, float, str, Decimal, datetime, date, timedelta)
    return value is None or isinstance(value, kinds)


def literal(value: Value) -> exp.Expr:
    """The constant, as the parser would give it."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, int):
        return _number(str(int(value)))
    if isinstance(value, float):
        return _float(float(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    return parse_expression(_time_text(value))


def _number(text: str) -> exp.Expr:
    if text.startswith("-"):
        return exp.Neg(this=exp.Literal.number(text[1:]))
    return exp.Literal.number(text)


def _float(value: float) -> exp.Expr:
    if math.isnan(value):
        return parse_expression("CAST('NaN' AS DOUBLE)")
    if math.isinf(value):
        sign = "-" if value < 0 else ""
        return parse_expression(f"CAST('{sign}Infinity' AS DOUBLE)")
    return _number(repr(value))


def _decimal(value: Decimal) -> exp.Expr:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ConfigError(f"{value} is not a DECIMAL", remedy="use float('nan') or float('inf')")
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > 38:
        raise ConfigError(
            f"{value} has {precision} digits, a DECIMAL has at most 38", remedy="round it first"
        )
    return parse_expression(f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))")


def _time_text(value: datetime | date | timedelta) -> str:
    if isinstance(value, timedelta):
        micros = parse_duration(value)
        amount, unit = amount_and_unit(abs(micros))
        return f"INTERVAL '{'-' if micros < 0 else ''}{amount}' {unit}"
    if isinstance(value, datetime):
        plain = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return f"CAST('{plain.isoformat(sep=' ')}' AS TIMESTAMP)"
    return f"CAST('{value.isoformat()}' AS DATE)"


def amount_and_unit(micros: int) -> tuple[int, str]:
    """A duration in the largest unit that leaves no remainder: 300 s are 5 MINUTES."""
    unit, size = next((u, s) for u, s in _UNITS if micros % s == 0 and (micros or s == 1_000_000))
    amount = micros // size
    return amount, unit if amount == 1 else unit + "S"
