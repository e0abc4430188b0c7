"""ARRAY_AGG and STRING_AGG: all values of a group in ascending order.

SQL leaves the order of an aggregated list open; here it is that of the values, so that it depends
on nothing else. Every version of a group is a whole list: over long windows that change often this
is as large as it sounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.columns.vector import Vector
from thalweg.exec.accumulators.whole import NOTHING, WholeGroup
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan.types import STRING, array_of, to_arrow


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
