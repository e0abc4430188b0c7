"""Aggregates, one per file. `AGGREGATE_KINDS` is what the language offers."""

from __future__ import annotations

from thalweg.aggregates import count, extreme, grouping, lists, mode, quantile, sums, variance
from thalweg.aggregates.accumulator import Accumulator
from thalweg.aggregates.distinct import Distinct
from thalweg.aggregates.kind import AggregateKind, DistinctRule, kind_of
from thalweg.plan.expr import AggregateCall

AGGREGATE_KINDS: list[AggregateKind] = [
    *count.KINDS,
    *sums.KINDS,
    *extreme.KINDS,
    *variance.KINDS,
    *quantile.KINDS,
    *mode.KINDS,
    *lists.KINDS,
    *grouping.KINDS,
]


def kind_named(name: str) -> AggregateKind | None:
    """The aggregate that goes by a name in SQL."""
    return next((k for k in AGGREGATE_KINDS if name in k.names), None)


def aggregate_names() -> list[str]:
    return [name for kind in AGGREGATE_KINDS for name in kind.names]


def accumulator(call: AggregateCall, prefix: str) -> Accumulator:
    """A fresh accumulator whose state columns start with `prefix`."""
    kind = kind_of(call)
    made = kind.accumulate(call, prefix)
    if call.distinct and kind.distinct is DistinctRule.WRAPPED:
        return Distinct(prefix, call.arguments[0].type, made)
    return made
