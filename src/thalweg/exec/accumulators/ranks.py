"""Exact quantiles and the mode, from the sorted values of a group.

A group keeps all its values, equal ones once with their count; an answer walks through them, so its
cost is the number of distinct values in the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.exec import extremes
from thalweg.exec.accumulators.base import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    counted,
    running_counts,
    used_weights,
)
from thalweg.exec.accumulators.holdings import Holdings
from thalweg.exec.frame import Ints, Signs
from thalweg.exec.groups import Runs
from thalweg.exec.vector import Vector
from thalweg.plan.types import DOUBLE, DataType

_NOTHING: Ints = np.empty(0, np.int64)


@dataclass(slots=True)
class Quantile:
    """`fraction` of the values lie below; between two values it is interpolated, or, if `discrete`,
    the first value that enough others do not exceed is taken."""

    prefix: str
    type: DataType
    fraction: float
    discrete: bool
    distinct: bool = False
    _held: Holdings = field(init=False)
    _counts: Ints = field(default_factory=lambda: _NOTHING)
    _found: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))

    def __post_init__(self) -> None:
        self._held = Holdings(self.prefix, (self.type,))

    @property
    def side_types(self) -> tuple[DataType, ...]:
        return (self.type,)

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        runs, held = signed.runs, self._held
        used = used_weights(arguments, signed)
        codes = held.load(arguments, used, runs, loaded)
        if self.distinct:
            self._counts = self._distinct_counts(codes, used, runs, loaded)
        else:
            self._counts = counted(used, signed, loaded, f"{self.prefix}n")
        low, high = self._places()
        self._found = np.zeros((runs.groups + runs.runs, 2), np.int64)
        extremes.running_ranks(
            codes, used, runs.run, runs.group_of_run,
            held.offset, held.size, held.codes, held.tags, self.distinct, low, high, self._found,
        )  # fmt: skip

    def _distinct_counts(self, codes: Ints, used: Signs, runs: Runs, loaded: Loaded) -> Ints:
        """How many different values each version has; leaves what is held as it was."""
        held, changed = self._held, np.zeros(len(used), np.int8)
        extremes.running_presence(
            codes, used, runs.run, runs.group_of_run,
            held.offset, held.size.copy(), held.codes.copy(), held.tags.copy(), changed,
        )  # fmt: skip
        return running_counts(changed, runs, loaded.ints(f"{self.prefix}n"))

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

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        columns, side = self._held.save()
        return columns | {f"{self.prefix}n": self._counts[last]}, side


@dataclass(slots=True)
class Mode:
    """The most frequent value; of several the least."""

    prefix: str
    type: DataType
    _held: Holdings = field(init=False)
    _counts: Ints = field(default_factory=lambda: _NOTHING)
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
        self._found = np.zeros(runs.groups + runs.runs, np.int64)
        extremes.running_modes(
            codes, used, runs.run, runs.group_of_run,
            held.offset, held.size, held.codes, held.tags, self._found,
        )  # fmt: skip

    def values(self) -> Vector:
        return self._held.decoded(self._found, 0, self._counts > 0)

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        columns, side = self._held.save()
        return columns | {f"{self.prefix}n": self._counts[last]}, side
