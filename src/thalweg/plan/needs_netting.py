"""The test whether equal results may appear and vanish at one instant, so that they have to be
cancelled."""

from __future__ import annotations

from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Column
from thalweg.plan.logical import EmitKind
from thalweg.plan.relations.block import blocks_of
from thalweg.plan.relations.protocol import Relation


def needs_netting(kind: EmitKind, relations: tuple[Relation, ...], catalog: Catalog) -> bool:
    """Whether an equal result may appear and vanish at one instant, so that the two cancel."""
    if kind is EmitKind.RSTREAM or relations[-1].is_netted:
        return False
    if any(leaf.changes for r in relations for leaf in r.leaves):
        return True
    blocks = [block for _, block in blocks_of(relations)]
    if len(relations) > 1 or not blocks:
        return not all(r.only_grows for r in relations)
    (root,) = blocks
    if root.grouping is not None:
        through = {c.expr.name for c in root.columns if isinstance(c.expr, Column)}
        keys = root.grouping.keys
        return not all(k.name in through for k in keys) or not keys
    if root.only_grows:
        return False
    windows = [leaf.window for leaf in root.leaves if leaf.window is not None]
    if any(w.is_ordered for w in windows):
        return True
    # a result that shows the event time of each component has a lifetime of its own
    shown = {c.expr.name for c in root.columns if isinstance(c.expr, Column)}
    times = {
        f"{leaf.alias}.{catalog.stream(leaf.relation).timestamp}"
        for leaf in root.leaves
        if leaf.window is not None
    }
    return not times <= shown
