"""Bounding formulas and their sums over buckets: the worked examples, and that they hold."""

from __future__ import annotations

import itertools
from random import Random

import numpy as np
import pytest
from random_joins import TOPOLOGIES, instance, joined_size, key_of

from thalweg.estimate.budgeted import best_formula, buckets_of, formula_bound, unbudgeted_bound
from thalweg.estimate.contraction import Contractions, Tensor, minimum
from thalweg.estimate.derivations import Derivations, InputTensors
from thalweg.estimate.formulas import (
    Formula,
    coverage_formulas,
    coverages,
    ordered_formulas,
    with_private_attributes,
)
from thalweg.estimate.fractional_cover import agm_bound, cover_weights
from thalweg.estimate.hypergraph import Hypergraph, connected_sets
from thalweg.estimate.sketch.bound_sketch import BoundSketch, Shape
from thalweg.estimate.sketch.row_groups import RowGroups

JOB_08C = Hypergraph(
    ("a1", "ci", "mc", "cn"),
    (("name", "people"), ("people", "film"), ("film", "company"), ("company", "·")),
)
TRIANGLE = Hypergraph(("R", "S", "T"), TOPOLOGIES["triangle"])
Rows = list[list[tuple[int, ...]]]


class Sketches:
    """Sketches of relations of whole numbers, which are their own hashes."""

    def __init__(self, graph: Hypergraph, rows: Rows) -> None:
        self.groups = [
            RowGroups.of_hashes(e, [np.array(c, np.uint64) for c in zip(*r, strict=True)])
            if r
            else RowGroups.of_hashes(e, [np.empty(0, np.uint64) for _ in e])
            for e, r in zip(graph.edges, rows, strict=True)
        ]

    def __call__(self, relation: int, shape: Shape) -> BoundSketch:
        return self.groups[relation].sketch(shape)


def texts(formulas: list[Formula]) -> set[str]:
    return {str(f) for f in formulas}


def named(graph: Hypergraph, text: str) -> Formula:
    return next(f for f in coverages(graph) if str(f) == text)


def test_job_08c_has_eight_formulas() -> None:
    """bounds #3"""
    found = texts(coverage_formulas(JOB_08C))
    assert len(found) == 8
    assert "c_a1·d_ci^people·d_mc^film·d_cn^company" in found
    assert "d_a1^people·d_ci^film·d_mc^company·c_cn" in found
    assert sum(f.count("c_") - f.count("c_c") + f.count("·c_c") > 0 for f in found) >= 4
    several = [f for f in coverage_formulas(JOB_08C) if sum(t.given is None for t in f.terms) > 1]
    assert len(several) == 4


def test_circular_formulas_of_the_triangle_are_refused() -> None:
    """bounds #4: without the check, two formulas bound 100 diagonal rows by 1."""
    every = list(coverages(TRIANGLE))
    assert len(every) == 8
    valid = coverage_formulas(TRIANGLE)
    assert texts(valid) == {
        "c_R·d_S^y", "c_R·d_T^x", "c_S·d_T^z", "d_R^y·c_S", "d_R^x·c_T", "d_S^z·c_T",
    }  # fmt: skip
    diagonal = Sketches(TRIANGLE, [[(i, i) for i in range(100)]] * 3)
    for budget in (1, 8, 64):
        assert all(formula_bound(f, diagonal, budget).total >= 100 for f in valid)
    circular = [f for f in every if f not in valid]
    assert len(circular) == 2
    assert all(formula_bound(f, diagonal, 1).total == 1 for f in circular), "uncorrected"


def test_two_of_sixteen_coverages_of_the_four_cycle_are_circular() -> None:
    """bounds #4"""
    graph = Hypergraph(tuple("RSTU"), TOPOLOGIES["cycle"])
    every = list(coverages(graph))
    assert (len(every), sum(not f.is_valid for f in every)) == (16, 2)


def test_bags_of_a_triangle_have_ordered_formulas_only() -> None:
    """bounds #4: with private attributes no coverage is valid, derivations are."""
    assert coverage_formulas(with_private_attributes(TRIANGLE)) == []
    found = ordered_formulas(TRIANGLE)
    assert found
    assert all(f.is_valid and len(f.terms) == 3 for f in found)


