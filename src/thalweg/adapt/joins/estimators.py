"""Statistics of pipelines and caches over their last observations."""

from __future__ import annotations

from collections import deque
from math import log, nan

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import CACHE_WINDOW, NEW_KEY_BITS

Hashes = npt.NDArray[np.uint64]
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(33)


class Recent:
    """The mean of the last observations, and how many it rests on.

    >>> seen = Recent(window=2)
    >>> for value in (9, 1, 2):
    ...     seen.add(value)
    >>> seen.mean, seen.count, seen.full
    (1.5, 2, True)
    """

    def __init__(self, window: int = CACHE_WINDOW) -> None:
        self._values: deque[float] = deque(maxlen=window)

    def add(self, value: float, times: int = 1) -> None:
        """Add an observation, which may stand for several alike."""
        self._values.extend([value] * times)

    @property
    def count(self) -> int:
        """Observations that the mean rests on: never more than the window."""
        return len(self._values)

    @property
    def full(self) -> bool:
        return self.count == self._values.maxlen

    @property
    def mean(self) -> float:
        """The mean; NaN without observations."""
        return sum(self._values) / self.count if self._values else nan


class NewKeyShare:
    """The probability that the next key was not looked up before: the miss rate that a cache would
    have after some time, though it was never used.

    Keys are hashes, remembered as bits. Of m bits, b of them set, linear counting concludes that
    there were -m ln(1 - b/m) distinct keys. (b alone is too small: keys collide.) Only those that
    each batch adds count. When half of the bits are set, all are forgotten. Evictions are not
    known, so it is an estimate, not a bound.

    Reference: Whang et al., A linear-time probabilistic counting algorithm (1990).

    >>> seen = NewKeyShare()
    >>> for _ in range(3):
    ...     seen.add(np.arange(100, dtype=np.uint64))
    >>> round(seen.miss_probability(), 2), round(seen.entries(), -1)
    (0.0, 100.0)
    """

    def __init__(self, bits: int = NEW_KEY_BITS) -> None:
        self._bits = np.zeros(bits, np.bool_)
        self._known = 0.0
        self._latest = nan

    def add(self, hashes: Hashes) -> None:
        if not len(hashes):
            return
        if np.count_nonzero(self._bits) > len(self._bits) // 2:
            self._bits[:] = False
            self._known = 0.0
        self._bits[_places(hashes, len(self._bits))] = True
        marked = int(np.count_nonzero(self._bits))
        known = counted(marked, len(self._bits), len(self._bits))
        self._latest = min((known - self._known) / len(hashes), 1.0)
        self._known = known

    def miss_probability(self) -> float:
        """The miss rate of the last batch; NaN before the first."""
        return self._latest

    def entries(self) -> float:
        """How many keys were seen."""
        return self._known


def counted(marked: int, bits: int, most: int) -> float:
    """The number of distinct keys that have marked so many of these bits, by linear counting;
    `most` if all are marked, which gives no estimate."""
    return -bits * log(1 - marked / bits) if marked < bits else float(most)


def _places(hashes: Hashes, bits: int) -> npt.NDArray[np.intp]:
    """Which bit each key marks. Hashes are mixed first: the keys of one task may agree in those
    bits of theirs by which rows were routed to it."""
    mixed = (hashes ^ (hashes >> _HALF)) * _MIX
    mixed ^= mixed >> _HALF
    return (mixed % np.uint64(bits)).astype(np.intp)
