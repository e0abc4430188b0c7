"""The shape of a join: inputs as edges over attributes, sets of inputs as bit masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from thalweg.estimate.join_query import JoinQuery


@dataclass(frozen=True)
class Hypergraph:
    """Inputs by name, and the attributes of each. Bit i of a mask stands for input i."""

    names: tuple[str, ...]
    edges: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(query: JoinQuery) -> Hypergraph:
        """The shape of a query; an attribute of one input alone joins nothing and is left out."""
        shared = {a.name for a in query.attributes if len(query.inputs_of(a.name)) > 1}
        edges = tuple(tuple(a for a in r.attributes if a in shared) for r in query.inputs)
        return Hypergraph(tuple(r.alias for r in query.inputs), edges)

    @property
    def whole(self) -> int:
        return (1 << len(self.edges)) - 1

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """All attributes, each once."""
        return tuple(dict.fromkeys(a for edge in self.edges for a in edge))

    @cached_property
    def holders(self) -> dict[str, int]:
        """The inputs that have an attribute."""
        return {
            a: sum(1 << i for i, edge in enumerate(self.edges) if a in edge)
            for a in self.attributes
        }

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """Per input those that share an attribute with it."""
        found = []
        for i, edge in enumerate(self.edges):
            mask = 0
            for a in edge:
                mask |= self.holders[a]
            found.append(mask & ~(1 << i))
        return tuple(found)

    def named(self, inputs: int) -> tuple[str, ...]:
        return tuple(self.names[i] for i in members(inputs))

    def around(self, inputs: int) -> int:
        """The inputs outside that share an attribute with one inside."""
        found = 0
        for i in members(inputs):
            found |= self.neighbours[i]
        return found & ~inputs

    def shared(self, one: int, others: int) -> tuple[str, ...]:
        """The attributes of an input that some of the others have too."""
        return tuple(a for a in self.edges[one] if self.holders[a] & others)

    def necessary(self, inputs: int) -> tuple[str, ...]:
        """The attributes used both inside and by some input outside."""
        return tuple(a for a, h in self.holders.items() if h & inputs and h & ~inputs)

    def is_connected(self, inputs: int) -> bool:
        return bool(inputs) and self.reached(inputs & -inputs, inputs) == inputs

    def reached(self, start: int, within: int) -> int:
        """What can be reached from some inputs within a set."""
        found = start
        while True:
            more = found | (self.around(found) & within)
            if more == found:
                return found
            found = more

    def components(self, inputs: int) -> tuple[int, ...]:
        """The connected parts of a set of inputs."""
        parts = []
        while inputs:
            part = self.reached(inputs & -inputs, inputs)
            parts.append(part)
            inputs &= ~part
        return tuple(parts)


def members(mask: int) -> tuple[int, ...]:
    """The inputs of a mask, in FROM order."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)


def connected_sets(graph: Hypergraph, most: int) -> tuple[int, ...]:
    """All connected sets of inputs, single ones included, smaller ones first.

    Where there would be more than `most`, only the prefixes of one connected order of each
    component: enough to bound the whole.
    """
    layer = [1 << i for i in range(len(graph.edges))]
    found = list(layer)
    while layer:
        larger = {s | 1 << i for s in layer for i in members(graph.around(s))}
        layer = sorted(larger)
        found += layer
        if len(found) > most:
            return _prefixes(graph)
    return tuple(found)


def _prefixes(graph: Hypergraph) -> tuple[int, ...]:
    found = {1 << i for i in range(len(graph.edges))}
    for part in graph.components(graph.whole):
        prefix = part & -part
        while prefix != part:
            prefix |= max(
                (1 << i for i in members(graph.around(prefix))),
                key=lambda one: len(graph.shared(one.bit_length() - 1, prefix)),
            )
            found.add(prefix)
    return tuple(sorted(found, key=lambda s: (s.bit_count(), s)))


def in_words(names: Sequence[str]) -> str:
    """A sub-join as text."""
    return " ⋈ ".join(names)
