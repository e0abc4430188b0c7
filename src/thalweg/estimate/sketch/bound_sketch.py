"""Counts and largest degrees of a relation over the hash buckets of its join attributes.

For an index I with one bucket per attribute let T^I be the rows whose keys hash to it:

    counts[I]     = |T^I|
    degrees[a][I] = max over keys w of |{t in T^I : t[a] = w}|
    repeats[I]    = max over whole rows of how often T^I has them
    squares[a][I] = sum over keys w of |{t in T^I : t[a] = w}|^2

Buckets are hashes modulo powers of two, so that those of a finer shape lie within those of a
coarser one. Only cells with rows are stored where most have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from thalweg.instants import Ints
from thalweg.store.hashing import Hashes

Values = npt.NDArray[np.float64]
Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False, slots=True)
class BoundSketch:
    """`cells` are flat indices of the cells with rows, in ascending order; None: all cells are
    stored. `repeats` and `squares` are missing where degrees were not counted exactly."""

    attributes: tuple[str, ...]
    shape: Shape
    cells: Ints | None
    counts: Values
    degrees: tuple[Values, ...]
    repeats: Values | None = None
    squares: tuple[Values, ...] | None = None

    @property
    def nbytes(self) -> int:
        """The size of all stored numbers."""
        cells = 0 if self.cells is None else self.cells.nbytes
        return int(cells + sum(v.nbytes for v in self.stored))

    def dense(self, values: Values) -> Values:
        """Numbers of this sketch as a tensor, 0 where there are no rows."""
        if self.cells is None:
            return values.reshape(self.shape)
        found = np.zeros(int(np.prod(self.shape, dtype=np.int64)))
        found[self.cells] = values
        return found.reshape(self.shape)

    def _each(self, change: Sequence[Values]) -> BoundSketch:
        k = len(self.attributes)
        rest = list(change[k + 1 :])
        repeats = rest.pop(0) if self.repeats is not None else None
        squares = tuple(rest) if self.squares is not None else None
        return replace(
            self, counts=change[0], degrees=tuple(change[1 : k + 1]), repeats=repeats,
            squares=squares,
        )  # fmt: skip

    @property
    def stored(self) -> list[Values]:
        """Counts, degrees, repeats, squares, as far as there are any."""
        repeats = [] if self.repeats is None else [self.repeats]
        return [self.counts, *self.degrees, *repeats, *(self.squares or ())]

    def full(self) -> BoundSketch:
        """The same with all cells."""
        if self.cells is None:
            return self
        return replace(self._each([self.dense(v).ravel() for v in self.stored]), cells=None)

    def compact(self) -> BoundSketch:
        """The same, with the cells that have rows only, if these are less than half."""
        full = self.full()
        cells = np.flatnonzero(full.counts)
        if 2 * len(cells) >= full.counts.size:
            return full
        return replace(full._each([v[cells] for v in full.stored]), cells=cells)


def bucket(hashes: Hashes, buckets: int) -> Ints:
    """Hashes modulo a power of two."""
    assert buckets & (buckets - 1) == 0, "buckets nest only if they are powers of two"
    return (hashes & np.uint64(buckets - 1)).astype(np.int64)


def cell_numbers(hashes: Sequence[Hashes], shape: Shape, rows: int) -> Ints:
    """The flat cell of each row."""
    cells = np.zeros(rows, np.int64)
    for one, buckets in zip(hashes, shape, strict=True):
        cells = cells * buckets + bucket(one, buckets) if buckets > 1 else cells
    return cells


def merged(one: BoundSketch, other: BoundSketch, disjoint_on: Sequence[str] = ()) -> BoundSketch:
    """The sketch of both row sets, which are disjoint. Counts are exact. Degrees add, which is
    safe; on attributes of which no key is in both, the larger one is exact."""
    assert (one.attributes, one.shape) == (other.attributes, other.shape)
    first, second = one.full(), other.full()
    degrees = tuple(
        np.maximum(d, e) if a in disjoint_on else d + e
        for a, d, e in zip(one.attributes, first.degrees, second.degrees, strict=True)
    )
    found = BoundSketch(one.attributes, one.shape, None, first.counts + second.counts, degrees)
    return found.compact()


def coarsened(sketch: BoundSketch, shape: Shape) -> BoundSketch:
    """The sketch with fewer buckets. Counts are exact. Degrees on an attribute add over merged
    buckets of other attributes and are the largest over its own: safe, not exact."""
    full = sketch.full()
    split: list[int] = []
    for old, new in zip(sketch.shape, shape, strict=True):
        assert old % new == 0, "buckets merge into a divisor of their number"
        split += [old // new, new]  # hash mod old = (h // new) * new + hash mod new
    own = [2 * i for i in range(len(shape))]

    def summed(values: Values, largest_on: int | None) -> Values:
        found: Values = values.reshape(split)
        if largest_on is not None:
            others = tuple(a for a in own if a != own[largest_on])
            found = found.sum(axis=others, keepdims=True).max(axis=own[largest_on], keepdims=True)
        else:
            found = found.sum(axis=tuple(own))
        return found.ravel()

    degrees = tuple(summed(d, i) for i, d in enumerate(full.degrees))
    repeats = full.repeats
    if repeats is not None:  # equal rows share all of their buckets
        repeats = repeats.reshape(split).max(axis=tuple(own)).ravel()
    counts = summed(full.counts, None)
    return BoundSketch(sketch.attributes, shape, None, counts, degrees, repeats).compact()
