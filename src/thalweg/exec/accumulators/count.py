"""COUNT: rows, or rows whose argument is not NULL."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.vector import Vector
from thalweg.exec.accumulators.base import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    counted,
    used_weights,
)
from thalweg.instants import Ints
from thalweg.plan.types import BIGINT, DataType


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
