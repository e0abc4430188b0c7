"""Trees of joins: XJoins, MJoins and what lies between give the same rows, and can be switched."""

from __future__ import annotations

from random import Random

import pytest
from inspecting import Inspector

from thalweg.errors import NotAvailableYet
from thalweg.plan.joins.join_trees import Tree, binary_trees, leaves_of, usual_tree, with_tree
from thalweg.testing.compare import difference, from_table
from thalweg.testing.grid import load, reference_result
from thalweg.testing.joingraphs import random_join
from thalweg.testing.runner import Runner

SEEDS = range(60)


@pytest.mark.parametrize("part", range(4))
def test_every_tree_gives_the_same_rows(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All XJoins; their inner nodes are exactly their joins after every epoch (streamon #25)."""
    inspector = Inspector(monkeypatch)
    trees = 0
    for seed in SEEDS[part::4]:
        case = random_join(seed, sources=3 + seed % 2)
        expected = reference_result(case)
        runner = load(Runner(), case)
        block = runner.query(case.sql, name="q").plan.blocks[0]
        found = list(binary_trees(block))
        assert found
        for tree in Random(seed).sample(found, min(3, len(found))):
            runner = load(Runner(epochs=6), case)
            query = runner.query(case.sql, name="q")
            plans = runner.core.plans
            plans.replace("q", with_tree(plans["q"], 0, tree))
            runner.core.adaptation.queries.clear()  # nobody else changes the plan
            assert plans["q"].blocks[0].subresults or "table" in case.features
            runner.run()
            assert difference(expected.emitted, from_table(query.results())) is None, (tree, case)
            trees += 1
    assert trees > 10
    assert inspector.checked > 20


def test_trees_can_be_switched_while_they_run() -> None:
    """Another tree before every epoch, MJoin among them: not a row is lost (streamon #25, #28)."""
    for seed in SEEDS[:40]:
        case = random_join(seed, sources=3 + seed % 2)
        rng = Random(seed)
        runner = load(Runner(epochs=8), case)
        query = runner.query(case.sql, name="q")
        plans, usual = runner.core.plans, runner.epoch
        runner.core.adaptation.queries.clear()
        trees: list[Tree] = [*binary_trees(query.plan.blocks[0])]
        trees.append(tuple(range(len(query.plan.leaves))))

        def epoch(*given: object, **how: bool) -> object:
            plans.replace("q", with_tree(plans["q"], 0, rng.choice(trees)))  # noqa: B023
            return usual(*given, **how)  # type: ignore[arg-type] # noqa: B023

        runner.epoch = epoch  # type: ignore[assignment, method-assign]
        runner.run()
        expected = reference_result(case)
        assert difference(expected.emitted, from_table(query.results())) is None, case.sql


def test_the_usual_tree_has_every_leaf_once() -> None:
    """Left-deep, linked by keys."""
    for seed in range(60):
        case = random_join(seed)
        block = load(Runner(), case).query(case.sql, name="q").plan.blocks[0]
        assert sorted(leaves_of(usual_tree(block))) == list(range(len(block.leaves)))


def test_an_impossible_tree_is_refused() -> None:
    """Before anything starts, with a remedy."""
    case = random_join(0, sources=3)
    runner = load(Runner(), case)
    name = next(iter(case.streams))
    with pytest.raises(NotAvailableYet, match="leave joins = 'xjoin' out"):
        runner.query(
            f"SELECT a.v FROM {name} [NOW] a, {name} [SESSION GAP 2 SECONDS] b, {name} [NOW] c "
            "WHERE a.k = b.k AND b.x = c.x WITH (joins = 'xjoin')"
        )


def test_the_option_makes_a_tree() -> None:
    """`joins = 'xjoin'` keeps inner nodes, and gives the rows that `mjoin` gives."""
    cases = (random_join(seed, sources=3) for seed in range(50))
    case = next(c for c in cases if {"star", "range", "relation"} <= c.features - {"table"})
    assert "table" not in case.features
    sql = case.sql.split(" WITH ")[0]
    runner = load(Runner(epochs=4), case)
    tree = runner.query(f"{sql} WITH (joins = 'xjoin', unbounded = true)", name="tree")
    plain = runner.query(f"{sql} WITH (joins = 'mjoin', unbounded = true)", name="plain")
    assert tree.plan.blocks[0].subresults
    assert not plain.plan.blocks[0].subresults
    runner.run()
    assert difference(from_table(plain.results()), from_table(tree.results())) is None
    assert tree.results().num_rows
