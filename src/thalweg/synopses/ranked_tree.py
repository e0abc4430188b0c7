"""A tree over values in arrival order, for aggregates of any range of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.numeric import exact

Array = npt.NDArray[Any]
FAN_OUT = 16
_SPECIALS = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """COUNT, SUM, AVG, MIN and MAX of a range; NULLs do not count, and without any value all but
    the count are None. An integer sum that leaves 64 bits is `overflown`."""

    count: int
    total: int | float | None
    mean: float | None
    least: int | float | None
    most: int | float | None
    overflown: bool = False


class RankedTree:
    """An n-ary tree whose leaves are values in arrival order and whose nodes hold the aggregates of
    the values below them.

    `append` adds at the right end, in constant time a value (amortised). `query(low, high)`
    combines the aggregates of at most `2 · fan_out · ⌈log_fan_out n⌉` nodes: those that lie wholly
    within the range and whose parents do not. `evict(before)` removes whole subtrees on the left.
    Sums are exact and rounded once, so that it makes no difference where subtrees begin.

    Examples
    --------
    >>> tree = RankedTree(fan_out=4)
    >>> tree.append(np.arange(100))
    >>> found = tree.query(10, 90)
    >>> found.count, found.total, found.mean, found.least, found.most
    (80, 3960, 49.5, 10, 89)
    >>> tree.visited <= 2 * 4 * 4
    True

    Reference: Chandrasekaran and Franklin, Streaming Queries over Streaming Data (VLDB 2002), §6.
    """

    def __init__(self, fan_out: int = FAN_OUT) -> None:
        self.fan_out = fan_out
        self.visited = 0
        """Nodes that queries have combined so far."""
        self._levels: list[_Level] = []
        self._integer = True
        self._low, self._width = exact.INTEGER_LIMB, 2

    @property
    def first(self) -> int:
        """The number of the oldest value that has not been evicted."""
        return self._levels[0].base if self._levels else 0

    def __len__(self) -> int:
        """How many values were appended, evicted ones included."""
        return self._levels[0].end if self._levels else 0

    @property
    def nodes(self) -> int:
        """The number of nodes, leaves included."""
        return sum(level.end - level.base for level in self._levels)

    def append(self, values: Array, valid: npt.NDArray[np.bool_] | None = None) -> None:
        """Add values (integers or doubles) at the right end; without `valid` none is NULL."""
        used = np.ones(len(values), np.bool_) if valid is None else valid
        if not self._levels:
            self._integer = values.dtype.kind != "f"
            self._levels = [_Level()]
        self._grow(self._leaves(values, used))

    def _leaves(self, values: Array, used: npt.NDArray[np.bool_]) -> _Nodes:
        order = np.arange(len(values))
        weight = used.astype(np.int8)
        special = np.zeros((len(values), _SPECIALS), np.int64)
        if self._integer:
            values = values.astype(np.int64, copy=False)
            limbs = np.zeros((len(values), 2), np.int64)
            after = np.zeros_like(limbs)
            exact.running_integers(values, order, weight, order, order, limbs, after)
            least = np.where(used, values, np.iinfo(np.int64).max)
            most = np.where(used, values, np.iinfo(np.int64).min)
        else:
            values = values.astype(np.float64, copy=False)
            self._widen(exact.double_limb_range(values, order, weight))
            limbs = np.zeros((len(values), self._width), np.int64)
            totals = np.empty(len(values))
            exact.running_doubles(
                values, order, weight, order, order, limbs, special, self._low, totals
            )
            least = np.where(used, values, np.nan)
            most = np.where(used, values, -np.inf)
        return _Nodes(used.astype(np.int64), limbs, special, least, most)

    def _widen(self, touched: tuple[int, int]) -> None:
        """Widen the sums, so that they reach lower or higher."""
        if touched[1] < touched[0]:
            return
        low = min(self._low, touched[0])
        high = max(self._low + self._width, touched[1] + 2)
        before, after = self._low - low, high - self._low - self._width
        if before or after:
            for level in self._levels:
                level.widen(before, after)
            self._low, self._width = low, high - low

    def _grow(self, fresh: _Nodes) -> None:
        """Append nodes at the right end of a level, and of the level above where they fill one
        there."""
        number = 0
        while len(fresh):
            level = self._levels[number]
            level.add(fresh)
            begin = -(-level.base // self.fan_out)
            if number + 1 < len(self._levels):
                begin = self._levels[number + 1].end
            elif level.end - level.base > self.fan_out:
                self._levels.append(_Level(base=begin))
            else:
                return
            end = level.end // self.fan_out
            fresh = level.part(begin * self.fan_out, end * self.fan_out).grouped(self.fan_out)
            number += 1

    def query(self, low: int, high: int) -> Summary:
        """The aggregates of the values with numbers in [low, high) that have not been evicted."""
        low, high = max(low, self.first), min(high, len(self))
        parts: list[_Nodes] = []
        number = 0
        while low < high:
            level, fan = self._levels[number], self.fan_out
            above = self._levels[number + 1] if number + 1 < len(self._levels) else None
            left, right = -(-low // fan) * fan, high // fan * fan
            if above is not None:
                left = max(left, above.base * fan)
                right = min(right, above.end * fan)
            if above is None or left >= right:
                parts.append(level.part(low, high))
                break
            parts += [level.part(low, left), level.part(right, high)]
            low, high, number = left // fan, right // fan, number + 1
        self.visited += sum(map(len, parts))
        return self._summary(parts)

    def _summary(self, parts: list[_Nodes]) -> Summary:
        count = sum(int(p.count.sum()) for p in parts)
        if not count:
            return Summary(0, None, None, None, None)
        limbs = sum(p.limbs.sum(axis=0) for p in parts)[None, :]
        special = sum(p.special.sum(axis=0) for p in parts)[None, :]
        rounded = float(exact.to_doubles(limbs, special, self._low)[0])
        least = np.concatenate([p.least for p in parts])
        most = np.concatenate([p.most for p in parts])
        if not self._integer:
            low, high = float(np.fmin.reduce(least)), float(np.maximum.reduce(most))
            return Summary(count, rounded, rounded / count, low, high)
        total, overflown = exact.to_integers(limbs)
        return Summary(
            count, int(total[0]), rounded / count, int(least.min()), int(most.max()),
            bool(overflown[0]),
        )  # fmt: skip

    def evict(self, before: int) -> None:
        """Remove subtrees that lie wholly before a number."""
        size = 1
        for level in self._levels:
            gone = min(before, len(self)) // (size * self.fan_out) * self.fan_out - level.base
            level.base += max(gone, 0)
            size *= self.fan_out


@dataclass(slots=True)
class _Nodes:
    """Aggregates side by side; sums are limbs of exact ones. A minimum of nothing is NaN or the
    largest integer, a maximum the smallest."""

    count: Array = field(default_factory=lambda: np.empty(0, np.int64))
    limbs: Array = field(default_factory=lambda: np.empty((0, 0), np.int64))
    special: Array = field(default_factory=lambda: np.empty((0, _SPECIALS), np.int64))
    least: Array = field(default_factory=lambda: np.empty(0))
    most: Array = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.count)

    def part(self, low: int, high: int) -> _Nodes:
        rows = slice(low, high)
        return _Nodes(
            self.count[rows], self.limbs[rows], self.special[rows], self.least[rows],
            self.most[rows],
        )  # fmt: skip

    def room(self, size: int) -> _Nodes:
        """A buffer for this many nodes of the same layout."""
        arrays = (self.count, self.limbs, self.special, self.least, self.most)
        count, limbs, special, least, most = (
            np.empty((size, *a.shape[1:]), a.dtype) for a in arrays
        )
        return _Nodes(count, limbs, special, least, most)

    def put(self, at: int, nodes: _Nodes) -> None:
        rows = slice(at, at + len(nodes))
        if len(nodes):
            self.count[rows], self.limbs[rows] = nodes.count, nodes.limbs
            self.special[rows], self.least[rows] = nodes.special, nodes.least
            self.most[rows] = nodes.most

    def grouped(self, size: int) -> _Nodes:
        """Aggregates of every `size` neighbours."""
        if not len(self):
            return self
        at = np.arange(0, len(self), size)
        lesser = np.fmin if self.least.dtype.kind == "f" else np.minimum
        return _Nodes(
            np.add.reduceat(self.count, at),
            np.add.reduceat(self.limbs, at),
            np.add.reduceat(self.special, at),
            lesser.reduceat(self.least, at),
            np.maximum.reduceat(self.most, at),
        )


@dataclass(slots=True)
class _Level:
    """Nodes of one height, numbered from the first ever appended; those before `base` were evicted.
    They lie in a buffer with room at its end, from the node `origin` on."""

    base: int = 0
    end: int = field(init=False)
    origin: int = field(init=False)
    buffer: _Nodes = field(default_factory=_Nodes)

    def __post_init__(self) -> None:
        self.end = self.origin = self.base

    def part(self, low: int, high: int) -> _Nodes:
        return self.buffer.part(low - self.origin, high - self.origin)

    def add(self, fresh: _Nodes) -> None:
        if self.end - self.origin + len(fresh) > len(self.buffer):
            held = self.part(self.base, self.end)
            self.buffer = fresh.room(2 * (len(held) + len(fresh)))
            self.buffer.put(0, held)
            self.origin = self.base
        self.buffer.put(self.end - self.origin, fresh)
        self.end += len(fresh)

    def widen(self, before: int, after: int) -> None:
        self.buffer.limbs = np.pad(self.buffer.limbs, ((0, 0), (before, after)))
