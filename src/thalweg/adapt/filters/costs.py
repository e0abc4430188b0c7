"""The cost of a predicate per row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import CALL_SECONDS, COST_CALLS, COST_QUANTILE, LEAST_COST
from thalweg.exec.tactics import Observation

Floats = npt.NDArray[np.float64]
_UNMEASURED = 1e-6


class CostBook:
    """Seconds per row over the last calls of each predicate, or fixed costs (`injected`), in any
    unit.

    The estimate is a low quantile of the calls, weighted by their rows: noise makes a call longer,
    never shorter. Where all predicates are of one kind, the prior that they cost alike weighs as
    much as so many calls as are `alike`.
    """

    def __init__(
        self, predicates: int, injected: tuple[float, ...] | None = None, alike: int = 0
    ) -> None:
        self.injected = injected
        self.alike = alike
        self._costs = np.zeros((COST_CALLS, predicates))
        self._rows = np.zeros((COST_CALLS, predicates))
        self._next = np.zeros(predicates, np.int64)
        self._known: Floats | None = None

    @property
    def per_row(self) -> Floats:
        if self._known is None:
            self._known = self._estimated()
        return self._known

    def total(self, evaluations: npt.NDArray[np.int64]) -> float:
        """The cost of so many evaluations of each predicate."""
        return float((evaluations * self.per_row).sum())

    def add(self, seen: Observation) -> None:
        if self.injected is not None:
            return
        rows = seen.evaluated + seen.extra
        spent = seen.seconds + seen.extra_seconds - seen.gathering
        calls = (seen.evaluated > 0).astype(np.int64) + (seen.extra > 0)
        asked = np.flatnonzero(rows)
        at = self._next[asked] % COST_CALLS
        self._costs[at, asked] = (spent - calls * CALL_SECONDS)[asked] / rows[asked]
        self._rows[at, asked] = rows[asked]
        self._next[asked] += 1
        self._known = None

    def _estimated(self) -> Floats:
        if self.injected is not None:
            return np.maximum(np.array(self.injected, np.float64), LEAST_COST)
        order = np.argsort(self._costs, axis=0)
        reached = np.take_along_axis(self._rows, order, 0).cumsum(0)
        first = (reached >= reached[-1] * COST_QUANTILE).argmax(0)
        found = np.take_along_axis(self._costs, order, 0)[first, np.arange(len(first))]
        seen = self._next > 0
        usual = found[seen].mean() if seen.any() else _UNMEASURED
        calls = np.minimum(self._next, COST_CALLS)
        found = np.where(
            seen, (calls * found + self.alike * usual) / np.maximum(calls + self.alike, 1), usual
        )
        known: Floats = np.maximum(found, LEAST_COST)
        return known
