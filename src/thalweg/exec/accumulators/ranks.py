"""Exact quantiles and the mode, from the sorted values of a group.

A group keeps all its values, equal ones once with their count; an answer walks through them, so its
cost is the number of distinct values in the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.columns.vector import Vector
from thalweg.exec.accumulators.base import Loaded, Signed, running_counts
from thalweg.exec.accumulators.whole import NOTHING, WholeGroup, presence_changes
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan.types import DOUBLE


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
