"""The profile window: the last profiled rows that some predicate dropped."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Drops = npt.NDArray[np.bool_]
"""Per profiled row and predicate (in text order) whether the predicate drops the row."""


class ProfileWindow:
    """A ring of the last `size` rows; the oldest are expired first. `passed` is how many profiled
    rows no predicate dropped meanwhile; they are forgotten as fast as the others.

    >>> window = ProfileWindow(2, 3)
    >>> expired = window.push(np.array([[1, 0], [1, 1], [0, 1], [1, 0]], bool))
    >>> len(window), window.rows().astype(int).tolist(), expired.astype(int).tolist()
    (3, [[1, 1], [0, 1], [1, 0]], [[1, 0]])
    """

    def __init__(self, predicates: int, size: int) -> None:
        self.size = size
        self._ring = np.zeros((size, predicates), np.bool_)
        self._begin = 0
        self._count = 0
        self.passed = 0.0

    def __len__(self) -> int:
        return self._count

    def push(self, rows: Drops, passed: int = 0) -> Drops:
        """Add rows; returns those that expire (new ones too, if there are more than fit)."""
        over = max(self._count + len(rows) - self.size, 0)
        old = min(over, self._count)
        expired = self._ring[self._places(0, old)]
        skipped = rows[: over - old]
        kept = rows[over - old :]
        self._begin = (self._begin + old) % self.size
        self._count -= old
        self._ring[self._places(self._count, len(kept))] = kept
        self._count += len(kept)
        self.passed = (self.passed + passed) * self._count / max(self._count + over, 1)
        return np.concatenate([expired, skipped]) if len(skipped) else expired

    def rows(self) -> Drops:
        """The rows, oldest first."""
        return self._ring[self._places(0, self._count)]

    def clear(self) -> None:
        self._begin = self._count = 0
        self.passed = 0.0

    def _places(self, first: int, count: int) -> npt.NDArray[np.int64]:
        return (self._begin + first + np.arange(count)) % self.size
