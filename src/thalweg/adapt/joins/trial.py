"""Whether a change of caches has paid, as measured."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from thalweg.adapt.constants import COLD_EPOCHS, REVERT_MARGIN, TRIAL_EPOCHS, TRIAL_STEADY
from thalweg.adapt.joins.candidates import Segment
from thalweg.adapt.planlog import KEPT, REVERTED, Switch
from thalweg.exec.tactics import JoinSeen


class CacheTrial:
    """What a row takes in the best of some epochs after a change, when new caches have become warm,
    against the best of as many before it, moved as far as the profile says that what was before
    would have moved. The best: a busy machine makes epochs longer, never shorter. Nothing is
    compared where rows did not take about the same before: then other things were changing as well,
    as they do while windows fill; nor where time is not what counts (`timed`)."""

    def __init__(self, timed: bool = True) -> None:
        self._timed = timed
        self.old: tuple[Segment, ...] = ()
        self._before: deque[float] = deque(maxlen=TRIAL_EPOCHS)
        self._after: list[float] = []
        self._cold = 0
        self._switch: Switch | None = None

    @property
    def is_on(self) -> bool:
        return self._switch is not None

    def saw(self, seen: Sequence[JoinSeen]) -> None:
        """The tasks of one epoch."""
        rows = sum(sum(one.rows.values()) + sum(one.left.values()) for one in seen)
        if not rows:
            return
        took = sum(one.seconds - one.profiling for one in seen) / rows
        if self._switch is None:
            self._before.append(took)
        elif self._cold:
            self._cold -= 1
        else:
            self._after.append(took)

    def begin(self, switch: Switch, old: tuple[Segment, ...]) -> None:
        """Caches change; before, there were these."""
        if self._switch is not None:
            self.give_up()
        known = self._timed and len(self._before) == TRIAL_EPOCHS
        if not known or max(self._before) > TRIAL_STEADY * min(self._before):
            switch.outcome = KEPT
            return
        switch.before = min(self._before)
        self._switch, self.old = switch, old
        self._cold, self._after = COLD_EPOCHS, []

    def give_up(self) -> None:
        """Things have changed otherwise: there is nothing to compare with any more."""
        self._end(KEPT)
        self._before.clear()

    def has_failed(self, cost_of: Callable[[tuple[Segment, ...]], float | None]) -> bool:
        """Whether there is a verdict, and it is against the change; then it is over. `cost_of` says
        what some caches would cost by now."""
        switch = self._switch
        if switch is None or len(self._after) < TRIAL_EPOCHS:
            return False
        assert switch.before is not None
        assert switch.predicted is not None
        then, now = switch.predicted[0], cost_of(self.old)
        moved = max(now / then, 1.0) if then and now is not None else 1.0
        switch.after = min(self._after)
        failed = switch.after > REVERT_MARGIN * moved * switch.before
        self._before = deque(self._after, TRIAL_EPOCHS)
        self._end(REVERTED if failed else KEPT)
        return failed

    def _end(self, outcome: str) -> None:
        if self._switch is not None:
            self._switch.outcome = outcome
        self._switch = None
