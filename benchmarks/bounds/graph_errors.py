"""How far sizes of joins are from the truth, on self-joins of power-law graphs.

Bounds under growing budgets of cells, beside what estimates say: the textbook's formula and samples
err to both sides, bounds to one. Errors are those of every connected sub-join, as in the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import median

import numpy as np
import pyarrow as pa

from bounds.graph_queries import generated
from common.harness import Report
from thalweg.estimate.baselines.containment import containment
from thalweg.estimate.baselines.samples import bernoulli, correlated
from thalweg.estimate.budgeted import best_formula
from thalweg.estimate.cyclic import CyclicBounds
from thalweg.estimate.exact_count import ExactCounts
from thalweg.estimate.formulas import ordered_formulas
from thalweg.estimate.fresh import fresh_bound
from thalweg.estimate.hypergraph import Hypergraph, connected_sets, members
from thalweg.estimate.join_order import OrderedJoin, best_order
from thalweg.estimate.join_query import Attribute, JoinInput, JoinQuery
from thalweg.estimate.join_rows import JoinRows, from_tables
from thalweg.estimate.sketch.bound_sketch import BoundSketch, Shape
from thalweg.estimate.sketch.row_groups import RowGroups

BUDGETS = (1, 8, 64, 512, 4096)
TEMPLATES = {
    "chain of 2": ("ab", "bc"),
    "chain of 3": ("ab", "bc", "cd"),
    "chain of 4": ("ab", "bc", "cd", "de"),
    "star": ("xa", "xb", "xc"),
    "star and tail": ("xa", "xb", "xc", "cd"),
}
RISES = "rises of the median error over budgets"
BELOW = "bounds below the truth"
SPREAD = "estimates that spread to both sides"
BUSHY = "templates with a bushy plan by bounds"
KEYS = "rows of plans with key information over those without"


def declare(report: Report) -> None:
    report.declare(RISES, at_most=0, unit="budgets")
    report.declare(BELOW, at_most=0, unit="sub-joins")
    report.declare(SPREAD, at_least=3, unit="of 3")
    report.declare(BUSHY, at_least=1, unit="plans")
    report.declare(KEYS, at_most=1.05)


def run(report: Report, quick: bool) -> None:
    graphs = [generated(seed, 2_000, 12_000) for seed in range(2 if quick else 6)]
    errors: dict[int, list[float]] = {b: [] for b in BUDGETS}
    others: dict[str, list[float]] = {"containment": [], "Bernoulli": [], "correlated": []}
    bushy = 0
    for edges in TEMPLATES.values():
        for graph in graphs:
            rows = joined(edges, graph)
            for inputs, truth in _truths(rows):
                for budget, bound in _bounds(rows, inputs).items():
                    errors[budget].append(bound / truth)
                for name, estimate in _estimates(rows, inputs).items():
                    others[name].append(max(estimate, 0.5) / truth)
            bushy += _is_bushy(rows)
    medians = [median(errors[b]) for b in BUDGETS]
    for budget, found in errors.items():
        _row(report, "thalweg", f"budget {budget}", found)
    for name, found in others.items():
        _row(report, name, "estimate", found)
    report.measure(RISES, sum(b > a for a, b in pairwise(medians)))
    report.measure(BELOW, sum(e < 1 for found in errors.values() for e in found))
    report.measure(SPREAD, sum(min(f) < 0.9 and max(f) > 1.1 for f in others.values()))
    report.measure(BUSHY, bushy)
    report.measure(KEYS, _with_keys(graphs))


def _row(report: Report, system: str, case: str, errors: list[float]) -> None:
    for name, at in (("p10", 10), ("median", 50), ("p90", 90)):
        figure = float(np.percentile(errors, at))
        report.row(f"relative error: {case}", system, name, "x", figure)


def joined(edges: tuple[str, ...], graph: pa.Table) -> JoinRows:
    """A self-join over variables, with a filter on every input."""
    shared = {v for e in edges for v in e if sum(v in o for o in edges) > 1}
    attributes = tuple(Attribute(v) for v in sorted(shared))
    inputs = tuple(
        JoinInput(
            f"e{i}", f"e{i}",
            tuple((v, c) for v, c in zip(e, ("src", "dst"), strict=True) if v in shared),
        )
        for i, e in enumerate(edges)
    )  # fmt: skip
    rng = np.random.default_rng(len(edges))
    tables = {
        f"e{i}": graph.filter(pa.array(rng.random(len(graph)) < 0.3)) for i in range(len(edges))
    }
    return JoinRows.of(JoinQuery(inputs, attributes), from_tables(tables))


def _truths(rows: JoinRows) -> Iterator[tuple[int, int]]:
    counts = ExactCounts(rows)
    for inputs in connected_sets(rows.graph, 100):
        found = counts.count(inputs)
        if inputs & (inputs - 1) and found is not None and found.rows:
            yield inputs, found.rows


def _bounds(rows: JoinRows, inputs: int) -> dict[int, float]:
    """The lowest formula of a sub-join under each budget."""
    chosen = members(inputs)
    graph = Hypergraph(rows.graph.named(inputs), tuple(rows.graph.edges[i] for i in chosen))
    groups = [
        RowGroups.of_hashes(graph.edges[k], [rows.hashes(i, a) for a in graph.edges[k]])
        for k, i in enumerate(chosen)
    ]
    known: dict[tuple[int, Shape], BoundSketch] = {}

    def sketch_of(r: int, shape: Shape) -> BoundSketch:
        if (r, shape) not in known:
            known[r, shape] = groups[r].sketch(shape)
        return known[r, shape]

    formulas = ordered_formulas(graph)
    return {b: best_formula(formulas, sketch_of, b)[1].total for b in BUDGETS}


def _estimates(rows: JoinRows, inputs: int) -> dict[str, float]:
    part = _sub_join(rows, inputs)
    found = {
        "containment": containment(part),
        "Bernoulli": bernoulli(part, 0.05, seed=1),
        "correlated": correlated(part, 0.3, seed=1),
    }
    return {name: float(figure.rows or 0) for name, figure in found.items()}


def _sub_join(rows: JoinRows, inputs: int) -> JoinRows:
    chosen = [rows.query.inputs[i] for i in members(inputs)]
    own = [rows.tables[i].table for i in members(inputs)]
    tables = {r.relation: table for r, table in zip(chosen, own, strict=True)}
    return JoinRows.of(JoinQuery(tuple(chosen), rows.query.attributes), from_tables(tables))


def _is_bushy(rows: JoinRows) -> bool:
    tables = {r.relation: t.table for r, t in zip(rows.query.inputs, rows.tables, strict=True)}
    bounds = fresh_bound(rows.query, tables, degrees="cm_safe")
    sizes = {1 << i: float(rows.size(i)) for i in range(len(rows.tables))}
    for one in bounds.subjoins:
        mask = sum(1 << rows.graph.names.index(n) for n in one.sources)
        sizes[mask] = float(one.figure.rows or 0)
    return best_order(rows.graph, sizes).is_bushy


def _with_keys(graphs: list[pa.Table]) -> float:
    """A graph joined twice with the table of its nodes, a key: the rows of the plan by bounds that
    know how often each key occurs, over those of the plan by bounds whose degrees are counted by
    count-min, which cannot tell a key from other columns."""
    total = {"exact": 0.0, "cm_safe": 0.0}
    for graph in graphs:
        nodes = np.unique(np.concatenate([c.to_numpy() for c in graph.columns]))
        tables = {"e": graph, "f": graph, "n": pa.table({"id": nodes[nodes % 3 > 0]})}
        query = JoinQuery(
            (
                JoinInput("e", "e", (("a", "src"), ("b", "dst"))),
                JoinInput("f", "f", (("b", "src"), ("c", "dst"))),
                JoinInput("m", "n", (("a", "id"),)),
                JoinInput("n", "n", (("c", "id"),)),
            ),
            tuple(Attribute(a) for a in "abc"),
        )
        rows = JoinRows.of(query, from_tables(tables))
        counts, sets = ExactCounts(rows), connected_sets(rows.graph, 100)
        for method in total:
            bounds = CyclicBounds(rows, 64, method)
            sizes = {s: float(bounds.figure(s)[0].rows or 0) for s in sets}
            total[method] += sum(_made(best_order(rows.graph, sizes), counts))
    return total["exact"] / total["cm_safe"]


def _made(plan: OrderedJoin, counts: ExactCounts) -> Iterator[float]:
    """The true rows of each join of a plan."""
    if plan.left is not None and plan.right is not None:
        yield from _made(plan.left, counts)
        yield from _made(plan.right, counts)
        figure = counts.count(plan.inputs)
        yield 0.0 if figure is None else float(figure.rows or 0)
