"""GROUPING(key): whether a key is left out of a row's grouping set.

GROUP BY puts the number in its place, so nothing is ever accumulated.
"""

from __future__ import annotations

from typing import Any, NoReturn

from thalweg.aggregates.kind import AggregateKind, BindCall
from thalweg.plan.expr import AggregateCall
from thalweg.plan.types import INT


def _of_key(call: BindCall) -> AggregateCall:
    call.need(1)
    return AggregateCall(INT, False, GROUPING, (call.argument(),))


def _replaced(call: AggregateCall, given: Any) -> NoReturn:
    raise AssertionError(f"{call} stands where GROUP BY has not replaced it")


GROUPING = AggregateKind(
    name="grouping",
    names={"grouping": _of_key},
    state={},
    accumulate=_replaced,
    reference=_replaced,
    takes_arrays=True,
    examples=(),
)
KINDS = (GROUPING,)
