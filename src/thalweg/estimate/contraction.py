"""Tensors over the buckets of attributes, with named axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_letters

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """A number per combination of buckets of some attributes, one axis each."""

    axes: tuple[str, ...]
    values: Values

    @property
    def total(self) -> float:
        return float(self.values.sum())

    def aligned(self, axes: tuple[str, ...]) -> Tensor:
        """The same with its axes in another order."""
        if axes == self.axes:
            return self
        return Tensor(axes, self.values.transpose([self.axes.index(a) for a in axes]))


def minimum(one: Tensor, other: Tensor) -> Tensor:
    """The lower number of each cell; axes are aligned by name, or cells of different buckets would
    be compared and bounds fall below the truth."""
    return Tensor(one.axes, np.minimum(one.values, other.aligned(one.axes).values))


@dataclass(slots=True)
class Contractions:
    """Multiplies tensors on the axes they share and sums axes out; equal work is done once."""

    done: int = 0
    """How many products were made so far."""
    _known: dict[tuple[int, int, tuple[str, ...]], tuple[Tensor, Tensor, Tensor]] = field(
        default_factory=dict
    )

    def contract(self, one: Tensor, other: Tensor, keep: Sequence[str]) -> Tensor:
        """Over each combination of the kept axes, the sum of products over all other axes."""
        wanted = tuple(a for a in dict.fromkeys((*one.axes, *other.axes)) if a in keep)
        key = (id(one), id(other), wanted)
        if key not in self._known:
            self.done += 1
            self._known[key] = (one, other, _product(one, other, wanted))
        return self._known[key][2]

    def product(self, terms: Sequence[Tensor]) -> float:
        """The sum over all cells of the product of the terms, contracted from the last one on: an
        axis is summed out as soon as no term before uses it."""
        found = terms[-1]
        for i in range(len(terms) - 2, -1, -1):
            before = {a for t in terms[:i] for a in t.axes}
            found = self.contract(terms[i], found, tuple(before))
        return found.total


def _product(one: Tensor, other: Tensor, keep: tuple[str, ...]) -> Tensor:
    letter = dict(zip(dict.fromkeys((*one.axes, *other.axes)), ascii_letters, strict=False))
    words = ("".join(letter[a] for a in axes) for axes in (one.axes, other.axes, keep))
    return Tensor(keep, np.einsum("{},{}->{}".format(*words), one.values, other.values))
