"""Output generation: results as one row number per node, columns fetched at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from thalweg.columns.frame import Changes, Frame
from thalweg.columns.vector import Vector
from thalweg.exec.context import TaskContext
from thalweg.exec.joins.partial_results import Node
from thalweg.exec.predicates.conjunction import judge
from thalweg.instants import Ints
from thalweg.plan.expr import Predicate, columns_of
from thalweg.store import native


class Output:
    """Results under construction: per node the row that each result has there (None: result i row
    i)."""

    def __init__(self, ctx: TaskContext, root: Node) -> None:
        self.ctx = ctx
        self.root = root
        alive = root.usable()
        self._at: dict[Node, Ints | None] = {root: None if alive.all() else np.flatnonzero(alive)}
        self._length = int(np.count_nonzero(alive))

    def __len__(self) -> int:
        return self._length

    def attach(self, node: Node) -> bool:
        """Extend every result by every child of its row in the node's parent; returns whether these
        were exactly the node's rows, as there are no others."""
        assert node.parent is not None
        if len(self._at) == 1:  # every row of the source is here once
            alive = node.usable()
            rows = None if alive.all() else np.flatnonzero(alive)
            self._at = {self.root: node.up if rows is None else node.up[rows], node: rows}
            self._length = int(np.count_nonzero(alive))
            return True
        begin, count, order = node.children()
        at = self._at[node.parent]
        if at is not None:
            begin, count = begin[at], count[at]
        which, positions = native.expand_ranges(begin, count, int(count.sum()))
        self._take(which)
        self._at[node] = order[positions]
        return False

    def append(self, node: Node, which: Ints) -> None:
        """Append a node, whose row i belongs to the result `which[i]`."""
        self._take(which)
        self._at[node] = None

    def judge(self, predicates: Sequence[Predicate]) -> None:
        if predicates and len(self):
            frame = self.frame({c for p in predicates for c in columns_of(p.expr)})
            passing = judge(predicates, frame.columns, frame.length, self.ctx).passing
            if len(passing) < len(self):
                self._take(passing)

    def _take(self, rows: Ints) -> None:
        self._at = {node: rows if at is None else at[rows] for node, at in self._at.items()}
        self._length = len(rows)

    @property
    def instants(self) -> Ints:
        return _picked(self.root.instants, self._at[self.root])  # type: ignore[no-any-return]

    def frame(self, names: set[str] | frozenset[str]) -> Frame:
        columns: dict[str, Vector] = {}
        for node, at in self._at.items():
            for name, vector in node.frame.columns.items():
                if name in names:
                    columns[name] = vector if at is None else vector.take(at)
        return Frame(columns, len(self))

    def changes(self, source: Changes, names: frozenset[str], with_ends: bool) -> Changes:
        at = self._at[self.root]
        ends = self._ends() if with_ends else None
        return Changes(self.frame(names), _picked(source.ts, at), _picked(source.signs, at), ends)

    def _ends(self) -> Ints:
        known = [_picked(n.ends, at) for n, at in self._at.items() if n.ends is not None]
        return np.minimum.reduce(known)  # type: ignore[no-any-return]


def _picked(values: Any, at: Ints | None) -> Any:
    return values if at is None else values[at]
