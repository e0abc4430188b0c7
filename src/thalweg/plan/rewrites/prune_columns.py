"""Column pruning: scans read only columns that are used."""

from __future__ import annotations

from dataclasses import replace

from thalweg.plan.logical import (
    Node,
    Scan,
    transform,
    walk,
)


def prune_columns(node: Node) -> Node:
    """Scans keep only fields that some expression above them reads."""
    used = frozenset(name for n in walk(node) for name in n.reads())

    def prune(one: Node) -> Node:
        if isinstance(one, Scan):
            return replace(one, fields=tuple(f for f in one.fields if f.name in used))
        return one

    return transform(node, prune)
