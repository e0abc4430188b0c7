"""Joins as trees: which leaves are joined with which first, and kept.

A tree is a leaf, or a tuple of trees that are joined with each other. Every inner node below the
root is kept whole: two branches at each node make an XJoin, all leaves under one root an MJoin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from thalweg.plan.joins.join_caches import Span, can_be_kept, is_linked, may_be_kept, with_spans
from thalweg.plan.joins.join_keys import KeyClasses
from thalweg.plan.joins.join_order import PipelineOf, linked, pipeline_of, repiped
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.block import Block

Tree: TypeAlias = "int | tuple[Tree, ...]"


def leaves_of(tree: Tree) -> tuple[int, ...]:
    if isinstance(tree, int):
        return (tree,)
    return tuple(leaf for branch in tree for leaf in leaves_of(branch))


def with_tree(plan: QueryPlan, relation: int, tree: Tree) -> QueryPlan:
    """The plan that joins along a tree. Branches have to be linked by keys."""
    block = plan.block(relation)
    classes = KeyClasses(block.leaves, block.joins)
    spans: list[Span] = []
    for pipeline in block.pipelines:
        order, met = _way_up(tree, pipeline.leaf, classes)
        spans += met
        which = PipelineOf(relation, pipeline.leaf)
        plan = repiped(plan, which, order)
        assert pipeline_of(plan, which).order == tuple(order), "a branch is not linked by keys"
    return with_spans(plan, relation, spans)


def can_follow(block: Block, tree: Tree) -> bool:
    """Whether keys link the branches at every node, and everything below the root can be kept."""
    if isinstance(tree, int):
        return True
    inner = [leaves_of(b) for b in tree if not isinstance(b, int)]
    kept = all(may_be_kept(block, leaves) for leaves in inner)
    return kept and is_linked(block, leaves_of(tree)) and all(can_follow(block, b) for b in tree)


def _way_up(tree: Tree, leaf: int, classes: KeyClasses) -> tuple[list[int], list[Span]]:
    """The order in which rows of a leaf meet the others, and the branches they meet as one."""
    order: list[int] = []
    spans: list[Span] = []
    for level in _met(tree, leaf):
        left = list(level)
        while left:
            done = [leaf, *order]
            near = (b for b in left if any(linked(i, done, classes) for i in leaves_of(b)))
            branch = next(near, left[0])
            left.remove(branch)
            order += _connected(leaves_of(branch), done, classes)
            if not isinstance(branch, int):
                spans.append(Span(leaf, len(done) - 1, len(order) - 1, whole=True))
    return order, spans


def _met(tree: Tree, leaf: int) -> list[list[Tree]]:
    """The branches that rows of a leaf meet on their way up, node by node."""
    if isinstance(tree, int):
        return []
    own = next(b for b in tree if leaf in leaves_of(b))
    return [*_met(own, leaf), [b for b in tree if b is not own]]


def _connected(leaves: Sequence[int], done: list[int], classes: KeyClasses) -> list[int]:
    """Leaves in an order in which each is linked to one before it, where there is such an order."""
    found: list[int] = []
    while len(found) < len(leaves):
        left = [i for i in leaves if i not in found]
        found.append(next((i for i in left if linked(i, [*done, *found], classes)), left[0]))
    return found


def usual_tree(block: Block) -> Tree:
    """Left-deep in the order of FROM, as far as keys allow."""
    classes = KeyClasses(block.leaves, block.joins)
    first, *rest = _connected(range(len(block.leaves)), [], classes)
    tree: Tree = first
    for leaf in rest:
        tree = (tree, leaf)
    return tree


def tree_of(block: Block) -> Tree:
    """The tree that the subresults kept whole make."""
    nodes = {frozenset(range(len(block.leaves)))}
    nodes |= {frozenset(k.members) for k in block.subresults if k.whole}

    def branches(node: frozenset[int]) -> Tree:
        inner = [n for n in nodes if n < node and not any(n < m < node for m in nodes)]
        single = node.difference(*inner) if inner else node
        found = sorted([*([i] for i in single), *map(sorted, inner)])
        return tuple(one[0] if len(one) == 1 else branches(frozenset(one)) for one in found)

    return branches(max(nodes, key=len))


def smallest_tree(block: Block, rows: Callable[[frozenset[int]], float]) -> Tree | None:
    """Of all trees of binary joins that can be kept the one whose inner nodes have the fewest rows
    together; None where there is none."""

    def kept(tree: Tree) -> float:
        inner = [b for b in tree if not isinstance(b, int)] if not isinstance(tree, int) else []
        return sum(rows(frozenset(leaves_of(b))) + kept(b) for b in inner)

    return min(binary_trees(block), key=kept, default=None)


def binary_trees(block: Block) -> Iterator[Tree]:
    """All trees of binary joins without products whose inner nodes can be kept."""
    classes = KeyClasses(block.leaves, block.joins)
    keepable = {i for i, leaf in enumerate(block.leaves) if can_be_kept(leaf)}

    @lru_cache
    def trees(leaves: frozenset[int]) -> tuple[Tree, ...]:
        if len(leaves) == 1:
            return tuple(leaves)
        least, *others = sorted(leaves)
        found: list[Tree] = []
        for bits in range(2 ** len(others) - 1):
            left = frozenset([least, *(o for i, o in enumerate(others) if bits >> i & 1)])
            right = leaves - left
            if not any(linked(i, list(right), classes) for i in left):
                continue
            if any(len(side) > 1 and not side <= keepable for side in (left, right)):
                continue
            found += [(a, b) for a in trees(left) for b in trees(right)]
        return tuple(found)

    yield from trees(frozenset(range(len(block.leaves))))
