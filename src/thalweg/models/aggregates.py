"""integral and coverage: aggregates over windows of modeled columns.

Over ordinary rows, which are at single instants, they mean nothing and are refused; over segments
they become relations (`relations/summed.py`), and no accumulator is ever asked for.
"""

from __future__ import annotations

from typing import Any

from thalweg.aggregates.accumulator import Accumulator
from thalweg.aggregates.kind import AggregateKind, BindCall, DistinctRule, Rows
from thalweg.errors import BindError
from thalweg.plan.expr import AggregateCall
from thalweg.plan.types import DOUBLE


def _of_model(call: BindCall) -> AggregateCall:
    if not call.is_modeled:
        call.fail(
            BindError(
                f"{call.name}() is of functions of time, and rows of a stream are at single "
                "instants",
                remedy="model the stream: FROM s [RANGE 1 MINUTE] MODEL (x = x)",
            )
        )
    argument = call.double(call.one())
    kind = INTEGRAL if call.name == "integral" else COVERAGE
    return AggregateCall(DOUBLE, True, kind, (argument,))


def _never(call: AggregateCall, prefix: str) -> Accumulator:
    raise AssertionError(f"{call} is no aggregate over rows")


def _no_meaning(call: AggregateCall, rows: Rows) -> Any:
    raise AssertionError(f"{call} is no aggregate over rows")


def _kind(name: str) -> AggregateKind:
    return AggregateKind(
        name=name,
        names={name: _of_model},
        state={},
        accumulate=_never,
        reference=_no_meaning,
        distinct=DistinctRule.REFUSED,
        examples=(),
    )


INTEGRAL = _kind("integral")
COVERAGE = _kind("coverage")
KINDS = (INTEGRAL, COVERAGE)
