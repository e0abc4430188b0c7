"""The plan of a query at one instant: its windows are replaced by tables.

The caller looks up the content of each window at that instant; with `judged`, rows have passed the
query's WHERE before, and it is not evaluated again.
"""

from __future__ import annotations

from dataclasses import replace

from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Column
from thalweg.plan.logical import Emit, EmitKind, Filter, Node, Scan, Window, transform, walk
from thalweg.plan.physical import QueryPlan
from thalweg.plan.planner import plan_query
from thalweg.plan.relations.block import Block
from thalweg.plan.relations.protocol import Relation
from thalweg.windows.protocol import TimeWindow


def has_snapshots(query: BoundQuery) -> bool:
    """Whether its answer at an instant depends only on which rows lie between which times."""
    windows = [n for n in walk(query.root) if isinstance(n, Window)]
    return query.root.kind is EmitKind.RELATION and all(
        not w.window.is_ordered and _scanned(w) is not None for w in windows
    )


def snapshot_plan(query: BoundQuery, catalog: Catalog, judged: bool = False) -> QueryPlan:
    """The query with its windows replaced by tables."""
    root = transform(query.root, _as_table)
    if judged:
        root = transform(root, _unfiltered)
    assert isinstance(root, Emit)
    return plan_query(replace(query, root=root), catalog)


def picked_columns(plan: QueryPlan) -> list[str] | None:
    """Where a plan over one table only projects columns of every row: which ones, in order."""
    if plan.order or plan.limit is not None:
        return None
    names: list[str] | None = None
    for relation in reversed(plan.relations):
        found = _picked(relation)
        if found is None:
            return None
        names = list(found.values()) if names is None else [found[n] for n in names]
    return names


def _picked(relation: Relation) -> dict[str, str] | None:
    """By the name of each column that a relation only passes on, its name below."""
    if not isinstance(relation, Block) or len(relation.leaves) != 1:
        return None
    leaf = relation.leaves[0]
    asks = leaf.filters or leaf.hints or leaf.post_filters or relation.top or relation.having
    if asks or relation.grouping is not None or leaf.emits is not None:
        return None
    passed = {
        c.name: leaf.bare(c.expr.name) for c in relation.columns if isinstance(c.expr, Column)
    }
    return passed if len(passed) == len(relation.columns) else None


def windows_of(query: BoundQuery) -> dict[str, TimeWindow]:
    """The windows over streams, by alias."""
    found = {}
    for node in walk(query.root):
        if isinstance(node, Window) and isinstance(node.window, TimeWindow):
            scan = _scanned(node)
            if scan is not None:
                found[scan.alias] = node.window
    return found


def _scanned(window: Window) -> Scan | None:
    below = window.input.input if isinstance(window.input, Filter) else window.input
    return below if isinstance(below, Scan) else None


def _as_table(node: Node) -> Node:
    if isinstance(node, Window):
        return node.input
    if isinstance(node, Scan):
        return replace(node, is_table=True)
    return node


def _unfiltered(node: Node) -> Node:
    return node.input if isinstance(node, Filter) and isinstance(node.input, Scan) else node
