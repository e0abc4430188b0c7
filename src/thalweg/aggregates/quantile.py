"""PERCENTILE and MEDIAN, exactly, from the sorted values of a group.

A group keeps all its values, equal ones once with their count; an answer walks through them, so its
cost is the number of distinct values in the group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.aggregates.accumulator import Loaded, Signed, running_counts
from thalweg.aggregates.kind import AggregateKind, BindCall, DistinctRule, Rows
from thalweg.aggregates.whole_group import VALUES, WholeGroup, presence_changes
from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.columns.vector import Vector
from thalweg.errors import BindError
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan.expr import AggregateCall, Literal
from thalweg.plan.types import DOUBLE
from thalweg.plan.values import normal, order_key


@dataclass(slots=True)
class Quantile(WholeGroup):
    """`fraction` of the values lie below; between two values it is interpolated, or, if `discrete`,
    the first value that enough others do not exceed is taken. `distinct` counts equal ones once."""

    fraction: float
    discrete: bool
    distinct: bool = False
    _found: Ints = field(init=False, default_factory=lambda: np.empty((0, 2), np.int64))

    def _counted(self, codes: Ints, used: Signs, signed: Signed, loaded: Loaded) -> Ints:
        if not self.distinct:
            return WholeGroup._counted(self, codes, used, signed, loaded)
        changed = presence_changes(self._held.copied(), codes, used, signed.runs)
        return running_counts(changed, signed.runs, loaded.ints(f"{self.prefix}n"))

    def _walk(self, codes: Ints, used: Signs, runs: Runs) -> None:
        low, high = self._places()
        self._found = np.zeros((len(self._counts), 2), np.int64)
        extremes.running_ranks(
            codes, used, runs.run, runs.group_of_run, *self._held.regions,
            self.distinct, low, high, self._found,
        )  # fmt: skip

    def _position(self) -> np.ndarray:
        return np.maximum(self._counts - 1, 0) * self.fraction

    def _places(self) -> tuple[Ints, Ints]:
        if self.discrete:
            place = np.maximum(np.ceil(self._counts * self.fraction).astype(np.int64) - 1, 0)
            return place, place
        position = self._position()
        return np.floor(position).astype(np.int64), np.ceil(position).astype(np.int64)

    def values(self) -> Vector:
        valid = self._counts > 0
        if self.discrete:
            return self._held.decoded(self._found[:, 0], 0, valid)
        low, high = (self._held.decoded(c, 0, valid).data for c in self._found.T)
        position = self._position()
        below, above = np.floor(position), np.ceil(position)
        with np.errstate(invalid="ignore", over="ignore"):
            mixed = (above - position) * low + (position - below) * high
        return Vector(DOUBLE, np.where(below == above, low, mixed), valid, None)


# -- binding and meaning -------------------------------------------------------------------------


def _interpolated(call: BindCall) -> AggregateCall:
    call.need(2)
    value = call.double(call.argument(0))
    return AggregateCall(DOUBLE, True, PERCENTILE, (value,), parameter=_fraction(call))


def _median(call: BindCall) -> AggregateCall:
    return AggregateCall(DOUBLE, True, PERCENTILE, (call.double(call.one()),), parameter=0.5)


def _discrete(call: BindCall) -> AggregateCall:
    call.need(2)
    value = call.argument(0)
    return AggregateCall(value.type, True, PERCENTILE_DISC, (value,), parameter=_fraction(call))


def _fraction(call: BindCall) -> float:
    found = call.argument(1)
    value = found.value if isinstance(found, Literal) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
        call.fail(
            BindError(
                f"{call.name}() needs a fraction between 0 and 1 that is a number",
                remedy=f"write one such as {call.name}(x, 0.5)",
            )
        )
    return float(value)


def _accumulator(call: AggregateCall, prefix: str) -> Quantile:
    discrete = call.kind is PERCENTILE_DISC
    fraction = float(call.parameter)
    return Quantile(prefix, call.arguments[0].type, fraction, discrete, call.distinct)


def _between(call: AggregateCall, rows: Rows) -> float | None:
    if not rows:
        return None
    ordered = sorted((r[0] for r in rows), key=order_key)
    position = (len(ordered) - 1) * call.parameter
    low, high = math.floor(position), math.ceil(position)
    if low == high:
        return float(ordered[low])
    return float((high - position) * ordered[low] + (position - low) * ordered[high])


def _at(call: AggregateCall, rows: Rows) -> Any:
    if not rows:
        return None
    place = max(math.ceil(len(rows) * call.parameter) - 1, 0)
    return normal(sorted((r[0] for r in rows), key=order_key)[place])


PERCENTILE = AggregateKind(
    name="percentile",
    names={
        "percentile": _interpolated,
        "percentile_cont": _interpolated,
        "quantile": _interpolated,
        "median": _median,
    },
    state=VALUES,
    accumulate=_accumulator,
    reference=_between,
    distinct=DistinctRule.OWN,
    keeps_values=True,
    ordered_set=frozenset(("percentile_cont",)),
    examples=("median(x)", "percentile(x, 0.3)", "quantile(DISTINCT x, 0.9)",
              "percentile_cont(0.25) WITHIN GROUP (ORDER BY x)"),
)  # fmt: skip
PERCENTILE_DISC = AggregateKind(
    name="percentile_disc",
    names={"percentile_disc": _discrete},
    state=VALUES,
    accumulate=_accumulator,
    reference=_at,
    distinct=DistinctRule.OWN,
    keeps_values=True,
    ordered_set=frozenset(("percentile_disc",)),
    examples=("percentile_disc(x, 0.5)", "percentile_disc(0.4) WITHIN GROUP (ORDER BY s)"),
)
KINDS = (PERCENTILE, PERCENTILE_DISC)
