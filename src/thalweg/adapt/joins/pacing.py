"""The schedule on which the caches of a join are profiled again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import inf

from thalweg.adapt.constants import (
    BUDGET_MEMORY,
    JOIN_BUDGET,
    RATE_CHANGE,
    RATE_EPOCHS,
    RATE_ROWS,
    URGENT_EPOCHS,
    URGENT_PAUSE,
)
from thalweg.adapt.estimates import Estimate
from thalweg.adapt.profiler import Change
from thalweg.exec.tactics import JoinSeen


class Pace:
    """Regularly, as long as profiling takes no more than its part of the join's time (where it is
    `timed`); and without limit for a few epochs at first and after a surprise, which is detected at
    no cost: a stream has become much faster or slower, or the join takes much longer."""

    def __init__(self, timed: bool) -> None:
        self._timed = timed
        self._spent = self._profiling = 0.0
        self._now: Counter[int] = Counter()
        self._then: Counter[int] = Counter()
        self._took = self._usual = 0.0
        self._odd = 0
        self._urgent = URGENT_EPOCHS

    def saw(self, seen: Sequence[JoinSeen], on_trial: bool = False) -> None:
        """Record the observations of one epoch's tasks. While caches are `on_trial`, slow epochs
        are no surprise."""
        self._now = Counter()
        for one in seen:
            self._now.update(one.rows)
        profiling = sum(one.profiling for one in seen)
        self._took = sum(one.seconds for one in seen) - profiling
        self._spent = BUDGET_MEMORY * self._spent + self._took
        self._profiling = BUDGET_MEMORY * self._profiling
        if self._urgent <= 0:
            self._profiling += profiling
        self._urgent -= 1
        slower = self._timed and not on_trial and self._took > RATE_CHANGE * self._usual
        self._odd = self._odd + 1 if self._then and (slower or self._is_odd()) else 0

    @property
    def can_afford(self) -> bool:
        within = self._profiling <= JOIN_BUDGET * self._spent
        return self._urgent > 0 or within or not self._timed

    @property
    def surprise(self) -> Change | None:
        """A lasting difference from the conditions of the last choice, if there is one. After one
        surprise the next has to wait."""
        if self._odd < RATE_EPOCHS or self._urgent > -URGENT_PAUSE:
            return None
        pairs = [(self._then[leaf], self._now[leaf]) for leaf in self._now | self._then]
        then, now = max([*filter(_is_odd, pairs), (self._usual, self._took)], key=_ratio)
        return Estimate(then, RATE_EPOCHS, 0.0), Estimate(now, RATE_EPOCHS, 0.0)

    def chosen(self) -> None:
        """Caches were chosen: compare with the present conditions from now on."""
        self._forget(0)

    def hurry(self) -> None:
        """Caches have to be chosen anew: profile without limit for some epochs."""
        self._forget(URGENT_EPOCHS)

    def _forget(self, urgent: int) -> None:
        self._then, self._usual, self._odd = self._now, self._took, 0
        self._urgent = urgent or min(self._urgent, 0)

    def _is_odd(self) -> bool:
        pairs = [(self._now[leaf], self._then[leaf]) for leaf in self._now | self._then]
        return any(map(_is_odd, pairs))


def _is_odd(pair: tuple[float, float]) -> bool:
    return max(pair) > RATE_ROWS and max(pair) > RATE_CHANGE * min(pair)


def _ratio(pair: tuple[float, float]) -> float:
    return max(pair) / min(pair) if min(pair) else inf
