"""Trees over the inputs of a join along which it is bounded.

An edge stands for the equality of all attributes that its two inputs share; what no edge says is
left out, which can only add results. If an attribute's inputs are connected in the tree by edges
that have it, none of its equalities is left out: that can be had for all of them at once exactly
if the join is alpha-acyclic, and then by any tree of the largest total weight, counting shared
attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

Edge = tuple[int, int]
Tree = tuple[Edge, ...]
MOST_TREES = 16


def shared(attributes: Mapping[int, frozenset[str]], edge: Edge) -> frozenset[str]:
    return attributes[edge[0]] & attributes[edge[1]]


def trees(attributes: Mapping[int, frozenset[str]]) -> list[Tree]:
    """Trees to take the least bound of: one that loses nothing, else several; none if the inputs
    are not connected."""
    edges = [e for e in combinations(sorted(attributes), 2) if shared(attributes, e)]
    edges.sort(key=lambda e: -len(shared(attributes, e)))
    best = _spanning(edges, attributes)
    if best is None:
        return []
    if _weight(best, attributes) == _largest_weight(attributes):
        return [best]
    found = {best}
    for first in edges:
        for without in edges:
            rest = [e for e in edges if e not in (first, without)]
            tree = _spanning([first, *rest], attributes)
            if tree is not None and len(found) < MOST_TREES:
                found.add(tree)
    return sorted(found)


def components(attributes: Mapping[int, frozenset[str]]) -> list[tuple[int, ...]]:
    """The inputs that attributes connect with each other."""
    group = {i: i for i in attributes}
    for one, other in combinations(attributes, 2):
        if shared(attributes, (one, other)):
            group = _united(group, one, other)
    return [tuple(i for i in group if group[i] == g) for g in dict.fromkeys(group.values())]


def is_connected(attributes: Mapping[int, frozenset[str]]) -> bool:
    return len(components(attributes)) == 1


def _united(group: dict[int, int], one: int, other: int) -> dict[int, int]:
    old, new = group[other], group[one]
    return {i: new if g == old else g for i, g in group.items()}


def _spanning(edges: Sequence[Edge], attributes: Mapping[int, frozenset[str]]) -> Tree | None:
    """Edges in the given order, as long as they close no circle."""
    group = {i: i for i in attributes}
    found = []
    for one, other in edges:
        if group[one] != group[other]:
            group = _united(group, one, other)
            found.append((one, other))
    return tuple(sorted(found)) if len(found) == len(attributes) - 1 else None


def _weight(tree: Tree, attributes: Mapping[int, frozenset[str]]) -> int:
    return sum(len(shared(attributes, e)) for e in tree)


def _largest_weight(attributes: Mapping[int, frozenset[str]]) -> int:
    """That of a tree in which the inputs of each attribute are connected."""
    names = frozenset().union(*attributes.values())
    return sum(sum(n in a for a in attributes.values()) - 1 for n in names)
