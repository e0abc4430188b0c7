"""ARRAY_AGG and STRING_AGG: all values of a group in ascending order.

SQL leaves the order of an aggregated list open; here it is that of the values, so that it depends
on nothing else. Every version of a group is a whole list: over long windows that change often this
is as large as it sounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.aggregates.kind import AggregateKind, BindCall, DistinctRule, Rows, Rule
from thalweg.aggregates.whole_group import NOTHING, VALUES, WholeGroup
from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.columns.vector import Vector
from thalweg.errors import BindError, TypeMismatch
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan import functions
from thalweg.plan.expr import AggregateCall, Literal
from thalweg.plan.types import STRING, array_of, to_arrow
from thalweg.plan.values import normal, order_key


@dataclass(slots=True)
class Collected(WholeGroup):
    """`distinct` lists every value once; with a `separator` the list becomes text. Over nothing a
    list is empty, a text NULL."""

    distinct: bool
    separator: str | None = None
    _ends: Ints = field(init=False, default_factory=lambda: NOTHING)
    _found: Ints = field(init=False, default_factory=lambda: NOTHING)

    def _walk(self, codes: Ints, used: Signs, runs: Runs) -> None:
        self._ends = np.zeros(len(self._counts), np.int64)
        found = np.empty(int(self._counts.sum()), np.int64)
        extremes.running_contents(
            codes, used, runs.run, runs.group_of_run, *self._held.regions,
            self.distinct, self._ends, found,
        )  # fmt: skip
        self._found = found[: self._ends[-1]] if len(self._ends) else found

    def values(self) -> Vector:
        items = self._held.decoded(self._found).to_arrow().cast(to_arrow(self.type))
        offsets = pa.array(np.concatenate([[0], self._ends]).astype(np.int32))
        lists = pa.ListArray.from_arrays(offsets, items)
        if self.separator is None:
            return Vector(array_of(self.type), lists.cast(to_arrow(array_of(self.type))))
        text = pc.binary_join(lists, self.separator)
        return Vector(STRING, text, self._counts > 0)


# -- binding and meaning -------------------------------------------------------------------------


def _array(distinct: bool) -> Rule:
    def rule(call: BindCall) -> AggregateCall:
        value = call.one()
        if value.type.name in ("BINARY", "ARRAY", "NULL"):
            call.fail(
                TypeMismatch(
                    f"{call.name}() cannot list values of type {value.type}",
                    remedy="list one of the columns it is made of, or cast it to STRING first",
                )
            )
        listed, once = array_of(value.type), distinct or call.distinct
        return AggregateCall(listed, False, ARRAY_AGG, (value,), once)

    return rule


def _text(call: BindCall) -> AggregateCall:
    call.need(1, 2)
    value = call.argument(0)
    if value.type != STRING:
        value = functions.cast(value, STRING)
    separator = call.argument(1) if call.count > 1 else Literal(STRING, False, "")
    if not isinstance(separator, Literal) or not isinstance(separator.value, str):
        call.fail(
            BindError(
                f"the separator of {call.name}() must be a text such as ', '",
                remedy=f"write {call.name}(x, ', ')",
            )
        )
    return AggregateCall(
        STRING, True, STRING_AGG, (value,), call.distinct, parameter=separator.value
    )


def _accumulator(call: AggregateCall, prefix: str) -> Collected:
    return Collected(prefix, call.arguments[0].type, call.distinct, call.parameter)


def _in_order(call: AggregateCall, rows: Rows) -> tuple[Any, ...]:
    return tuple(normal(v) for v in sorted((r[0] for r in rows), key=order_key))


def _joined(call: AggregateCall, rows: Rows) -> str | None:
    return str(call.parameter).join(_in_order(call, rows)) if rows else None


ARRAY_AGG = AggregateKind(
    name="array_agg",
    names={"array_agg": _array(False), "collect_list": _array(False), "collect_set": _array(True)},
    state=VALUES,
    accumulate=_accumulator,
    reference=_in_order,
    distinct=DistinctRule.OWN,
    keeps_values=True,
    examples=("array_agg(k)", "collect_set(s)"),
)
STRING_AGG = AggregateKind(
    name="string_agg",
    names={"string_agg": _text, "listagg": _text},
    state=VALUES,
    accumulate=_accumulator,
    reference=_joined,
    distinct=DistinctRule.OWN,
    keeps_values=True,
    ordered_set=frozenset(("string_agg", "listagg")),
    lists=True,
    examples=("string_agg(s, ', ')", "listagg(DISTINCT s, '-') WITHIN GROUP (ORDER BY s)"),
)
KINDS = (ARRAY_AGG, STRING_AGG)
