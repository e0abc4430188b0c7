"""Column pruning: scans read only columns that are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from thalweg.plan.logical import (
    Node,
    Scan,
    Sequence,
    transform,
    walk,
)


def prune_columns(node: Node) -> Node:
    """Scans keep only fields that some expression above them reads, and all of them where columns
    with OVER build on others: rows of one instant are in the order of their content."""
    used = frozenset(name for n in walk(node) for name in (*n.reads(), *_order_of(n)))

    def prune(one: Node) -> Node:
        if isinstance(one, Scan):
            return replace(one, fields=tuple(f for f in one.fields if f.name in used))
        return one

    return transform(node, prune)


def _order_of(node: Node) -> Iterator[str]:
    if isinstance(node, Sequence) and isinstance(node.input, Sequence):
        yield from (f.name for f in node.input.schema)
