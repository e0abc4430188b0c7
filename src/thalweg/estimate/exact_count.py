"""Exact sizes of acyclic joins from their rows, by sums and products along a join tree.

Below each input, the number of combinations is summed per key and passed upwards; an input
multiplies what its own keys receive:

    m_{c->p}[k] = sum over rows t of c with key k of  w_c(t)
    w_p(t)      = product over children c of m_{c->p}[key of t],       |Q| = sum over rows of w_root

No row is ever joined, so the cost is that of a scan of each input, whatever the size of the join.
Branches that several sub-joins have in common are summed once. Sums are made in doubles, which are
exact below 2^53; larger ones are made modulo several primes and put together (Chinese remainders).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.estimate.figure import MOST, UNKNOWN, Figure, Kind
from thalweg.estimate.hypergraph import Hypergraph
from thalweg.estimate.join_rows import JoinRows
from thalweg.estimate.join_tree import JoinTree, join_tree
from thalweg.instants import Ints

Weights = npt.NDArray[np.float64]
_WHOLE_IN_A_DOUBLE = 2.0**53
_PRIMES = (67108859, 67108837, 67108819, 67108777, 67108763)
"""Below 2^26, so that a product of two and a sum of 2^27 fit a double; together above 10^38."""
_MOST_CELLS = 1 << 22
"""Keys of several attributes are numbered in one grid up to this size, and ranked beyond it."""


@dataclass(slots=True)
class ExactCounts:
    """Sizes of acyclic sub-joins of one query."""

    rows: JoinRows
    _messages: dict[tuple[Any, ...], Weights] = field(default_factory=dict)
    _weights: dict[tuple[Any, ...], Weights | None] = field(default_factory=dict)
    _codes: dict[tuple[int, tuple[str, ...], int], tuple[Any, Any, int]] = field(
        default_factory=dict
    )

    @property
    def graph(self) -> Hypergraph:
        return self.rows.graph

    def count(self, inputs: int) -> Figure | None:
        """The number of rows of the join of some inputs, None if it is cyclic.

        It is exact, but for keys that are equal only as DOUBLE: then it is a bound."""
        found = 1
        kind = Kind.EXACT
        for part in self.graph.components(inputs):
            tree = join_tree(self.graph, part)
            if tree is None:
                return None
            count = self._count(tree)
            if count is None:
                return UNKNOWN
            found *= count
            used = (a for a, h in self.graph.holders.items() if (h & part).bit_count() > 1)
            if any(self.rows.domain(a).lossy for a in used):
                kind = Kind.BOUND
        return Figure.of(found, kind)

    def _count(self, tree: JoinTree) -> int | None:
        rough = self._total(tree, 0)
        if rough < _WHOLE_IN_A_DOUBLE:
            return int(rough)
        if rough > MOST * 1.01:
            return None
        found, modulus = 0, 1
        for prime in _PRIMES:
            wanted = int(self._total(tree, prime))
            found += modulus * ((wanted - found) * pow(modulus, -1, prime) % prime)
            modulus *= prime
        return found

    def _total(self, tree: JoinTree, prime: int) -> float:
        if not tree.children:
            return _reduced_number(float(self.rows.size(tree.node)), prime)
        if not tree.children[0].children and len(tree.children) == 1:
            return self._of_pair(tree, tree.children[0], prime)
        weights = self._weight(tree.node, tree.children, prime)
        assert weights is not None
        return _reduced_number(float(weights.sum()), prime)

    def _of_pair(self, one: JoinTree, other: JoinTree, prime: int) -> float:
        """Two inputs: numbers of rows per key, multiplied."""
        up = self._message(other, one.node, prime)
        down = self._message(JoinTree(one.node, other.keys), other.node, prime)
        return _reduced_number(float(_reduced(up * down, prime).sum()), prime)

    def _weight(self, node: int, children: tuple[JoinTree, ...], prime: int) -> Weights | None:
        """Per row of an input the combinations below it; None: one each."""
        if not children:
            return None
        key = (node, children, prime)
        if key not in self._weights:
            before = self._weight(node, children[:-1], prime)
            child = children[-1]
            message = self._message(child, node, prime)
            met = message[self._pair_codes(node, child.node, child.keys)[0]]
            self._weights[key] = met if before is None else _reduced(before * met, prime)
        return self._weights[key]

    def _message(self, child: JoinTree, parent: int, prime: int) -> Weights:
        """Per key of an edge the combinations at and below the child."""
        key = (child, parent, prime) if len(child.keys) > 1 else (child, prime)
        if key not in self._messages:
            weights = self._weight(child.node, child.children, prime)
            _, codes, size = self._pair_codes(parent, child.node, child.keys)
            sums = np.bincount(codes, weights, size).astype(np.float64, copy=False)
            sums[0] = 0.0
            self._messages[key] = _reduced(sums, prime)
        return self._messages[key]

    def _pair_codes(self, parent: int, child: int, keys: tuple[str, ...]) -> tuple[Any, Any, int]:
        """The keys of an edge as one number per row of the parent and of the child, and one more
        than the largest; 0 joins nothing."""
        if len(keys) == 1:
            (a,) = keys
            return self.rows.codes(parent, a), self.rows.codes(child, a), self.rows.domain(a).size
        low, high = min(parent, child), max(parent, child)
        known = (low, keys, high)
        if known not in self._codes:
            self._codes[known] = self._joined_codes(low, high, keys)
        first, second, size = self._codes[known]
        return (first, second, size) if parent == low else (second, first, size)

    def _joined_codes(self, one: int, other: int, keys: tuple[str, ...]) -> tuple[Any, Any, int]:
        """Codes in a grid of all attributes; where it is too large, ranks of the first input."""
        codes = [self.rows.codes(i, keys[0]).astype(np.int64) for i in (one, other)]
        size = self.rows.domain(keys[0]).size
        for a in keys[1:]:
            span = self.rows.domain(a).size
            more = [self.rows.codes(i, a) for i in (one, other)]
            codes = [
                np.where((b > 0) & (c > 0), b * span + c, 0)
                for b, c in zip(codes, more, strict=True)
            ]
            size *= span
            if size > _MOST_CELLS:
                codes[0], codes[1], size = _ranked(codes[0], codes[1])
        return codes[0], codes[1], size


def _ranked(first: Ints, second: Ints) -> tuple[Ints, Ints, int]:
    """Codes as ranks among those of the first; 0 stays, and what only the second has becomes 0."""
    ranks = np.unique(np.append(first, 0))
    places = np.searchsorted(ranks, second).clip(max=len(ranks) - 1)
    known = np.where(ranks[places] == second, places, 0)
    return np.searchsorted(ranks, first), known, len(ranks)


def _reduced(values: Weights, prime: int) -> Weights:
    return np.fmod(values, prime) if prime else values


def _reduced_number(value: float, prime: int) -> float:
    return math.fmod(value, prime) if prime else value