def test_agm_bound_of_a_triangle() -> None:
    """bounds #5"""
    for size in (10, 1000, 123_457):
        found = agm_bound(TRIANGLE.edges, [size] * 3)
        assert found == pytest.approx(size**1.5, rel=1e-9)
    assert cover_weights(TRIANGLE.edges, [10, 10, 10**9])[2] == pytest.approx(0)


def test_agm_does_not_hold_for_bags() -> None:
    """bounds #5: duplicated rows break it; the product of the largest multiplicities repairs it."""
    rows = [[(0, 0)] * 4] * 3
    assert agm_bound(TRIANGLE.edges, [len(r) for r in rows]) < 4**3
    assert agm_bound(TRIANGLE.edges, [1, 1, 1]) * 4 * 4 * 4 >= 4**3


def chain_example() -> dict[str, Tensor]:
    """R(w,x), S(x,y), T(y,z), W(z,v) over four buckets of x, y and z."""
    return {
        "c_R": Tensor(("x",), np.array([100.0, 40, 20, 30])),
        "d_R^x": Tensor(("x",), np.array([1.0, 2, 3, 4])),
        "c_S": Tensor(("x", "y"), np.diag([10.0, 25, 100, 55])),
        "d_S^x": Tensor(("x", "y"), np.diag([4.0, 5, 13, 3])),
        "d_T^y": Tensor(
            ("y", "z"), np.array([[1.0, 1, 0, 1], [2, 4, 4, 0], [0, 0, 0, 4], [1, 2, 1, 3]])
        ),
        "d_W^z": Tensor(("z",), np.array([1.0, 2, 3, 4])),
    }


def test_contraction_computes_what_two_formulas_share_once() -> None:
    """bounds #6: two formulas of a chain, 13,160 and 10,370 (over data of ours: the note prints the
    results and the shared vector only)."""
    t = chain_example()
    run = Contractions()
    shared = run.contract(t["d_T^y"], t["d_W^z"], ("y",))
    assert shared.values.tolist() == [7, 22, 16, 20]
    assert run.product([t[n] for n in ("c_R", "d_S^x", "d_T^y", "d_W^z")]) == 13_160
    assert run.product([t[n] for n in ("d_R^x", "c_S", "d_T^y", "d_W^z")]) == 10_370
    assert run.done == 5, "three products for each formula, one of them common"
    alone = Contractions()
    for names in (("c_R", "d_S^x", "d_T^y", "d_W^z"), ("d_R^x", "c_S", "d_T^y", "d_W^z")):
        alone = Contractions(alone.done)
        alone.product([t[n] for n in names])
    assert alone.done == 6


def test_elementwise_minimum() -> None:
    """bounds #7: [2, 100], cell by cell the lower of two formulas."""
    degree = Tensor(("x",), np.array([1.0, 1]))
    many = Tensor(("x", "y"), np.array([[1.0, 99], [1, 99]]))
    r = InputTensors(Tensor(("x",), np.array([1.0, 99])), {"x": degree})
    ones = Tensor(("x", "y"), np.ones((2, 2)))
    s = InputTensors(many, {"x": ones, "y": many})
    run = Contractions()
    first, second = (
        run.contract(one, other, ("y",))
        for one, other in ((r.counts, s.degrees["x"]), (degree, s.counts))
    )
    assert first.values.tolist() == [100, 100]
    assert second.values.tolist() == [2, 198]
    assert minimum(first, second).values.tolist() == [2, 100]
    outside = InputTensors(Tensor(("y",), np.ones(2)), {"y": Tensor(("y",), np.ones(2))})
    graph = Hypergraph(("R", "S", "U"), (("x",), ("x", "y"), ("y",)))
    found = Derivations(graph, connected_sets(graph, 100)).bounds([r, s, outside])
    assert found[0b011].total == 102


def test_minimum_aligns_axes_by_name() -> None:
    """bounds #7: by position, cells of different buckets would be compared."""
    one = Tensor(("x", "y"), np.array([[1.0, 5], [7, 2]]))
    other = Tensor(("y", "x"), np.array([[1.0, 7], [5, 2]]))
    assert minimum(one, other).values.tolist() == one.values.tolist()


