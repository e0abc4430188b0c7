"""Sizes of sub-joins for ordering: guaranteed ones, and the textbook's beside them.

From rows at hand, acyclic sub-joins are counted exactly and only cyclic ones are bounded. From
sketches all are bounded. Where the textbook's estimate lies far below a bound it may be the bound
that is loose, or a disaster that the estimate does not see: then the bound is trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from thalweg.estimate.allocation import allocations
from thalweg.estimate.baselines.containment import containment
from thalweg.estimate.cyclic import CyclicBounds
from thalweg.estimate.derivations import Derivations, InputTensors
from thalweg.estimate.exact_count import ExactCounts
from thalweg.estimate.figure import UNKNOWN, Figure, Kind
from thalweg.estimate.hypergraph import Hypergraph, connected_sets
from thalweg.estimate.join_rows import JoinRows
from thalweg.estimate.rounding import rounded_up
from thalweg.estimate.sketch.bound_sketch import BoundSketch, Shape, coarsened

BUCKETS = 512
MOST_SETS = 1024
DISASTER = 10.0
"""How far above its estimate a bound is no longer looseness: what bounds of 512 buckets exceed the
truth by at the ninth decile."""


class Sizes(Protocol):
    """Sizes of the joins of some inputs, as masks."""

    @property
    def graph(self) -> Hypergraph: ...
    def figure(self, inputs: int) -> Figure:
        """A guaranteed size."""
        ...

    def estimate(self, inputs: int) -> float:
        """The textbook's size: keys of the smaller domain are contained in the larger."""
        ...


@dataclass(slots=True)
class RowSizes:
    """Sizes from the rows of all inputs."""

    rows: JoinRows
    _counts: ExactCounts = field(init=False)
    _known: dict[int, Figure] = field(default_factory=dict)
    _cyclic: CyclicBounds | None = None

    def __post_init__(self) -> None:
        self._counts = ExactCounts(self.rows)

    @property
    def graph(self) -> Hypergraph:
        return self.rows.graph

    def figure(self, inputs: int) -> Figure:
        if inputs not in self._known:
            self._known[inputs] = self._counts.count(inputs) or self._bounded(inputs)
        return self._known[inputs]

    def estimate(self, inputs: int) -> float:
        return float(containment(self.rows, inputs).rows or 0)

    def _bounded(self, inputs: int) -> Figure:
        if self._cyclic is None:
            self._cyclic = CyclicBounds(self.rows, BUCKETS, "exact")
        return self._cyclic.figure(inputs)[0]


@dataclass(slots=True)
class SketchSizes:
    """Sizes from sketches of all inputs, each in one or more shapes over one hash. `distinct` has
    the number of keys of each attribute per input, for the estimate."""

    graph: Hypergraph
    sketches: Sequence[Mapping[Shape, BoundSketch]]
    distinct: Sequence[Mapping[str, float]]
    _best: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sets = connected_sets(self.graph, MOST_SETS)
        programme = Derivations(self.graph, sets)
        for buckets in allocations(self.graph, sets, self._budget):
            shapes = [tuple(buckets[a] for a in e) for e in self.graph.edges]
            tensors = [self._tensors(i, shape) for i, shape in enumerate(shapes)]
            if all(t is not None for t in tensors):
                found = programme.bounds([t for t in tensors if t is not None])
                for inputs, one in found.items():
                    self._best[inputs] = min(one.total, self._best.get(inputs, one.total))

    @property
    def _budget(self) -> int:
        return max(max(_cells(s) for s in one) for one in self.sketches)

    def _tensors(self, one: int, shape: Shape) -> InputTensors | None:
        """Of the shape itself, or of one that nests it."""
        known = self.sketches[one]
        if shape in known:
            return InputTensors.of(known[shape])
        finer = [s for s in known if all(a % b == 0 for a, b in zip(s, shape, strict=True))]
        if not finer:
            return None
        return InputTensors.of(coarsened(known[min(finer, key=_cells)], shape))

    def figure(self, inputs: int) -> Figure:
        found = 1.0
        for part in self.graph.components(inputs):
            if part not in self._best:
                return UNKNOWN
            found *= self._best[part]
        return rounded_up(found, Kind.BOUND)

    def estimate(self, inputs: int) -> float:
        chosen = [i for i in range(len(self.graph.edges)) if inputs >> i & 1]
        size = 1.0
        for i in chosen:
            size *= self._best[1 << i]
        for attribute in self.graph.attributes:
            keys = sorted(self.distinct[i].get(attribute, 0.0) for i in chosen)
            several = [k for i, k in zip(range(len(keys)), keys, strict=True) if k]
            for k in several[1:]:
                size /= max(k, 1.0)
        return size


def _cells(shape: Shape) -> int:
    found = 1
    for n in shape:
        found *= n
    return found


@dataclass(frozen=True, slots=True)
class Trusted:
    """The sizes to order by. `by_bounds` says whether some bound lies so far above its estimate
    that estimates cannot be trusted; exact sizes always are."""

    rows: Callable[[int], float]
    by_bounds: bool


def trusted(sizes: Sizes, sets: Sequence[int]) -> Trusted:
    """Bounds, or estimates where these and the bounds agree within the disaster indicator."""
    figures = {s: sizes.figure(s) for s in sets}
    is_exact = all(f.kind is Kind.EXACT for f in figures.values())
    far = any(
        f.kind is not Kind.EXACT and (f.rows is None or f.rows > DISASTER * _least(sizes, s))
        for s, f in figures.items()
    )

    def bound(inputs: int) -> float:
        rows = sizes.figure(inputs).rows
        return float("inf") if rows is None else float(rows)

    def lower(inputs: int) -> float:
        figure = sizes.figure(inputs)
        if figure.kind is Kind.EXACT:
            return bound(inputs)
        return min(bound(inputs), sizes.estimate(inputs))

    return Trusted(bound if is_exact or far else lower, is_exact or far)


def _least(sizes: Sizes, inputs: int) -> float:
    return max(sizes.estimate(inputs), 1.0)
