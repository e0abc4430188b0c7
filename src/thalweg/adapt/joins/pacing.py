"""When the caches of a join are looked at again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from thalweg.adapt.constants import (
    PROFILE_BUDGET,
    RATE_CHANGE,
    RATE_EPOCHS,
    RATE_ROWS,
    URGENT_EPOCHS,
)
from thalweg.exec.tactics import JoinSeen


class Pace:
    """Regularly, as long as profiling takes no more than its part of the join's time (where it is
    `timed`); and for a few epochs whatever it takes, at first and when a stream has become much
    faster or slower, which is seen for free."""

    def __init__(self, timed: bool) -> None:
        self._timed = timed
        self._spent = self._profiling = 0.0
        self._now: Counter[int] = Counter()
        self._then: Counter[int] = Counter()
        self._odd = 0
        self._urgent = URGENT_EPOCHS

    def saw(self, seen: Sequence[JoinSeen]) -> None:
        """The tasks of one epoch."""
        self._now = Counter()
        self._urgent -= 1
        for one in seen:
            self._spent += one.seconds
            self._profiling += one.profiling
            self._now.update(one.rows)
        self._odd = self._odd + 1 if self._is_odd() else 0

    @property
    def can_afford(self) -> bool:
        within = self._profiling <= PROFILE_BUDGET * self._spent
        return self._urgent > 0 or within or not self._timed

    @property
    def is_surprised(self) -> bool:
        """Whether rates differ from those at the last choice, and not for a moment only."""
        return self._odd >= RATE_EPOCHS

    def chosen(self) -> None:
        """Caches have been chosen by the present rates."""
        self._then, self._odd, self._urgent = self._now, 0, 0

    def hurry(self) -> None:
        """They have to be chosen anew."""
        self._then, self._odd, self._urgent = self._now, 0, URGENT_EPOCHS

    def _is_odd(self) -> bool:
        pairs = [(self._now[leaf], self._then[leaf]) for leaf in self._now | self._then]
        return bool(self._then) and any(
            max(pair) > RATE_ROWS and max(pair) > RATE_CHANGE * min(pair) for pair in pairs
        )
