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

from thalweg.exec import extremes
from thalweg.exec.accumulators.base import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    counted,
    used_weights,
)
from thalweg.exec.accumulators.holdings import Holdings
from thalweg.exec.frame import Ints
from thalweg.exec.vector import Vector
from thalweg.plan.types import STRING, DataType, array_of, to_arrow

_NOTHING: Ints = np.empty(0, np.int64)


@dataclass(slots=True)
class Collected:
    """`distinct` lists every value once; with a `separator` the list becomes text. Over nothing a
    list is empty, a text NULL."""

    prefix: str
    type: DataType
    distinct: bool
    separator: str | None = None
    _held: Holdings = field(init=False)
    _counts: Ints = field(default_factory=lambda: _NOTHING)
    _ends: Ints = field(default_factory=lambda: _NOTHING)
    _found: Ints = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        self._held = Holdings(self.prefix, (self.type,))

    @property
    def side_types(self) -> tuple[DataType, ...]:
        return (self.type,)

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        runs, held = signed.runs, self._held
        used = used_weights(arguments, signed)
        self._counts = counted(used, signed, loaded, f"{self.prefix}n")
        codes = held.load(arguments, used, runs, loaded)
        self._ends = np.zeros(runs.groups + runs.runs, np.int64)
        found = np.empty(int(self._counts.sum()), np.int64)
        extremes.running_contents(
            codes, used, runs.run, runs.group_of_run,
            held.offset, held.size, held.codes, held.tags, self.distinct, self._ends, found,
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

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        columns, side = self._held.save()
        return columns | {f"{self.prefix}n": self._counts[last]}, side
