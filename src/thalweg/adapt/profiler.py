"""The Profiler: maintains exactly the statistics that were requested, and announces their changes.

What tasks have seen reaches the adaptive loop through `record` and nowhere else: statistics, which
choices are made by, are only ever told what the Profiler passes on to them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from thalweg.adapt.constants import CHANGE, STATISTIC_EPOCHS
from thalweg.adapt.estimates import Estimate, share

Key = tuple[str, ...]
"""The key of a statistic, from the general to the particular, and its name last."""
Change = tuple[Estimate, Estimate]
"""The value of a statistic when it was last announced, and its present value."""
Notified = Callable[[Key, Estimate, Estimate], None]


class Statistic(Protocol):
    """A value that is estimated from observations of tasks."""

    def observe(self, *seen: Any) -> Change | None:
        """Add an observation; returns the change it makes, if that is significant."""
        ...


@dataclass(slots=True)
class Share:
    """A ratio over the last epochs, and the estimate that was last announced."""

    recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=STATISTIC_EPOCHS))
    announced: Estimate | None = None

    def observe(self, part: int, whole: int) -> Change | None:
        """Add an epoch's observation: `part` of `whole`."""
        if not whole:
            return None
        self.recent.append((part, whole))
        now, before = share(part, whole), self.announced
        if before is None:
            self.announced = now
        elif abs(now.value - before.value) > max(CHANGE, now.margin + before.margin):
            self.announced = now
            return before, now
        return None

    def estimate(self) -> Estimate:
        return share(sum(p for p, _ in self.recent), sum(w for _, w in self.recent))


@dataclass(slots=True)
class _Kept:
    """A statistic, its number of users, and the callbacks for its changes."""

    statistic: Statistic
    askers: int = 0
    notified: list[Notified] = field(default_factory=list)


class Profiler:
    """Statistics by key; those that were not requested are not maintained."""

    def __init__(self) -> None:
        self._kept: dict[Key, _Kept] = {}

    def ask(
        self, key: Key, notified: Notified | None = None, statistic: Statistic | None = None
    ) -> Statistic:
        """Maintain a statistic, by default a share; `notified` is called when it has changed
        significantly."""
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = _Kept(Share() if statistic is None else statistic)
        found.askers += 1
        if notified is not None:
            found.notified.append(notified)
        return found.statistic

    def release(self, key: Key, notified: Notified | None = None) -> None:
        """One asker fewer, who is no longer notified; without any the statistic is forgotten."""
        if notified is not None:
            self._kept[key].notified.remove(notified)
        self._kept[key].askers -= 1
        if self._kept[key].askers <= 0:
            del self._kept[key]

    @property
    def kept(self) -> frozenset[Key]:
        return frozenset(self._kept)

    def record(self, key: Key, *seen: Any) -> None:
        """Add observations of tasks to the statistics."""
        found = self._kept.get(key)
        if found is None:
            return
        change = found.statistic.observe(*seen)
        if change is not None:
            for notified in found.notified:
                notified(key, *change)

    def estimate(self, key: Key) -> Estimate:
        """The estimate of a share."""
        found = self._kept[key].statistic
        assert isinstance(found, Share)
        return found.estimate()
