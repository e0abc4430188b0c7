"""What a predicate costs per row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import CALL_SECONDS, COST_CALLS, LEAST_COST
from thalweg.exec.tactics import Observation

_UNMEASURED = 1e-6


class CostBook:
    """The median seconds per row over the last calls of each predicate, or costs given once and
    for all (`injected`), in any unit."""

    def __init__(self, predicates: int, injected: tuple[float, ...] | None = None) -> None:
        self.injected = injected
        self._calls = np.full((COST_CALLS, predicates), np.nan)
        self._next = np.zeros(predicates, np.int64)
        self._known: npt.NDArray[np.float64] | None = None

    @property
    def per_row(self) -> npt.NDArray[np.float64]:
        if self._known is None:
            self._known = self._estimated()
        return self._known

    def total(self, evaluations: npt.NDArray[np.int64]) -> float:
        """What so many evaluations of each predicate cost."""
        return float((evaluations * self.per_row).sum())

    def add(self, seen: Observation) -> None:
        if self.injected is not None:
            return
        rows = seen.evaluated + seen.extra
        spent = seen.seconds + seen.extra_seconds
        calls = (seen.evaluated > 0).astype(np.int64) + (seen.extra > 0)
        for i in np.flatnonzero(rows):
            net = max(spent[i] - calls[i] * CALL_SECONDS, LEAST_COST * rows[i])
            self._calls[self._next[i] % COST_CALLS, i] = net / rows[i]
            self._next[i] += 1
        self._known = None

    def _estimated(self) -> npt.NDArray[np.float64]:
        if self.injected is not None:
            return np.maximum(np.array(self.injected, np.float64), LEAST_COST)
        seen = self._next > 0
        found = np.full(len(seen), _UNMEASURED)
        if seen.any():
            found[seen] = np.nanmedian(self._calls[:, seen], axis=0)
            found[~seen] = found[seen].mean()
        known: npt.NDArray[np.float64] = np.maximum(found, LEAST_COST)
        return known
