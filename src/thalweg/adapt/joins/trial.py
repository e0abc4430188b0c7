"""The trial of a change of caches: whether it has paid."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from thalweg.adapt.constants import COLD_EPOCHS, REVERT_MARGIN, TRIAL_EPOCHS, TRIAL_STEADY
from thalweg.adapt.joins.candidates import Segment
from thalweg.adapt.planlog import KEPT, REVERTED, Switch
from thalweg.adapt.trial import Trial
from thalweg.exec.tactics import JoinSeen

Caches = tuple[Segment, ...]


class CacheTrial(Trial[Caches]):
    """The cost of a row in the best of some epochs after a change, when new caches are warm,
    compared with the best of as many before it, scaled by the change of the statistics. The best: a
    busy machine makes epochs longer, never shorter. Nothing is compared where epochs before varied
    widely: then other things were changing as well, as they do while windows fill; nor where costs
    are not times (`timed`)."""

    def __init__(self, timed: bool = True) -> None:
        super().__init__()
        self._timed = timed
        self._before: deque[float] = deque(maxlen=TRIAL_EPOCHS)
        self._after: list[float] = []
        self._cold = 0

    def saw(self, seen: Sequence[JoinSeen]) -> None:
        """Record the tasks of one epoch."""
        rows = sum(sum(one.rows.values()) + sum(one.left.values()) for one in seen)
        if not rows:
            return
        took = sum(one.seconds - one.profiling for one in seen) / rows
        if not self.is_on:
            self._before.append(took)
        elif self._cold:
            self._cold -= 1
        else:
            self._after.append(took)

    def begin(self, switch: Switch, old: Caches, new: Caches) -> None:
        if self.is_on:
            self.give_up()
        known = self._timed and len(self._before) == TRIAL_EPOCHS
        if not known or max(self._before) > TRIAL_STEADY * min(self._before):
            switch.outcome = KEPT
            return
        switch.before = min(self._before)
        self.switch, self.old = switch, old
        self._cold, self._after = COLD_EPOCHS, []

    def give_up(self) -> None:
        super().give_up()
        self._before.clear()

    def has_failed(self, cost_of: Callable[[Caches], float | None]) -> bool:
        switch, old = self.switch, self.old
        if switch is None or old is None or len(self._after) < TRIAL_EPOCHS:
            return False
        then, now = switch.predicted[0] if switch.predicted else None, cost_of(old)
        moved = max(now / then, 1.0) if then and now is not None else 1.0
        switch.after = min(self._after)
        failed = switch.after > REVERT_MARGIN * moved * (switch.before or 0.0)
        self._before = deque(self._after, TRIAL_EPOCHS)
        self.end(REVERTED if failed else KEPT)
        return failed
