"""The Profiler: keeps exactly the statistics that somebody asked for."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from thalweg.adapt.constants import CHANGE, STATISTIC_EPOCHS
from thalweg.adapt.estimates import Estimate, share

Key = tuple[str, ...]
"""What a statistic is about, from the general to the particular, and its name last."""
Notified = Callable[[Key, Estimate, Estimate], None]


@dataclass(slots=True)
class _Share:
    """Parts of wholes over the last epochs, and the estimate that was last announced."""

    recent: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=STATISTIC_EPOCHS))
    announced: Estimate | None = None

    def estimate(self) -> Estimate:
        return share(sum(p for p, _ in self.recent), sum(w for _, w in self.recent))


class Profiler:
    """Probabilities estimated from counts, by key; what nobody asked for is not kept."""

    def __init__(self) -> None:
        self._asked: Counter[Key] = Counter()
        self._shares: dict[Key, _Share] = {}
        self._notified: dict[Key, list[Notified]] = {}

    def ask(self, key: Key, notified: Notified | None = None) -> None:
        """Keep a statistic; `notified` is called when it has changed significantly."""
        self._asked[key] += 1
        self._shares.setdefault(key, _Share())
        if notified is not None:
            self._notified.setdefault(key, []).append(notified)

    def release(self, key: Key) -> None:
        """One asker fewer; without any the statistic is forgotten."""
        self._asked[key] -= 1
        if self._asked[key] <= 0:
            del self._asked[key]
            del self._shares[key]
            self._notified.pop(key, None)

    @property
    def kept(self) -> frozenset[Key]:
        return frozenset(self._shares)

    def record(self, key: Key, part: int, whole: int) -> None:
        """What an epoch has shown: `part` of `whole`."""
        found = self._shares.get(key)
        if found is None or not whole:
            return
        found.recent.append((part, whole))
        now = share(part, whole)
        before = found.announced
        if before is None:
            found.announced = now
        elif abs(now.value - before.value) > max(CHANGE, now.margin + before.margin):
            found.announced = now
            for notified in self._notified.get(key, ()):
                notified(key, before, now)

    def estimate(self, key: Key) -> Estimate:
        return self._shares[key].estimate()
