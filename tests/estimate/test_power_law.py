"""Self-joins of power-law graphs: how the error of bounds falls with the budget."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from thalweg.estimate.budgeted import best_formula
from thalweg.estimate.formulas import ordered_formulas
from thalweg.estimate.hypergraph import Hypergraph
from thalweg.estimate.sketch.bound_sketch import BoundSketch, Shape
from thalweg.estimate.sketch.row_groups import RowGroups
from thalweg.store import native

BUDGETS = (1, 8, 64, 512, 4096)
TEMPLATES = {
    "chain of 2": (("a", "b"), ("b", "c")),
    "chain of 3": (("a", "b"), ("b", "c"), ("c", "d")),
    "star": (("x", "a"), ("x", "b"), ("x", "c")),
    "triangle": (("a", "b"), ("b", "c"), ("c", "a")),
}


def graph_of(seed: int, nodes: int = 400, edges: int = 2500) -> np.ndarray:
    """An adjacency matrix: few nodes with many edges, as followers have."""
    rng = np.random.default_rng(seed)
    weight = (1 + np.arange(nodes)) ** -0.8
    ends = [rng.choice(nodes, edges, p=weight / weight.sum()) for _ in range(2)]
    matrix = np.zeros((nodes, nodes))
    matrix[ends[0], rng.permutation(nodes)[ends[1]]] = 1
    return matrix


def truth(template: str, m: np.ndarray) -> float:
    if template == "star":
        return float((m.sum(1) ** 3).sum())
    power = m @ m if template == "chain of 2" else m @ m @ m
    return float(np.trace(power) if template == "triangle" else power.sum())


def errors(template: str, matrices: Sequence[np.ndarray]) -> list[list[float]]:
    """Bound divided by truth, per graph and budget."""
    edges = TEMPLATES[template]
    graph = Hypergraph(tuple(f"e{i}" for i in range(len(edges))), edges)
    found = []
    for matrix in matrices:
        hashes = [native.mix(ends.astype(np.uint64)) for ends in np.nonzero(matrix)]
        groups = [RowGroups.of_hashes(e, hashes) for e in edges]
        known: dict[tuple[int, Shape], BoundSketch] = {}

        def sketch_of(
            r: int, shape: Shape, groups: list[RowGroups] = groups,
            known: dict[tuple[int, Shape], BoundSketch] = known,
        ) -> BoundSketch:  # fmt: skip
            if (r, shape) not in known:
                known[r, shape] = groups[r].sketch(shape)
            return known[r, shape]

        size = truth(template, matrix)
        found.append(
            [best_formula(ordered_formulas(graph), sketch_of, b)[1].total / size for b in BUDGETS]
        )
    return found


def test_the_median_error_falls_with_the_budget() -> None:
    """bounds #12: medians over all templates and graphs; never below the truth."""
    matrices = [graph_of(seed) for seed in range(5)]
    per_query = [e for template in TEMPLATES for e in errors(template, matrices)]
    assert min(min(e) for e in per_query) >= 1
    medians = [median(e[i] for e in per_query) for i in range(len(BUDGETS))]
    assert medians == sorted(medians, reverse=True)
    assert medians[-1] < medians[0]


if __name__ == "__main__":
    graphs = [graph_of(seed) for seed in range(5)]
    for name in TEMPLATES:
        by_graph = errors(name, graphs)
        cells = [f"{median(e[i] for e in by_graph):10.2f}" for i in range(len(BUDGETS))]
        print(f"{name:12}", *cells)
