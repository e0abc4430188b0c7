"""The cheapest tree of joins by bounds: bottom-up over connected sub-joins, bushy ones too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from thalweg.estimate.hypergraph import Hypergraph, connected_sets

JoinCost = Callable[[float, float, float], float]
"""The cost of one join: rows of the left, of the right, and of its result."""


@dataclass(frozen=True, slots=True)
class OrderedJoin:
    """A tree of binary joins; an input has no sides. `rows` bounds its result, `cost` is that of
    all joins in it."""

    inputs: int
    rows: float
    cost: float
    left: OrderedJoin | None = None
    right: OrderedJoin | None = None

    @property
    def is_bushy(self) -> bool:
        """Whether some join has a join on both sides."""
        if self.left is None or self.right is None:
            return False
        both = self.left.left is not None and self.right.left is not None
        return both or self.left.is_bushy or self.right.is_bushy

    def text(self, graph: Hypergraph) -> str:
        """The tree with parentheses around each join."""
        if self.left is None or self.right is None:
            return graph.names[self.inputs.bit_length() - 1]
        return f"({self.left.text(graph)} ⋈ {self.right.text(graph)})"


def intermediate_rows(left: float, right: float, result: float) -> float:
    """The rows that a join makes: what they cost to enumerate, shuffle and keep."""
    return result


def best_order(
    graph: Hypergraph,
    rows: Mapping[int, float],
    join_cost: JoinCost = intermediate_rows,
    most: int = 4096,
) -> OrderedJoin:
    """The tree of a connected join with the least total cost; `rows` bounds each connected set.
    No product is ever considered. Of equal costs the shallower tree wins."""
    best: dict[int, OrderedJoin] = {}
    depth: dict[int, int] = {}
    for inputs in connected_sets(graph, most):
        if not inputs & (inputs - 1):
            best[inputs], depth[inputs] = OrderedJoin(inputs, rows[inputs], 0.0), 0
            continue
        ranked: tuple[float, int] | None = None
        left = (inputs - 1) & inputs
        while left:
            right = inputs & ~left
            if left > right and left in best and right in best:
                cost = best[left].cost + best[right].cost
                cost += join_cost(rows[left], rows[right], rows[inputs])
                deep = 1 + max(depth[left], depth[right])
                if ranked is None or (cost, deep) < ranked:
                    ranked = cost, deep
                    best[inputs] = OrderedJoin(inputs, rows[inputs], cost, best[left], best[right])
                    depth[inputs] = deep
            left = (left - 1) & inputs
    return best[graph.whole]
