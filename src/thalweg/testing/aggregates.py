"""Aggregates of a bag of values by definition: exact sums, rounded once.

`exact` is the mathematical value, which also tells two states of a group apart; `finish` brings
it into the aggregate's result type and raises `RowError` where that cannot hold it.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from thalweg.plan.expr import AggregateCall
from thalweg.testing.casts import WIDE, fit
from thalweg.testing.compare import normal, order_key


def exact(call: AggregateCall, values: list[Any]) -> Any:
    """The aggregate of the values that are not NULL: a value, or (sum, count) for avg."""
    values = [v for v in values if v is not None]
    if call.function == "count":
        return len(values)
    if not values:
        return None
    if call.function == "sum":
        return _sum(values)
    if call.function == "avg":
        return _sum(values), len(values)
    if call.function == "min":
        return normal(min(values, key=order_key))
    if call.function == "max":
        return normal(max(values, key=order_key))
    raise TypeError(f"{call.function} is not an aggregate")


def finish(call: AggregateCall, value: Any) -> Any:
    """The exact value in the result type: rounded to nearest even, or an overflow."""
    if value is None:
        return None
    if call.function == "avg":
        return _average(call, *value)
    return fit(_rounded(value), call.type)


def _sum(values: list[Any]) -> Any:
    """An int, a Fraction for DOUBLE (a float if not finite), a Decimal."""
    if isinstance(values[0], Decimal):
        total = Decimal(0)
        for value in values:
            total = WIDE.add(total, value)
        return total
    if not isinstance(values[0], float):
        return sum(values)
    special = {v for v in values if math.isinf(v)}
    if len(special) == 2 or any(math.isnan(v) for v in values):
        return normal(math.nan)
    return special.pop() if special else sum(map(Fraction, values), Fraction(0))


def _rounded(value: Any) -> Any:
    if not isinstance(value, Fraction):
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _average(call: AggregateCall, total: Any, count: int) -> Any:
    if call.type.is_float:
        return float(_rounded(total)) / count
    quotient = WIDE.divide(Decimal(total), Decimal(count))
    return fit(quotient if call.type.name == "DECIMAL" else round(quotient), call.type)
