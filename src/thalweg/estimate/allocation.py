"""How a budget of cells is divided over the attributes of a join.

No tensor of an input or of a sub-join gets more cells than the budget. There are several
allocations, since none is best for all data: even ones for each power of two up to the budget, and
at every third power some that prefer one attribute, or two. A larger budget only adds allocations,
so that the minimum over them never rises.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from thalweg.estimate.hypergraph import Hypergraph

_EVERY = 3
_MOST_PAIRS_OF = 4
"""Up to so many attributes, pairs of them are preferred, too."""

Allocation = dict[str, int]


def allocations(graph: Hypergraph, sets: Sequence[int], budget: int) -> list[Allocation]:
    """Numbers of buckets per attribute, each a power of two, coarser allocations first."""
    tensors = _tensors(graph, sets)
    found: dict[tuple[int, ...], Allocation] = {}
    for bits in range(budget.bit_length()):
        for first in _preferred(graph.attributes, bits):
            one = _divided(graph.attributes, tensors, bits, first)
            found.setdefault(tuple(one.values()), one)
    return list(found.values())


def _preferred(attributes: Sequence[str], bits: int) -> Iterator[tuple[str, ...]]:
    yield ()
    if bits and bits % _EVERY == 0:
        yield from ((a,) for a in attributes)
        if 2 < len(attributes) <= _MOST_PAIRS_OF:
            yield from combinations(attributes, 2)


def _tensors(graph: Hypergraph, sets: Sequence[int]) -> list[frozenset[str]]:
    """The axes of all tensors, without those within others."""
    axes = {frozenset(e) for e in graph.edges} | {frozenset(graph.necessary(s)) for s in sets}
    return [t for t in axes if not any(t < other for other in axes)]


def _divided(
    attributes: Sequence[str], tensors: Sequence[frozenset[str]], bits: int, first: Sequence[str]
) -> Allocation:
    """One bit to each attribute in turn while the budget of all of its tensors lasts, first to
    some, then to all."""
    given = dict.fromkeys(attributes, 0)
    for turn in (first, attributes):
        open_ = list(turn)
        while open_:
            for a in list(open_):
                spent = max((sum(given[b] for b in t) for t in tensors if a in t), default=bits)
                if spent < bits:
                    given[a] += 1
                else:
                    open_.remove(a)
    return {a: 1 << n for a, n in given.items()}
