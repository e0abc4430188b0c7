"""Aggregates of a bag of values by definition: exact sums, rounded once.

`exact` is the mathematical value, which also tells two states of a group apart; `finish` brings
it into the aggregate's result type and raises `RowError` where that cannot hold it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from thalweg.plan.expr import AggregateCall
from thalweg.testing.casts import WIDE, fit
from thalweg.testing.compare import normal, order_key


def exact(call: AggregateCall, rows: list[tuple[Any, ...]]) -> Any:
    """The aggregate of the rows of arguments whose last is not NULL, before any rounding."""
    rows = [r for r in rows if r[-1] is not None]
    if call.function in ("min_by", "max_by"):
        return _by(call, rows)
    values = [r[0] for r in rows]
    if call.distinct:
        values = list(dict.fromkeys(normal(v) for v in values))
    if call.function == "count":
        return len(values)
    if call.function == "array_agg":
        return tuple(normal(v) for v in sorted(values, key=order_key))
    return _EXACT[call.function](call, values) if values else None


def _by(call: AggregateCall, rows: list[tuple[Any, ...]]) -> Any:
    """The value that goes with the least (largest) order; among those the least (largest)."""
    if not rows:
        return None
    best = (min if call.function == "min_by" else max)(
        rows, key=lambda r: (order_key(normal(r[1])), order_key(normal(r[0])))
    )
    return normal(best[0])


def _spread(call: AggregateCall, values: list[Any]) -> Any:
    """(n·Σx² - (Σx)², the divisor), or None where there is no variance."""
    n = len(values)
    sample = call.function.endswith("samp")
    if n < (2 if sample else 1):
        return None
    divisor = n * (n - 1) if sample else n * n
    if not all(map(math.isfinite, values)):
        return normal(math.nan), divisor
    exactly = [Fraction(v) for v in values]
    return n * sum(v * v for v in exactly) - sum(exactly) ** 2, divisor


def _percentile(call: AggregateCall, values: list[Any]) -> float:
    ordered = sorted(values, key=order_key)
    position = (len(ordered) - 1) * call.parameter
    low, high = math.floor(position), math.ceil(position)
    if low == high:
        return float(ordered[low])
    return float((high - position) * ordered[low] + (position - low) * ordered[high])


def _discrete(call: AggregateCall, values: list[Any]) -> Any:
    place = max(math.ceil(len(values) * call.parameter) - 1, 0)
    return normal(sorted(values, key=order_key)[place])


def _mode(call: AggregateCall, values: list[Any]) -> Any:
    counts = Counter(normal(v) for v in values)
    return min(counts, key=lambda v: (-counts[v], order_key(v)))


def _text(call: AggregateCall, values: list[Any]) -> str:
    return str(call.parameter).join(sorted(values, key=order_key))


_EXACT: dict[str, Callable[[AggregateCall, list[Any]], Any]] = {
    "sum": lambda call, values: _sum(values),
    "avg": lambda call, values: (_sum(values), len(values)),
    "min": lambda call, values: normal(min(values, key=order_key)),
    "max": lambda call, values: normal(max(values, key=order_key)),
    "var_samp": _spread,
    "var_pop": _spread,
    "stddev_samp": _spread,
    "stddev_pop": _spread,
    "percentile": _percentile,
    "percentile_disc": _discrete,
    "mode": _mode,
    "string_agg": _text,
}


def finish(call: AggregateCall, value: Any) -> Any:
    """The exact value in the result type: rounded to nearest even, or an overflow."""
    if value is None:
        return None
    if call.function == "avg":
        return _average(call, *value)
    if call.function in ("var_samp", "var_pop", "stddev_samp", "stddev_pop"):
        variance = float(_rounded(value[0])) / value[1]
        return math.sqrt(variance) if call.function.startswith("stddev") else variance
    if call.function == "sum":
        return fit(_rounded(value), call.type)
    return value


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
