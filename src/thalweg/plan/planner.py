"""The planner from the logical plan to the physical one: the relations, and the inputs of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from thalweg.errors import NotAvailableYet
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Predicate, columns_of
from thalweg.plan.functions import can_raise
from thalweg.plan.in_as_filter import ask_as_filters
from thalweg.plan.joins.join_order import Orders, Predicates, with_pipelines
from thalweg.plan.joins.join_trees import can_follow, usual_tree
from thalweg.plan.joins.outer_join import is_lookup, same_columns, without_outer
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import (
    Aggregate,
    Count,
    Emit,
    EmitKind,
    Filter,
    Join,
    Named,
    Node,
    OuterJoin,
    Project,
    Scan,
    Schema,
    Sequence,
    Union,
    Window,
    has_streams,
)
from thalweg.plan.needs_netting import needs_netting
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.block import Block, Grouping, blocks_of
from thalweg.plan.relations.over import Sequenced
from thalweg.plan.relations.protocol import Relation
from thalweg.plan.relations.set_operations import Counted
from thalweg.plan.relations.union import UnionAll
from thalweg.plan.routing import route_block, route_relations
from thalweg.windows.protocol import WindowSpec
from thalweg.windows.range import NOW


def plan_query(query: BoundQuery, catalog: Catalog, orders: Orders | None = None) -> QueryPlan:
    """The physical plan of an optimised query."""
    kind = query.root.kind
    drafts = Drafts(catalog)
    drafts.relation(query.root.input)
    relations = tuple(drafts.relations)
    netting = needs_netting(kind, relations, catalog)
    blocks = [block for _, block in blocks_of(relations)]
    if len(relations) == len(blocks) == 1:
        routing = route_block(kind, blocks[0], drafts.predicates[0], netting)
    else:
        routing = route_relations(kind, relations, drafts.predicates, netting)
    piped = with_pipelines(relations, drafts.predicates, routing, orders or Orders())
    piped = ask_as_filters(piped, drafts.predicates)
    if query.options.joins == "xjoin":
        _refuse_impossible_trees(piped)
    return QueryPlan(piped, kind, routing, netting, query.root.order, query.root.limit)


def _refuse_impossible_trees(relations: tuple[Relation, ...]) -> None:
    """Refuse a join tree whose inner nodes cannot be kept, which not every window allows."""
    for _, block in blocks_of(relations):
        if block.is_many_way:
            tree = usual_tree(block)
            if not can_follow(block, tree):
                raise NotAvailableYet(
                    "a tree of joins needs keys between all its branches, and windows over time or "
                    "rows, or tables that do not change, below its root",
                    remedy="leave joins = 'xjoin' out",
                )


@dataclass(slots=True)
class Drafts:
    """Relations in the order they are needed, blocks without pipelines, and the predicates of each
    block that reference several leaves or may raise."""

    catalog: Catalog
    relations: list[Relation] = field(default_factory=list)
    predicates: list[tuple[Predicate, ...]] = field(default_factory=list)
    _known: dict[Node, int] = field(default_factory=dict)

    def relation(self, node: Node) -> int:
        """The number of the relation that a node is; equal nodes are one relation."""
        found = self._known.get(node)  # a node's hash goes through all below it
        if found is None:
            found = self._known[node] = self._added(node)
        return found

    def _added(self, node: Node) -> int:
        lower = LOWERS.get(type(node))
        return self._block(node) if lower is None else lower(self, node)

    def inputs(
        self, node: Union | Count
    ) -> tuple[tuple[int, ...], Schema, tuple[tuple[str, ...], ...]]:
        """The relations of the members, their combined schema, and each member's names of its
        columns."""
        inputs = tuple(self.relation(m) for m in node.members)
        names = tuple(tuple(f.name for f in self.relations[i].schema) for i in inputs)
        return inputs, node.schema, names

    def append(self, relation: Relation, predicates: tuple[Predicate, ...] = ()) -> int:
        self.relations.append(relation)
        self.predicates.append(predicates)
        return len(self.relations) - 1

    def _block(self, node: Node) -> int:
        parts = _Parts.of(node)
        count = len(parts.members)
        leaves = tuple(self.leaf(m, parts.predicates, count) for m in parts.members)
        grouping = None
        if parts.aggregate is not None:
            group = parts.aggregate
            grouping = Grouping(group.keys, group.aggregates, group.closing)
        top = tuple(p for p in parts.predicates if can_raise(p.expr)) if count > 1 else ()
        block = Block(leaves, (), top, grouping, parts.having, parts.columns)
        return self.append(block, parts.predicates)

    def looked_up(self, node: OuterJoin) -> int:
        """The relation of a stream without a window beside a table: each row is decided when it
        arrives."""
        leaves = tuple(self.leaf(side, (), 1) for side in (node.left, node.right))
        block = Block(leaves, (), (), None, (), same_columns(node.schema), node.kind)
        return self.append(block, node.predicates)

    def leaf(self, node: Node, predicates: Predicates, count: int, *, whole: bool = False) -> Leaf:
        """The leaf of a node; with `whole` it lists all columns of its stream: their order is
        wanted."""
        above, window, filters, below = _window_parts(node)
        if isinstance(below, Scan):
            found = self._stored_leaf(below, window, filters, above, predicates, count)
            return self._with_order(found) if whole else found
        if window is None:
            return self._derived_leaf(below, above + filters, predicates, count)
        assert isinstance(below, (Emit, Sequence))
        source = self.relation(below.input if isinstance(below, Emit) else below)
        kind = below.kind if isinstance(below, Emit) else EmitKind.ISTREAM
        hints = _hints(below.schema, predicates, count)
        post: tuple[Predicate, ...] = ()
        columns: tuple[str, ...] = ()
        if window.is_ordered or whole:
            columns = tuple(f.name for f in below.schema)
        if window.is_ordered:
            post, hints = above, ()
        else:
            filters += above
        return Leaf(
            _alias(below.schema), "", below.schema, window, filters, hints, post, columns,
            self._order_by(below) if whole else (), source, kind,
        )  # fmt: skip

    def _order_by(self, node: Node) -> tuple[str, ...]:
        """The columns by which rows of one instant are ordered where OVER builds on OVER."""
        while not isinstance(node, Scan):
            (node,) = node.inputs
        return tuple(f"{node.alias}.{c}" for c in self.catalog.stream(node.relation).order_by)

    def _with_order(self, leaf: Leaf) -> Leaf:
        definition = self.catalog.stream(leaf.relation)
        columns = tuple(f.name for f in definition.fields)
        return replace(leaf, stream_columns=columns, order_by=definition.order_by)

    def _derived_leaf(
        self,
        node: Node,
        filters: tuple[Predicate, ...],
        predicates: Predicates,
        count: int,
    ) -> Leaf:
        source = self.relation(node)
        hints = _hints(node.schema, predicates, count)
        return Leaf(
            _alias(node.schema), "", node.schema, None, filters, hints, source=source,
            is_static=not has_streams(node),
        )  # fmt: skip

    def _stored_leaf(
        self,
        scan: Scan,
        window: WindowSpec | None,
        filters: tuple[Predicate, ...],
        above: tuple[Predicate, ...],
        predicates: Predicates,
        count: int,
    ) -> Leaf:
        if window is not None and window.is_ordered:
            leaf = Leaf(scan.alias, scan.relation, scan.fields, window, filters, (), above)
            return self._with_order(leaf)
        hints = _hints(scan.fields, predicates, count)
        table = self.catalog.tables.get(scan.relation) if scan.is_table else None
        return Leaf(
            scan.alias, scan.relation, scan.fields, window, filters + above, hints,
            changes=table is not None and table.changes,
        )  # fmt: skip


Lower = Callable[[Drafts, Any], int]
LOWERS: dict[type[Node], Lower] = {}
"""The lowering of nodes that are relations of their own; all others are parts of blocks."""


def lowers(kind: type[Node]) -> Callable[[Lower], Lower]:
    """Registers how nodes of a kind are lowered: (drafts, node) -> the number of its relation."""

    def register(lower: Lower) -> Lower:
        LOWERS[kind] = lower
        return lower

    return register


@lowers(Union)
def _union(drafts: Drafts, node: Union) -> int:
    return drafts.append(UnionAll(*drafts.inputs(node)))


@lowers(Count)
def _counted(drafts: Drafts, node: Count) -> int:
    return drafts.append(Counted(node.rule, *drafts.inputs(node)))


@lowers(OuterJoin)
def _outer_join(drafts: Drafts, node: OuterJoin) -> int:
    return drafts.looked_up(node) if is_lookup(node) else drafts.relation(without_outer(node))


@lowers(Sequence)
def _sequence(drafts: Drafts, node: Sequence) -> int:
    leaf = drafts.leaf(Window(node.input, NOW), (), 1, whole=True)
    return drafts.append(Sequenced(leaf, node.partition_by, node.columns))


def _hints(schema: Schema, predicates: Predicates, count: int) -> tuple[Predicate, ...]:
    """Predicates of the block that reference this leaf alone and may raise."""
    own = {f.name for f in schema}
    return tuple(
        p
        for p in predicates
        if count > 1 and columns_of(p.expr) and columns_of(p.expr) <= own and can_raise(p.expr)
    )


def _alias(schema: Schema) -> str:
    """The sources a derived leaf stands for, for EXPLAIN and counters."""
    return "+".join(dict.fromkeys(f.name.split(".", 1)[0] for f in schema)) or "rows"


def _window_parts(
    node: Node,
) -> tuple[tuple[Predicate, ...], WindowSpec | None, tuple[Predicate, ...], Node]:
    """Filters above the window, the window, filters below it, and the input of the window."""
    above: tuple[Predicate, ...] = ()
    below: tuple[Predicate, ...] = ()
    window = None
    if isinstance(node, Filter):
        above, node = node.predicates, node.input
    if isinstance(node, Window):
        window, node = node.window, node.input
    if isinstance(node, Filter):
        below, node = node.predicates, node.input
    return above, window, below, node


@dataclass(slots=True)
class _Parts:
    """The shape Project [Filter [Aggregate]] [Join] that the binder and the rewrites produce; parts
    in brackets may be missing."""

    columns: tuple[Named, ...]
    having: tuple[Predicate, ...]
    aggregate: Aggregate | None
    members: tuple[Node, ...]
    predicates: tuple[Predicate, ...]

    @staticmethod
    def of(node: Node) -> _Parts:
        columns = tuple(Named(f.name, f.column()) for f in node.schema)
        body = node
        if isinstance(node, Project):
            columns, body = node.columns, node.input
        having: tuple[Predicate, ...] = ()
        aggregate = None
        if isinstance(body, Filter) and isinstance(body.input, Aggregate):
            having, body = body.predicates, body.input
        if isinstance(body, Aggregate):
            aggregate, body = body, body.input
        above: tuple[Predicate, ...] = ()
        if isinstance(body, Filter) and isinstance(body.input, Join):
            above, body = body.predicates, body.input
        if isinstance(body, Join):
            return _Parts(columns, having, aggregate, body.members, body.predicates + above)
        return _Parts(columns, having, aggregate, (body,), ())
