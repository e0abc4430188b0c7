"""What a way of counting degrees can do."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from thalweg.instants import Ints
from thalweg.store.hashing import Hashes


class Degrees(Protocol):
    """Counts how many rows share a key within a cell, in one pass over rows that come in parts.

    Two of one method merge into that of all rows of both. `largest` is the largest count of a key
    per cell, and never below the truth unless the method is named among the estimates.
    """

    def update(self, keys: Hashes, cells: Ints) -> None:
        """Count further rows: the hash of each key, and its cell."""
        ...

    def merge(self, other: Self) -> None:
        """Count the rows of another one, too."""
        ...

    def largest(self) -> npt.NDArray[np.float64]:
        """Per cell the largest number of rows of one key."""
        ...
