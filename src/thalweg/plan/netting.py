"""Whether equal results may appear and vanish at one instant, so that they have to be cancelled."""

from __future__ import annotations

from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Column
from thalweg.plan.logical import CountRule, EmitKind
from thalweg.plan.physical import Block, Counted, Merged, Relation, Sequenced


def needs_netting(kind: EmitKind, relations: tuple[Relation, ...], catalog: Catalog) -> bool:
    """Whether an equal result may appear and vanish at one instant, so that the two cancel."""
    if kind is EmitKind.RSTREAM:
        return False
    root = relations[-1]
    if any(leaf.changes for r in relations if isinstance(r, Block) for leaf in r.leaves):
        return True
    if len(relations) > 1:
        return not all(only_grows(r) for r in relations)
    assert isinstance(root, Block)
    if root.grouping is not None:
        through = {c.expr.name for c in root.columns if isinstance(c.expr, Column)}
        keys = root.grouping.keys
        return not all(k.name in through for k in keys) or not keys
    if only_grows(root):
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


def only_grows(relation: Relation) -> bool:
    """Whether no row ever vanishes, given that none does from the inputs."""
    if isinstance(relation, (Merged, Sequenced)):
        return True
    if isinstance(relation, Counted):
        return relation.rule in (CountRule.DISTINCT, CountRule.SEMI, CountRule.INTERSECT)
    windows = [leaf.window for leaf in relation.leaves if leaf.window is not None]
    return relation.grouping is None and all(w.only_grows for w in windows)
