"""Read only the columns somebody looks at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from thalweg.plan.expr import columns_of
from thalweg.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Node,
    OuterJoin,
    Project,
    Scan,
    Sequence,
    Window,
    transform,
    walk,
)


def prune_columns(node: Node) -> Node:
    """Scans keep only fields that some expression above them reads."""
    used = frozenset(name for n in walk(node) for name in _reads(n))

    def prune(one: Node) -> Node:
        if isinstance(one, Scan):
            return replace(one, fields=tuple(f for f in one.fields if f.name in used))
        return one

    return transform(node, prune)


def _reads(node: Node) -> Iterator[str]:
    if isinstance(node, (Filter, Join, OuterJoin)):
        for predicate in node.predicates:
            yield from columns_of(predicate.expr)
    elif isinstance(node, Project):
        for column in node.columns:
            yield from columns_of(column.expr)
    elif isinstance(node, Aggregate):
        for key in node.keys:
            yield from columns_of(key.expr)
        for aggregate in node.aggregates:
            yield from columns_of(aggregate.call)
    elif isinstance(node, Window):
        yield from node.window.partition_by
    elif isinstance(node, Sequence):
        yield from node.partition_by
        yield from (c.column for c in node.columns)
