"""COUNT: rows, or rows whose argument is not NULL."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.aggregates.accumulator import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    counted,
    used_weights,
)
from thalweg.aggregates.kind import INT, AggregateKind, BindCall
from thalweg.columns.vector import Vector
from thalweg.errors import AggregateMisuse
from thalweg.instants import Ints
from thalweg.plan import functions
from thalweg.plan.expr import AggregateCall, Literal
from thalweg.plan.types import BIGINT, BOOLEAN, DataType


@dataclass(slots=True)
class Count:
    """Rows, or rows whose argument is not NULL."""

    prefix: str
    side_types: tuple[DataType, ...] = ()
    _counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        used = used_weights(arguments, signed)
        self._counts = counted(used, signed, loaded, f"{self.prefix}n")

    def values(self) -> Vector:
        return Vector(BIGINT, self._counts, None, None)

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        return {f"{self.prefix}n": self._counts[last]}, None


# -- binding and meaning -------------------------------------------------------------------------


def _rows_or_values(call: BindCall) -> AggregateCall:
    if not call.is_star:
        call.need(1)
        return AggregateCall(BIGINT, False, COUNT, (call.argument(),))
    if call.distinct:
        call.fail(AggregateMisuse("count(DISTINCT *) means nothing", remedy="name a column"))
    return AggregateCall(BIGINT, False, COUNT)


def _where(call: BindCall) -> AggregateCall:
    there = [call.condition(), Literal(BOOLEAN, False, True), Literal(BOOLEAN, True, None)]
    return AggregateCall(BIGINT, False, COUNT, (functions.resolve("case", there),))


def _accumulator(call: AggregateCall, prefix: str) -> Count:
    return Count(prefix)


COUNT = AggregateKind(
    name="count",
    names={"count": _rows_or_values, "count_if": _where},
    state={"n": INT},
    accumulate=_accumulator,
    reference=lambda call, rows: len(rows),
    takes_arrays=True,
    summary=lambda found: found.count,
    examples=("count(*)", "count(x)", "count(DISTINCT k)", "count_if(x > 2)"),
)
KINDS = (COUNT,)
