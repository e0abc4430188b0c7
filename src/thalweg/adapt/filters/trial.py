"""The trial of a new order: whether it has paid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import METER_SLICES, REVERT_MARGIN, REVERT_ROWS
from thalweg.adapt.filters.guards import allows
from thalweg.adapt.filters.ordering import Order, Ordering
from thalweg.adapt.planlog import KEPT, REVERTED, Switch
from thalweg.adapt.trial import Trial
from thalweg.exec.tactics import Observation


class OrderTrial(Trial[Order]):
    """The cost of rows after a switch, slice by slice, compared with what the old order would have
    cost by then: its measured cost, scaled as far as the profile says that statistics have changed.
    On a busy machine time alone does not count against a switch: the number of evaluations, at like
    costs, has to agree."""

    def __init__(self, ordering: Ordering) -> None:
        super().__init__()
        self._ordering = ordering
        self._recent: list[tuple[float, Observation]] = []
        self._before = self._after = _Meter(0)
        self._new: Order = ()
        self._usual = 0

    def saw(self, seen: Observation) -> None:
        cost = self._cost_of(seen)
        if self.is_on and seen.order == self._new and 2 * seen.rows >= self._usual:
            self._after.add(cost, seen)  # in much shorter slices calls cost more than rows
        if seen.order == tuple(self._ordering.order):
            self._recent = [*self._recent[-METER_SLICES + 1 :], (cost, seen)]

    def begin(self, switch: Switch, old: Order, new: Order) -> None:
        self.end(KEPT)
        self._before, slices = self._last_slices(), len(self._recent)
        self._recent = []
        switch.before = self._before.cost_per_row
        if switch.before is None or not allows(self._ordering.guards, old):
            switch.outcome = KEPT  # nothing to compare with, or no way back
            return
        self.switch, self.old, self._new = switch, old, new
        self._after = _Meter(len(new))
        self._usual = self._before.rows // max(slices, 1)

    def has_failed(self, cost_of: Callable[[Order], float | None]) -> bool:
        switch, old = self.switch, self.old
        if switch is None or old is None or self._after.rows < REVERT_ROWS:
            return False
        switch.after = self._after.cost_per_row
        no_way_back = not allows(self._ordering.guards, old)
        failed = not no_way_back and not self._pays(switch, cost_of(old))
        self.end(REVERTED if failed else KEPT)
        if failed:
            self._recent = []
        return failed

    def _pays(self, switch: Switch, now: float | None) -> bool:
        """Whether a row costs no more than it would by now under the old order."""
        moved = 1.0
        if switch.predicted is not None and now is not None and switch.predicted[0]:
            moved = max(1.0, now / switch.predicted[0])
        limit = REVERT_MARGIN * moved
        costs = self._ordering.costs.per_row
        took = (switch.after or 0.0) > limit * (switch.before or 0.0)
        asked = self._after.work_per_row(costs) > limit * self._before.work_per_row(costs)
        return not (took and asked)

    def _cost_of(self, seen: Observation) -> float:
        """The cost of a slice's rows: seconds, or units of injected costs."""
        if self._ordering.settings.injected is not None:
            return self._ordering.costs.total(seen.evaluated)
        return float(seen.seconds.sum())

    def _last_slices(self) -> _Meter:
        """The cost of the last slices under the order in force."""
        meter = _Meter(self._ordering.settings.predicates)
        for cost, seen in self._recent:
            meter.add(cost, seen)
        return meter


class _Meter:
    """The accumulated cost of some slices."""

    def __init__(self, predicates: int) -> None:
        self.cost = 0.0
        self.rows = 0
        self.evaluated = np.zeros(predicates, np.int64)

    def add(self, cost: float, seen: Observation) -> None:
        self.cost += cost
        self.rows += seen.rows
        self.evaluated += seen.evaluated

    @property
    def cost_per_row(self) -> float | None:
        return self.cost / self.rows if self.rows else None

    def work_per_row(self, costs: npt.NDArray[np.float64]) -> float:
        """Evaluations at given costs."""
        return float((self.evaluated * costs).sum()) / max(self.rows, 1)
