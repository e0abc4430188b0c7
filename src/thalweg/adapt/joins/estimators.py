"""Statistics of pipelines and caches over their last observations."""

from __future__ import annotations

from collections import deque
from math import log, nan

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import CACHE_WINDOW, DISTINCT_BITS, DISTINCT_RUN, NEW_KEY_BITS
from thalweg.adapt.joins.costs import Operator

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


def operator_of(arrivals: float, handled: Recent, spent: Recent) -> Operator:
    """An operator as profiled: how many tuples each of its input tuples became, and the cost of
    these together. `arrivals` is the rate at which the pipeline's leaf changes."""
    per_tuple = spent.mean / handled.mean if handled.mean else 0.0
    return Operator(arrivals * handled.mean, per_tuple)


class DistinctShare:
    """The probability that a cache that was never used would miss: the share of distinct keys among
    those it would be probed with.

    Keys are hashes. Each run of `run` keys marks `alpha * run` bits; of m bits, b of them set,
    linear counting concludes that there were -m ln(1 - b/m) distinct keys. (b alone is too small:
    keys collide.) The answer is the mean over the last runs. Each run begins as if the cache were
    empty and knows no eviction, so it is an estimate, not a bound.

    Reference: Whang et al., A linear-time probabilistic counting algorithm (1990).

    >>> seen = DistinctShare(run=4)
    >>> seen.add(np.array([1, 2, 1, 2], np.uint64))
    >>> round(seen.miss_probability(), 1), round(seen.entries()), seen.runs
    (0.5, 2, 1)
    """

    def __init__(
        self, alpha: float = DISTINCT_BITS, run: int = DISTINCT_RUN, window: int = CACHE_WINDOW
    ) -> None:
        if alpha < 1 or run < 1:
            raise ValueError(f"{run} keys with {alpha} bits for each cannot be counted")
        self.run = run
        self._bits = np.zeros(int(alpha * run), np.bool_)
        self._seen = 0
        self._distinct = Recent(window)

    @property
    def runs(self) -> int:
        """Complete runs that the answers rest on."""
        return self._distinct.count

    def add(self, hashes: Hashes) -> None:
        places = _places(hashes, len(self._bits))
        while len(places):
            now, places = np.split(places, [self.run - self._seen])
            self._bits[now] = True
            self._seen += len(now)
            if self._seen == self.run:
                self._close()

    def _close(self) -> None:
        marked = int(np.count_nonzero(self._bits))
        self._distinct.add(counted(marked, len(self._bits), self.run))
        self._bits[:] = False
        self._seen = 0

    def miss_probability(self) -> float:
        """The miss rate by the last runs; NaN before the first is complete."""
        return self.entries() / self.run

    def entries(self) -> float:
        """The number of entries that the cache would get in the time of a run: its distinct
        keys."""
        return min(self._distinct.mean, float(self.run)) if self.runs else nan


class NewKeyShare:
    """The probability that the next key was not looked up before: the miss rate of a cache that has
    been in use for some time.

    Where `DistinctShare` takes every run as if its cache were empty at first, keys are remembered
    here (as bits, counted linearly), and only those that each batch adds count. When half of the
    bits are set, all are forgotten.

    >>> seen = NewKeyShare()
    >>> for _ in range(3):
    ...     seen.add(np.arange(100, dtype=np.uint64))
    >>> round(seen.miss_probability(), 2), round(seen.entries())
    (0.0, 100)
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


def raw_share(hashes: Hashes, alpha: float) -> float:
    """The share of distinct keys in one run as if no two could collide: too small, and here only to
    show by how much."""
    places = _places(hashes, int(alpha * len(hashes)))
    return len(np.unique(places)) / len(hashes)


def _places(hashes: Hashes, bits: int) -> npt.NDArray[np.intp]:
    """Which bit each key marks. Hashes are mixed first: the keys of one task may agree in those
    bits of theirs by which rows were routed to it."""
    mixed = (hashes ^ (hashes >> _HALF)) * _MIX
    mixed ^= mixed >> _HALF
    return (mixed % np.uint64(bits)).astype(np.intp)