APPENDIX_C = Hypergraph(("R", "S", "T"), (("x", "y"), ("y", "z"), ("z", "w")))
APPENDIX_C_ROWS: Rows = [
    [(0, 0), (0, 1), (1, 0), (1, 1)],
    [(0, 0), (1, 0), (2, 1), (3, 1)],
    [(i, i) for i in range(4)],
]


def test_more_buckets_may_loosen_a_bound_without_a_budget() -> None:
    """bounds #8: 4, 8 and 4 for 1, 2 and 4 buckets; under a budget the first formula stays at 4."""
    sketches = Sketches(APPENDIX_C, APPENDIX_C_ROWS)
    formulas = coverage_formulas(APPENDIX_C)
    found = [
        unbudgeted_bound(formulas, sketches, {"x": 1, "y": m, "z": m, "w": 1}) for m in (1, 2, 4)
    ]
    assert found == [4, 8, 4]
    first = named(APPENDIX_C, "c_R·d_S^y·d_T^z")
    assert [formula_bound(first, sketches, b).total for b in (1, 2, 4, 8)] == [4, 4, 4, 4]


def test_how_a_budget_is_divided() -> None:
    """bounds #9: only join attributes that a count covers are split; never more cells than the
    budget are summed."""
    graph = Hypergraph(("aka", "ci", "mc", "cn"), (("x", "y"), ("y", "z"), ("z", "w"), ("w",)))
    first, second = (named(graph, t) for t in ("c_aka·d_ci^y·d_mc^z", "d_aka^y·c_ci·d_mc^z"))
    assert buckets_of(graph, first.unconditional, 4) == {"x": 1, "y": 4, "z": 1, "w": 1}
    assert buckets_of(graph, second.unconditional, 4) == {"x": 1, "y": 2, "z": 2, "w": 1}
    sketches = Sketches(graph, [[(1, 1)], [(1, 1)], [(1, 1)], [(1,)]])
    for formula, budget in itertools.product(coverage_formulas(graph), (1, 4, 8, 512, 1000)):
        assert formula_bound(formula, sketches, budget).cells <= budget


def random_rows(rng: Random, graph: Hypergraph) -> Rows:
    return [
        [tuple(min(rng.randrange(16), rng.randrange(16)) for _ in e) for _ in range(30)]
        for e in graph.edges
    ]


@pytest.mark.parametrize("topology", ["chain", "star", "triangle", "cycle"])
def test_larger_nested_budgets_never_loosen_a_formula(topology: str) -> None:
    """bounds #11"""
    graph = Hypergraph(tuple("RSTU")[: len(TOPOLOGIES[topology])], TOPOLOGIES[topology])
    formulas = coverage_formulas(graph) + ordered_formulas(graph)[:12]
    for seed in range(3):
        sketches = Sketches(graph, random_rows(Random(seed), graph))
        for formula in formulas:
            found = [formula_bound(formula, sketches, 1 << b).total for b in range(10)]
            assert found == sorted(found, reverse=True), str(formula)


@pytest.mark.parametrize("topology", ["chain", "star", "triangle", "cycle", "shared"])
def test_budgeted_bounds_hold_for_bags(topology: str) -> None:
    """bounds #10: derivations under four budgets, against nested loops."""
    for seed in range(25):
        found = instance(Random(f"{topology}{seed}"), topology, unique=False, most=14)
        graph = Hypergraph.of(found.query)
        truth = joined_size(found, range(len(graph.edges)))
        safe = {a.name: a.null_safe for a in found.query.attributes}
        numbers: dict[object, int] = {}
        rows: Rows = []
        for edge, own in zip(graph.edges, found.rows, strict=True):
            keyed = [[(a, key_of(r[a])) for a in edge] for r in own]
            kept = [k for k in keyed if all(v != "NULL" or safe[a] for a, v in k)]
            rows.append([tuple(numbers.setdefault(v, len(numbers)) for _, v in k) for k in kept])
        sketches = Sketches(graph, rows)
        for budget in (1, 8, 64, 512):
            formula, bound = best_formula(ordered_formulas(graph), sketches, budget)
            assert bound.total >= truth, str(formula)
