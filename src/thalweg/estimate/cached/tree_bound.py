"""The bound of a join along a tree of its inputs, from messages over key buckets.

The tree is cut at an edge, and messages are passed towards it. An input r with parent key p and
children over other keys gives, for bucket i of p,

    rows[i]   <= sum over rows t of r with p in i of  prod over children c of degree_c[bucket(t)]
    rows[i]   <= (rows of r in i) times the largest of these products in i
    degree[i] <= (largest degree of r in i) times the largest of these products in i,

since row t joins with at most degree_c of child c, whatever its key in that bucket is. Children
over p itself, and the two sides of the cut, meet as in `messages.combined`. All are sums and
products of numbers that are not below the true ones, so the result is not, either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from thalweg.estimate.cached.filtered_input import FilteredInput
from thalweg.estimate.cached.join_trees import Edge, Tree
from thalweg.estimate.cached.matching_entries import Array, Bits, MatchingEntries
from thalweg.estimate.cached.messages import Message, combined, combined_total

Sent = dict[tuple[int, Bits, Tree, tuple[Bits, ...]], Message]
"""Messages by sender, key, and the part of a tree behind them with its keys: sub-joins have many
of them in common."""


@dataclass(frozen=True)
class TreeBound:
    """`keys` has for each edge of the tree the attributes and bits it is over."""

    inputs: Mapping[int, FilteredInput]
    tree: Tree
    keys: Mapping[Edge, Bits]
    sent: Sent = field(default_factory=dict)

    def least(self) -> tuple[float, Edge]:
        """The least bound over the edges to cut, and that edge."""
        return min((self._at(e), e) for e in self._cuts())

    def _cuts(self) -> Iterator[Edge]:
        """All edges, but one only of those over one key at one input: there all meet at once."""
        seen: set[tuple[int, Bits]] = set()
        for edge in self.tree:
            ends = {(i, self.keys[edge]) for i in edge}
            if not seen & ends:
                yield edge
            seen |= ends

    def _at(self, edge: Edge) -> float:
        one, other = edge
        return combined_total([self._message(one, other), self._message(other, one)])

    def _message(self, sender: int, receiver: int) -> Message:
        behind = self._behind(sender, receiver)
        keys = tuple(self.keys[e] for e in behind)
        at = (sender, self._key(sender, receiver), behind, keys)
        if at not in self.sent:
            self.sent[at] = self._make(sender, receiver)
        return self.sent[at]

    def _make(self, sender: int, receiver: int) -> Message:
        over = self._key(sender, receiver)
        same: list[Message] = []
        others: dict[Bits, Message] = {}
        for child in self._neighbours(sender):
            if child != receiver:
                key, message = self._key(sender, child), self._message(child, sender)
                if key == over:
                    same.append(message)
                else:
                    others[key] = combined([others[key], message]) if key in others else message
        source = self.inputs[sender]
        own = _extended(source, over, others) if others else source.own(over)
        return combined([own, *same])

    def _neighbours(self, one: int) -> list[int]:
        return [a if b == one else b for a, b in self.tree if one in (a, b)]

    def _behind(self, sender: int, receiver: int) -> Tree:
        """The edges on the far side of the sender, seen from the receiver."""
        found: set[Edge] = set()
        left = [(sender, receiver)]
        while left:
            one, before = left.pop()
            for other in self._neighbours(one):
                if other != before:
                    found.add((min(one, other), max(one, other)))
                    left.append((other, one))
        return tuple(sorted(found))

    def _key(self, one: int, other: int) -> Bits:
        return self.keys[min(one, other), max(one, other)]


def _extended(source: FilteredInput, over: Bits, children: Mapping[Bits, Message]) -> Message:
    """The input joined with its children over other keys, by bucket of `over`."""
    own = source.own(over)
    total = _total(source, children)
    if source.entries is None:
        most = math.prod(m.most for m in children.values())
        return Message.of(own.rows * most, own.degree * most, total)
    products = _products(source.entries, children)
    rows = source.entries.summed(over, products)
    largest = source.entries.largest(over, products)
    return Message.of(np.minimum(rows, own.rows * largest), own.degree * largest, total)


def _products(entries: MatchingEntries, children: Mapping[Bits, Message]) -> Array:
    """For each entry, the most results of the children that one of its rows joins with."""
    found = [entries.picked(k, np.minimum(m.degree, m.most)) for k, m in children.items()]
    return np.asarray(math.prod(found[1:], start=found[0]), np.float64)


def _total(source: FilteredInput, children: Mapping[Bits, Message]) -> float:
    """All results at once: those with one child, each with the most of all others."""
    found = [source.total * math.prod(m.most for m in children.values())]
    for key, message in children.items():
        rest = math.prod(m.most for k, m in children.items() if k != key)
        found.append(combined_total([source.own(key), message]) * rest)
    return min(found)
