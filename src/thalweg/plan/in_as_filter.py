"""`x IN (SELECT ...)` over rows under [NOW]: a filter, not a join.

A row under [NOW] is in the answer if its value is in the subquery's at that very instant, and never
again. So nothing has to be joined when the subquery changes: each row is looked up once, in the
cheapest order beside its other predicates.
"""

from __future__ import annotations

from dataclasses import replace

from thalweg.plan.expr import Member, Predicate, columns_of
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import CountRule
from thalweg.plan.pipeline import Pipeline, Probe
from thalweg.plan.relations.block import Block, blocks_of
from thalweg.plan.relations.protocol import Relation
from thalweg.plan.relations.set_operations import Counted
from thalweg.plan.types import BOOLEAN
from thalweg.windows.range import NOW

Predicates = tuple[Predicate, ...]


def ask_as_filters(
    relations: tuple[Relation, ...], predicates: list[Predicates]
) -> tuple[Relation, ...]:
    """In blocks of one stream under [NOW] and memberships, replace the joins by look-ups among the
    stream's filters."""
    found = list(relations)
    for number, block in blocks_of(relations):
        found[number] = _asked(block, relations, predicates[number])
    return tuple(found)


def _asked(block: Block, relations: tuple[Relation, ...], predicates: Predicates) -> Block:
    row, *others = block.leaves
    if not others or block.outer is not None or not _is_instant(row):
        return block
    if not all(_is_set(leaf, relations) for leaf in others):
        return block
    own = {f.name for f in row.fields}
    if not all(columns_of(p.expr) <= own for p in block.top):
        return block
    if block.grouping is None and not all(columns_of(c.expr) <= own for c in block.columns):
        return block  # what stands above reads the others' columns too
    probes = block.pipelines[0].probes
    if not all(p.source and set(p.source) <= own and not p.residual for p in probes):
        return block
    members = tuple(_member(p, row, block.leaves[p.leaf], predicates) for p in probes)
    changed = replace(row, filters=row.filters + block.top, hints=(), members=members)
    return replace(block, leaves=(changed, *others), pipelines=(Pipeline(0, ()),), top=())


def _is_instant(leaf: Leaf) -> bool:
    return leaf.window == NOW and leaf.is_stored and not leaf.post_filters


def _is_set(leaf: Leaf, relations: tuple[Relation, ...]) -> bool:
    """Whether a leaf is the set of values of a subquery, as the binder makes it."""
    if leaf.source is None or leaf.emits is not None or leaf.filters or leaf.hints:
        return False
    source = relations[leaf.source]
    return isinstance(source, Counted) and source.rule is CountRule.DISTINCT


def _member(probe: Probe, row: Leaf, values: Leaf, predicates: Predicates) -> Predicate:
    inside = {values.full(t) for t in probe.target}
    asked = next(p for p in predicates if inside <= columns_of(p.expr))
    fields = {f.name: f for f in row.fields}
    operands = tuple(fields[name].column() for name in probe.source)
    expr = Member(BOOLEAN, False, probe.leaf, operands, probe.target, probe.exact, probe.verify)
    return replace(asked, expr=expr)
