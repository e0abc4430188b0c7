"""How many bits each column of a table gets when a row may take so many."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Wish(Protocol):
    """What a column makes of its bits."""

    @property
    def most_bits(self) -> int: ...

    def error(self, bits: int) -> float: ...


@dataclass(frozen=True, slots=True)
class CodeWish:
    """A filter column: each end of a range adds, at worst, the rows of one code of equal share."""

    wanted: int

    @property
    def most_bits(self) -> int:
        return min(math.ceil(math.log2(max(self.wanted, 1))), 10)

    def error(self, bits: int) -> float:
        return 0.0 if self.wanted <= 2**bits else 2.0 * 2.0**-bits


@dataclass(frozen=True, slots=True)
class KeyWish:
    """A join column: a key is mixed up with so many others of its bucket, on average."""

    domain: int
    limit: int

    @property
    def most_bits(self) -> int:
        return self.limit

    def error(self, bits: int) -> float:
        return self.domain / 2.0**bits


def share_bits(wishes: Sequence[Wish], bits: int) -> list[int]:
    """Gives bits one by one, each to the column with the largest error then."""
    given = [0 for _ in wishes]
    heap = [(-w.error(g), i) for i, (w, g) in enumerate(zip(wishes, given, strict=True))]
    heapq.heapify(heap)
    left = bits
    while heap and left > 0:
        _, i = heapq.heappop(heap)
        if given[i] < wishes[i].most_bits:
            given[i] += 1
            left -= 1
            heapq.heappush(heap, (-wishes[i].error(given[i]), i))
    return given


def largest_error(wishes: Sequence[Wish], given: Sequence[int]) -> float:
    """That of the columns which could use more bits."""
    open_ended = [w.error(g) for w, g in zip(wishes, given, strict=True) if g < w.most_bits]
    return max(open_ended, default=0.0)
