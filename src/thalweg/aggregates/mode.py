"""MODE: the most frequent value of a group, from its sorted values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.aggregates.kind import AggregateKind, BindCall, DistinctRule, Rows
from thalweg.aggregates.whole_group import NOTHING, VALUES, WholeGroup
from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.columns.vector import Vector
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan.expr import AggregateCall
from thalweg.plan.values import normal, order_key


@dataclass(slots=True)
class Mode(WholeGroup):
    """The most frequent value; of several the least."""

    _found: Ints = field(init=False, default_factory=lambda: NOTHING)

    def _walk(self, codes: Ints, used: Signs, runs: Runs) -> None:
        self._found = np.zeros(len(self._counts), np.int64)
        extremes.running_modes(
            codes, used, runs.run, runs.group_of_run, *self._held.regions, self._found
        )

    def values(self) -> Vector:
        return self._held.decoded(self._found, 0, self._counts > 0)


# -- binding and meaning -------------------------------------------------------------------------


def _mode(call: BindCall) -> AggregateCall:
    value = call.one()
    return AggregateCall(value.type, True, MODE, (value,))


def _accumulator(call: AggregateCall, prefix: str) -> Mode:
    return Mode(prefix, call.arguments[0].type)


def _most_frequent(call: AggregateCall, rows: Rows) -> Any:
    if not rows:
        return None
    counts = Counter(normal(r[0]) for r in rows)
    return min(counts, key=lambda v: (-counts[v], order_key(v)))


MODE = AggregateKind(
    name="mode",
    names={"mode": _mode},
    state=VALUES,
    accumulate=_accumulator,
    reference=_most_frequent,
    distinct=DistinctRule.REFUSED,
    keeps_values=True,
    ordered_set=frozenset(("mode",)),
    examples=("mode(k)", "mode() WITHIN GROUP (ORDER BY s)"),
)
KINDS = (MODE,)
