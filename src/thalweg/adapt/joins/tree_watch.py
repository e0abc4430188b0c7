"""Joins as trees of kept subresults, where a query requests one (`joins = 'xjoin'`).

The tree is that of the plan, if sizes of subresults have advised one, or the first that keys allow,
and stays: it is the only candidate, and nothing is observed
for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.adapt.trial import Trial
from thalweg.adapt.watch import Candidate, Known, Watch, WatchKind, WatchProfiler
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.joins.join_trees import Tree, tree_of, usual_tree, with_tree
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.block import blocks_of


class TreeWatch(Watch[Tree]):
    """The tree of one join."""

    def __init__(self, plan: QueryPlan, relation: int) -> None:
        super().__init__(None, "tree", Trial())
        self._relation = relation
        self._block = plan.block(relation)
        self._tree = tree_of(self._block) if self._block.subresults else usual_tree(self._block)

    @property
    def choice(self) -> Tree:
        return self._tree

    def candidates(self, compare: bool) -> Sequence[Candidate[Tree]]:
        return [Candidate(self._tree)]

    def cost(self, choice: Tree) -> float | None:
        return None

    def take(self, choice: Tree) -> None:
        self._tree = choice

    def applied(self, plan: QueryPlan) -> QueryPlan:
        return with_tree(plan, self._relation, self._tree)

    def shown(self, choice: Tree) -> tuple[str, ...]:
        return (self._text(choice),)

    def lines(self, profiler: WatchProfiler) -> list[str]:
        return [f"tree: {self._text(self._tree)}, as asked for"]

    def _text(self, tree: Tree) -> str:
        if isinstance(tree, int):
            return self._block.leaves[tree].alias
        return f"({' ⋈ '.join(map(self._text, tree))})"


def _find(plan: QueryPlan, options: QueryOptions, known: Known) -> list[TreeWatch]:
    if options.joins != "xjoin":
        return []
    return [TreeWatch(plan, n) for n, r in blocks_of(plan.relations) if r.is_many_way]


TREES = WatchKind("trees", _find)
