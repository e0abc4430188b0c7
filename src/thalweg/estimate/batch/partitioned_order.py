"""The cheapest tree of joins where rows move between machines: shuffles that an earlier join has
made are reused, and small inputs are sent everywhere instead.

Bottom-up over connected sub-joins, bushy ones too, for each of them one tree per way in which its
result is partitioned. A join wants both sides partitioned by all attributes they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from thalweg.estimate.hypergraph import Hypergraph

Rows = Callable[[int], float]
"""The size of the join of some inputs."""

_MOVED = 1.0
"""What moving a row costs, in rows that are made."""


class Tree(NamedTuple):
    """A tree of binary joins over masks of inputs; an input has no sides."""

    inputs: int
    left: Tree | None = None
    right: Tree | None = None

    @property
    def joins(self) -> Iterator[Tree]:
        """All joins in it, lower ones first."""
        if self.left is not None and self.right is not None:
            yield from self.left.joins
            yield from self.right.joins
            yield self

    @property
    def is_bushy(self) -> bool:
        """Whether some join has a join on both sides."""
        return any(
            j.left is not None and j.right is not None and j.left.left and j.right.left
            for j in self.joins
        )

    def text(self, names: Sequence[str]) -> str:
        """The tree with parentheses around each join."""
        if self.left is None or self.right is None:
            return names[self.inputs.bit_length() - 1]
        return f"({self.left.text(names)} ⋈ {self.right.text(names)})"


def same_joins(one: Tree, other: Tree) -> bool:
    """Whether both make the same intermediate results."""
    return {j.inputs for j in one.joins} == {j.inputs for j in other.joins}


def intermediate_rows(tree: Tree, rows: Rows) -> float:
    """The rows of all joins but the last."""
    return sum(rows(j.inputs) for j in tree.joins if j.inputs != tree.inputs)


@dataclass(frozen=True, slots=True)
class _Plan:
    tree: Tree
    cost: float
    depth: int
    partitioned: frozenset[str] | None = None


@dataclass(slots=True)
class PartitionedOrder:
    """Finds trees for one hypergraph. `rows` gives the size of connected sets of inputs; inputs of
    `small` fit every machine."""

    graph: Hypergraph
    sets: Sequence[int]
    rows: Rows
    small: int = 0

    def best(self) -> Tree:
        """The cheapest tree of the whole; parts that share no attribute are joined last, the
        smallest first."""
        best = self._plans()
        parts = [
            min(best[p].values(), key=lambda plan: (plan.cost, plan.depth)).tree
            for p in self.graph.components(self.graph.whole)
        ]
        parts.sort(key=lambda tree: self.rows(tree.inputs))
        found = parts[0]
        for part in parts[1:]:
            found = Tree(found.inputs | part.inputs, found, part)
        return found

    def greedy(self) -> Tree:
        """A good tree of many inputs: always the two that make the smallest join, products last."""
        trees = [Tree(1 << i) for i in range(len(self.graph.edges))]
        while len(trees) > 1:
            pairs = [(a, b) for i, a in enumerate(trees) for b in trees[i + 1 :]]
            joined = [p for p in pairs if self._shared(p[0].inputs, p[1].inputs)] or pairs
            one, other = min(joined, key=lambda p: self.rows(p[0].inputs | p[1].inputs))
            trees = [t for t in trees if t not in (one, other)]
            trees.append(Tree(one.inputs | other.inputs, one, other))
        return trees[0]

    def _plans(self) -> Mapping[int, dict[frozenset[str] | None, _Plan]]:
        best: dict[int, dict[frozenset[str] | None, _Plan]] = {}
        for inputs in self.sets:
            if not inputs & (inputs - 1):
                best[inputs] = {None: _Plan(Tree(inputs), 0.0, 0)}
                continue
            kept: dict[frozenset[str] | None, _Plan] = {}
            left = (inputs - 1) & inputs
            while left:
                right = inputs & ~left
                if left > right and left in best and right in best:
                    for one in best[left].values():
                        for other in best[right].values():
                            for plan in self._joined(one, other):
                                _note(kept, plan)
                left = (left - 1) & inputs
            best[inputs] = kept
        return best

    def _joined(self, one: _Plan, other: _Plan) -> Iterator[_Plan]:
        left, right = one.tree.inputs, other.tree.inputs
        keys = self._shared(left, right)
        sizes = self.rows(left), self.rows(right)
        cost = one.cost + other.cost + self.rows(left | right)
        depth = 1 + max(one.depth, other.depth)
        tree = Tree(left | right, one.tree, other.tree)
        moved = sum(
            size for plan, size in zip((one, other), sizes, strict=True) if plan.partitioned != keys
        )
        yield _Plan(tree, cost + _MOVED * moved, depth, keys)
        for sent, size, stays in ((left, sizes[0], other), (right, sizes[1], one)):
            if sent & self.small == sent:
                yield _Plan(tree, cost + _MOVED * size, depth, stays.partitioned)

    def _shared(self, left: int, right: int) -> frozenset[str]:
        holders = self.graph.holders.items()
        return frozenset(a for a, h in holders if h & left and h & right)


def _note(kept: dict[frozenset[str] | None, _Plan], plan: _Plan) -> None:
    known = kept.get(plan.partitioned)
    if known is None or (plan.cost, plan.depth) < (known.cost, known.depth):
        kept[plan.partitioned] = plan
