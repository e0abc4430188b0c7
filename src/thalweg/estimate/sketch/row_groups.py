"""The builder of sketches from rows: one scan for each degree, in the order of its keys.

Rows are put in the order of each attribute's keys once; a sketch of any shape is then made of runs
of equal keys, without a hash table. That is the single-pass builder for several shapes at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from thalweg.estimate.degrees.protocol import Degrees
from thalweg.estimate.keys.compiled import counting_order, runs_per_cell
from thalweg.estimate.keys.keyed_table import Numbers
from thalweg.estimate.sketch.bound_sketch import BoundSketch, Shape, Values, cell_numbers
from thalweg.instants import Ints
from thalweg.store.hashing import Hashes


@dataclass(slots=True)
class RowGroups:
    """The keys of a relation's rows, without rows that have NULL where it joins nothing. `numbers`
    are the same keys as small integers, of each attribute for itself."""

    attributes: tuple[str, ...]
    hashes: tuple[Hashes, ...]
    numbers: tuple[Numbers, ...]
    rows: int
    _orders: dict[int, Ints] = field(default_factory=dict)
    _whole: tuple[Ints, Ints] | None = None

    @staticmethod
    def of_hashes(
        attributes: Sequence[str], hashes: Sequence[Hashes], rows: int | None = None
    ) -> RowGroups:
        """Rows known by the hashes of their keys alone."""
        numbers = tuple(
            np.unique(h, return_inverse=True)[1].astype(np.int32).reshape(-1) for h in hashes
        )
        count = rows if rows is not None else len(hashes[0])
        return RowGroups(tuple(attributes), tuple(hashes), numbers, count)

    def sketch(self, shape: Shape) -> BoundSketch:
        """Counts and exact degrees over the buckets of a shape."""
        cells = cell_numbers(self.hashes, shape, self.rows)
        size = int(np.prod(shape, dtype=np.int64))
        counts = np.bincount(cells, minlength=size).astype(np.float64)
        degrees, squares = [], []
        for i, numbers in enumerate(self.numbers):
            largest, sums = _runs(numbers, cells, self._order(i), size)
            degrees.append(largest)
            squares.append(sums)
        whole, order = self._rows_in_order()
        repeats, _ = _runs(whole, cells, order, size)
        return BoundSketch(
            self.attributes, shape, None, counts, tuple(degrees), repeats, tuple(squares)
        )

    def sketch_by(self, method: Callable[[int], Degrees], shape: Shape) -> BoundSketch:
        """Counts, and degrees as a method of small space counts them."""
        cells = cell_numbers(self.hashes, shape, self.rows)
        size = int(np.prod(shape, dtype=np.int64))
        counts = np.bincount(cells, minlength=size).astype(np.float64)
        degrees = []
        for hashes in self.hashes:
            counted = method(size)
            counted.update(hashes, cells)
            some = np.minimum(counts, 1.0)
            degrees.append(np.clip(counted.largest(), some, counts))
        return BoundSketch(self.attributes, shape, None, counts, tuple(degrees))

    def distinct_rows(self) -> tuple[int, int]:
        """How many different rows there are, and how often the most frequent one occurs."""
        numbers, order = self._rows_in_order()
        if not self.rows:
            return 0, 0
        ordered = numbers[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        lengths = np.diff(np.append(starts, len(ordered)))
        return len(starts), int(lengths.max())

    def _order(self, i: int) -> Ints:
        if i not in self._orders:
            numbers = self.numbers[i]
            self._orders[i] = counting_order(numbers, int(numbers.max(initial=-1)) + 1)
        return self._orders[i]

    def _rows_in_order(self) -> tuple[Ints, Ints]:
        """Whole rows as small integers, and the rows in the order of these."""
        if self._whole is None and len(self.numbers) == 1:
            self._whole = self.numbers[0].astype(np.int64), self._order(0)
        if self._whole is None:
            whole = np.zeros(self.rows, np.int64)
            for numbers in self.numbers:
                span = int(numbers.max(initial=-1)) + 1
                joint = whole * span + numbers
                whole = np.unique(joint, return_inverse=True)[1].reshape(-1)
            self._whole = whole, counting_order(whole, int(whole.max(initial=-1)) + 1)
        return self._whole


def _runs(keys: Numbers | Ints, cells: Ints, order: Ints, size: int) -> tuple[Values, Values]:
    largest = np.zeros(size, np.int64)
    squares = np.zeros(size)
    runs_per_cell(keys, cells, order, largest, squares)
    return largest.astype(np.float64), squares
