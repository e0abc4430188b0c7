"""Aggregates of all values of a group: what they share.

A group keeps its values sorted, equal ones once with their count; what an aggregate makes of them
is a walk through them after every run.
"""

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
from thalweg.aggregates.holdings import HELD, Holdings
from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan.types import DataType

VALUES = HELD | {"n": "int64"}
"""State columns of a group that keeps its values."""
NOTHING: Ints = np.empty(0, np.int64)


@dataclass(slots=True)
class WholeGroup:
    """`_counts` are the numbers of values of all versions; a subclass walks and gives values."""

    prefix: str
    type: DataType
    _held: Holdings = field(init=False)
    _counts: Ints = field(init=False, default_factory=lambda: NOTHING)

    def __post_init__(self) -> None:
        self._held = Holdings(self.prefix, (self.type,))

    @property
    def side_types(self) -> tuple[DataType, ...]:
        return self._held.types

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        used = used_weights(arguments, signed)
        codes = self._held.load(arguments, used, signed.runs, loaded)
        self._counts = self._counted(codes, used, signed, loaded)
        self._walk(codes, used, signed.runs)

    def _counted(self, codes: Ints, used: Signs, signed: Signed, loaded: Loaded) -> Ints:
        return counted(used, signed, loaded, f"{self.prefix}n")

    def _walk(self, codes: Ints, used: Signs, runs: Runs) -> None:
        raise AssertionError(f"{type(self).__name__} walks nowhere")

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        columns, side = self._held.save()
        return columns | {f"{self.prefix}n": self._counts[last]}, side


def presence_changes(held: Holdings, codes: Ints, used: Signs, runs: Runs) -> Signs:
    """Per change +1 if its value was not there before it, -1 if it is no longer, else 0. Advances
    what is held."""
    changed = np.zeros(len(used), np.int8)
    extremes.running_presence(codes, used, runs.run, runs.group_of_run, *held.regions, changed)
    return changed
