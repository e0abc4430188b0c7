"""Join trees of acyclic joins, found by removing ears (Graham, Yu and Ozsoyoglu).

An ear is an input all of whose attributes that others have, too, belong to one other input, its
parent. A join is (alpha-)acyclic iff ears can be removed until one input is left; then joins along
the tree never meet an attribute twice by different ways.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.estimate.hypergraph import Hypergraph, members


@dataclass(frozen=True, slots=True)
class JoinTree:
    """Inputs below one another; the keys of an edge are the attributes it shares with its
    parent."""

    node: int
    keys: tuple[str, ...] = ()
    children: tuple[JoinTree, ...] = ()


def join_tree(graph: Hypergraph, inputs: int) -> JoinTree | None:
    """The join tree of a connected set of inputs, None if their join is cyclic."""
    below: dict[int, list[JoinTree]] = {i: [] for i in members(inputs)}
    rest = inputs
    while rest & (rest - 1):
        ear = _ear(graph, rest)
        if ear is None:
            return None
        node, parent, keys = ear
        below[parent].append(JoinTree(node, keys, tuple(below[node])))
        rest &= ~(1 << node)
    root = rest.bit_length() - 1
    return JoinTree(root, (), tuple(below[root]))


def _ear(graph: Hypergraph, rest: int) -> tuple[int, int, tuple[str, ...]] | None:
    """An ear, its parent and their keys; inputs with few neighbours first, so that the sub-joins
    of one query have most of their branches in common."""
    ranked = sorted(members(rest), key=lambda i: (graph.neighbours[i].bit_count(), i))
    for node in ranked:
        others = rest & ~(1 << node)
        keys = graph.shared(node, others)
        parents = others
        for a in keys:
            parents &= graph.holders[a]
        if parents and keys:
            parent = max(members(parents), key=lambda i: (graph.neighbours[i].bit_count(), -i))
            return node, parent, keys
    return None
