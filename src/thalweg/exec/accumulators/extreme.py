"""MIN and MAX, and the value that goes with the least or the largest (MIN_BY, FIRST, ...).

Where the end of every row is known when it appears a group keeps a front, else all its values. Of
several values that go with the same least order the least one is taken, with the largest the
largest, so that the answer does not depend on the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.vector import Mask, Vector
from thalweg.exec.accumulators.base import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    used_weights,
)
from thalweg.exec.accumulators.holdings import Holdings
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan.types import DataType


@dataclass(slots=True)
class Extreme:
    """Arguments are the value, and, where it is not its own order, what it is ordered by."""

    prefix: str
    types: tuple[DataType, ...]
    largest: bool
    _held: Holdings = field(init=False)
    _best: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _has: Mask = field(default_factory=lambda: np.empty(0, np.bool_))

    def __post_init__(self) -> None:
        self._held = Holdings(self.prefix, self.types[::-1], reverse=self.largest)

    @property
    def side_types(self) -> tuple[DataType, ...]:
        return self._held.types

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        runs, ends, held = signed.runs, signed.ends, self._held
        used = used_weights(arguments, signed)
        codes = held.load(arguments[::-1], used, runs, loaded)
        had = held.size > 0
        first = np.minimum(held.offset, max(len(held.codes) - 1, 0))
        stored = held.codes[first] if len(held.codes) else np.zeros(runs.groups, np.int64)
        best = np.zeros(runs.runs, np.int64)
        has = np.zeros(runs.runs, np.bool_)
        if ends is not None:
            at = runs.instants[runs.run]
            extremes.running_front(
                codes, ends[runs.order], used, at, runs.run, runs.group_of_run,
                *held.regions, best, has,
            )  # fmt: skip
        else:
            extremes.running_least(
                codes, used, runs.run, runs.group_of_run, *held.regions, best, has
            )
        self._best = np.concatenate([stored, best])
        self._has = np.concatenate([had, has])

    def values(self) -> Vector:
        return self._held.decoded(self._best, len(self.types) - 1, self._has)

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        return self._held.save()
