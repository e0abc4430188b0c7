"""Bounds of joins that are not counted: the lowest of several valid ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.estimate.allocation import Allocation, allocations
from thalweg.estimate.budgeted import cover_bound
from thalweg.estimate.degrees import ESTIMATES, METHODS
from thalweg.estimate.derivations import Derivations, InputTensors
from thalweg.estimate.figure import Figure, Kind
from thalweg.estimate.fractional_cover import agm_bound, agm_formula, cover_weights
from thalweg.estimate.hypergraph import Hypergraph, connected_sets, members
from thalweg.estimate.join_rows import JoinRows
from thalweg.estimate.keys.keyed_table import Numbers
from thalweg.estimate.rounding import rounded_up
from thalweg.estimate.sketch.bound_sketch import Shape
from thalweg.estimate.sketch.row_groups import RowGroups

_MOST_SUBJOINS = 4096


@dataclass(slots=True)
class CyclicBounds:
    """Bounds of the connected sub-joins of one query: derivations over all allocations of a budget,
    and the AGM bound. Rows with NULL where it joins nothing are left out."""

    rows: JoinRows
    budget: int
    method: str
    groups: tuple[RowGroups, ...] = field(init=False)
    _best: dict[int, tuple[float, str]] = field(init=False)

    def __post_init__(self) -> None:
        graph = self.rows.graph
        self.groups = tuple(self._grouped(i) for i in range(len(graph.edges)))
        sets = connected_sets(graph, _MOST_SUBJOINS)
        programme = Derivations(graph, sets)
        self._best = {}
        sketches: dict[tuple[int, Shape], InputTensors] = {}
        for buckets in allocations(graph, sets, self.budget):
            tensors = [self._tensors(i, buckets, sketches) for i in range(len(self.groups))]
            for inputs, one in programme.bounds(tensors).items():
                self._note(inputs, one.total, one.formula + _split(buckets))
        if self.method == "exact":
            self._by_covers(sets)

    def figure(self, inputs: int) -> tuple[Figure, str]:
        """The size of the join of some inputs, and its formula; disconnected parts multiply."""
        kind = Kind.ESTIMATE if self.method in ESTIMATES else Kind.BOUND
        found = [self._best[part] for part in self.rows.graph.components(inputs)]
        total = float(np.prod([value for value, _ in found]))
        return rounded_up(total, kind), " · ".join(formula for _, formula in found)

    def _note(self, inputs: int, value: float, formula: str) -> None:
        if inputs not in self._best or value < self._best[inputs][0]:
            self._best[inputs] = value, formula

    def _grouped(self, one: int) -> RowGroups:
        attributes = self.rows.graph.edges[one]
        numbers = [self.rows.numbers(one, a) for a in attributes]
        hashes = [self.rows.hashes(one, a) for a in attributes]
        kept = np.ones(self.rows.size(one), np.bool_)
        for i, a in enumerate(attributes):
            if self.rows.is_null_safe(a):
                numbers[i] = _with_null(numbers[i])
            else:
                kept &= numbers[i] >= 0
        if not kept.all():
            numbers = [n[kept] for n in numbers]
            hashes = [h[kept] for h in hashes]
        return RowGroups(attributes, tuple(hashes), tuple(numbers), int(kept.sum()))

    def _tensors(
        self, one: int, buckets: Allocation, known: dict[tuple[int, Shape], InputTensors]
    ) -> InputTensors:
        groups = self.groups[one]
        shape = tuple(buckets[a] for a in groups.attributes)
        if (one, shape) not in known:
            exact = self.method == "exact"
            sketch = (
                groups.sketch(shape) if exact else groups.sketch_by(METHODS[self.method], shape)
            )
            known[one, shape] = InputTensors.of(sketch)
        return known[one, shape]

    def _by_covers(self, sets: tuple[int, ...]) -> None:
        graph = self.rows.graph
        distinct = [g.distinct_rows() for g in self.groups]
        for inputs in sets:
            chosen = members(inputs)
            if len(chosen) < 3:
                continue
            edges = [graph.edges[i] for i in chosen]
            sizes = [distinct[i][0] for i in chosen]
            repeats = float(np.prod([float(max(distinct[i][1], 1)) for i in chosen]))
            weights = cover_weights(edges, sizes)
            repeated = [graph.names[i] for i in chosen if distinct[i][1] > 1]
            formula = agm_formula(graph.named(inputs), weights, repeated)
            self._note(inputs, agm_bound(edges, sizes) * repeats, formula)
            if not repeated:
                self._by_split_cover(inputs, sizes, formula)

    def _by_split_cover(self, inputs: int, sizes: list[int], formula: str) -> None:
        """The AGM bound per bucket, of relations without duplicates."""
        chosen = members(inputs)
        graph = Hypergraph(
            self.rows.graph.named(inputs), tuple(self.rows.graph.edges[i] for i in chosen)
        )
        found = cover_bound(
            graph, lambda r, shape: self.groups[chosen[r]].sketch(shape), sizes, self.budget
        )
        self._note(inputs, found.total, formula + _split(found.buckets))


def _with_null(numbers: Numbers) -> Numbers:
    """NULL as a key of its own."""
    return np.where(numbers < 0, np.int32(numbers.max(initial=0) + 1), numbers).astype(np.int32)


def _split(buckets: Allocation) -> str:
    """Over how many buckets a formula is summed."""
    parts = [f"{a}: {n}" for a, n in buckets.items() if n > 1]
    return f" over buckets ({', '.join(parts)})" if parts else ""
