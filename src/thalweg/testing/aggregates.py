"""Aggregates of a bag of values by definition: exact, rounded once.

`exact` is the mathematical value, which also tells two states of a group apart; `finish` brings
it into the aggregate's result type and raises `RowError` where that cannot hold it.
"""

from __future__ import annotations

from typing import Any

from thalweg.aggregates.kind import kind_of
from thalweg.plan.expr import AggregateCall
from thalweg.plan.values import normal
from thalweg.testing.casts import fit


def exact(call: AggregateCall, rows: list[tuple[Any, ...]]) -> Any:
    """The aggregate of the rows of arguments whose last is not NULL, before any rounding."""
    rows = [r for r in rows if r[-1] is not None]
    if call.distinct:
        rows = [(v,) for v in dict.fromkeys(normal(r[0]) for r in rows)]
    return kind_of(call).reference(call, rows)


def finish(call: AggregateCall, value: Any) -> Any:
    """The exact value in the result type: rounded to nearest even, or an overflow."""
    if value is None:
        return None
    return fit(kind_of(call).finish(call, value), call.type)
