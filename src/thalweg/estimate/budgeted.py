"""The bound of one formula under a budget of cells, which never gets looser as the budget grows.

Only join attributes that a count covers are partitioned, at most `budget` combinations of buckets:
n of them get 2^floor(log2(budget) / n) each. Going to a finer nested partition splits every count
additively, while degrees stay or fall, so the sum cannot rise. (Partitioning other attributes may
loosen it.) Formulas have different shapes: the minimum is outside the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.estimate.contraction import Contractions, Tensor
from thalweg.estimate.formulas import Formula
from thalweg.estimate.fractional_cover import cover_weights
from thalweg.estimate.hypergraph import Hypergraph
from thalweg.estimate.sketch.bound_sketch import BoundSketch, Shape

SketchOf = Callable[[int, Shape], BoundSketch]
"""The sketch of a relation, by its number, over the buckets of its attributes."""


@dataclass(frozen=True, slots=True)
class Budgeted:
    """The bound of a formula: its sum, the buckets of each attribute, the cells summed."""

    total: float
    buckets: dict[str, int]
    cells: int


def buckets_of(graph: Hypergraph, split: Sequence[str], budget: int) -> dict[str, int]:
    """The buckets of each attribute where some share a budget and the others are not split."""
    joined = [a for a in split if graph.holders[a].bit_count() > 1]
    bits = (budget.bit_length() - 1) // len(joined) if joined else 0
    return {a: 1 << bits if a in joined else 1 for a in graph.attributes}


def formula_bound(
    formula: Formula, sketch_of: SketchOf, budget: int, contractions: Contractions | None = None
) -> Budgeted:
    """The sum over all combinations of buckets of the product of the formula's terms."""
    graph = formula.graph
    buckets = buckets_of(graph, formula.unconditional, budget)
    tensors = []
    for term in formula.terms:
        edge = graph.edges[term.relation]
        sketch = sketch_of(term.relation, tuple(buckets[a] for a in edge))
        values = sketch.counts if term.given is None else sketch.degrees[edge.index(term.given)]
        tensors.append(Tensor(edge, sketch.dense(values)))
    total = (contractions or Contractions()).product(tensors)
    return Budgeted(total, buckets, int(np.prod(list(buckets.values()))))


def best_formula(
    formulas: Sequence[Formula], sketch_of: SketchOf, budget: int
) -> tuple[Formula, Budgeted]:
    """The formula with the lowest bound under a budget."""
    run = Contractions()
    found = [(f, formula_bound(f, sketch_of, budget, run)) for f in formulas]
    return min(found, key=lambda pair: pair[1].total)


def unbudgeted_bound(
    formulas: Sequence[Formula], sketch_of: SketchOf, buckets: dict[str, int]
) -> float:
    """The sum over all buckets of all attributes of the least formula of each: more buckets may
    loosen it."""
    graph = formulas[0].graph
    axes = graph.attributes
    lowest: np.ndarray | None = None
    for formula in formulas:
        cell = np.ones([buckets[a] for a in axes])
        for term in formula.terms:
            edge = graph.edges[term.relation]
            sketch = sketch_of(term.relation, tuple(buckets[a] for a in edge))
            values = sketch.counts if term.given is None else sketch.degrees[edge.index(term.given)]
            order = sorted(range(len(edge)), key=lambda i: axes.index(edge[i]))
            dense = sketch.dense(values).transpose(order)
            cell = cell * dense.reshape([buckets[a] if a in edge else 1 for a in axes])
        lowest = cell if lowest is None else np.minimum(lowest, cell)
    assert lowest is not None
    return float(lowest.sum())


def cover_bound(
    graph: Hypergraph, sketch_of: SketchOf, sizes: Sequence[int], budget: int
) -> Budgeted:
    """The AGM bound summed over buckets of all attributes, for relations without duplicates: by
    Hoelder's inequality it is at most that without buckets."""
    weights = cover_weights(graph.edges, sizes)
    buckets = buckets_of(graph, graph.attributes, budget)
    tensors = []
    for r, edge in enumerate(graph.edges):
        if weights[r] > 0:
            sketch = sketch_of(r, tuple(buckets[a] for a in edge))
            tensors.append(Tensor(edge, sketch.dense(sketch.counts) ** weights[r]))
    total = Contractions().product(tensors)
    return Budgeted(total, buckets, int(np.prod(list(buckets.values()))))
