"""From the logical plan to the physical one: relations, their leaves and pipelines, routing.

`Orders` are the choices that may change between epochs without changing a row: the order of
filters at each leaf and the order of probes in each pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from thalweg.plan import functions
from thalweg.plan.catalog import Catalog
from thalweg.plan.classes import KeyClasses
from thalweg.plan.expr import Column, Expr, Literal, Predicate, columns_of
from thalweg.plan.functions import can_raise
from thalweg.plan.logical import (
    NOW,
    Aggregate,
    Count,
    CountRule,
    Emit,
    EmitKind,
    Filter,
    Join,
    KeptWindow,
    Named,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    Scan,
    Schema,
    Sequence,
    TimeWindow,
    Union,
    Window,
    WindowSpec,
    walk,
)
from thalweg.plan.physical import (
    Block,
    Counted,
    Grouping,
    Leaf,
    Merged,
    Pipeline,
    Probe,
    QueryPlan,
    Relation,
    Routing,
    RoutingKind,
    Sequenced,
)
from thalweg.plan.query import BoundQuery
from thalweg.plan.routing import route_block, route_relations
from thalweg.plan.types import DataType

Predicates = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """Per leaf a permutation of its filters, per stream leaf the order of the other leaves."""

    filters: tuple[tuple[int, ...], ...] = ()
    pipelines: tuple[tuple[int, ...], ...] = ()


def plan_query(query: BoundQuery, catalog: Catalog, orders: Orders | None = None) -> QueryPlan:
    """The physical plan of an optimised query."""
    kind = query.root.kind
    drafts = _Drafts(catalog)
    drafts.relation(query.root.input)
    relations = tuple(drafts.relations)
    root = relations[-1]
    netting = _needs_netting(kind, relations, catalog)
    if len(relations) == 1 and isinstance(root, Block):
        routing = route_block(kind, root, drafts.predicates[0], netting)
    else:
        routing = route_relations(kind, relations, drafts.predicates, netting)
    piped = _with_pipelines(relations, drafts.predicates, routing, orders or Orders())
    return QueryPlan(piped, kind, routing, netting, query.root.order, query.root.limit)


# -- relations ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Drafts:
    """Relations in the order they are needed, blocks without pipelines, and the predicates of
    each block that speak of several leaves or may raise."""

    catalog: Catalog
    relations: list[Relation] = field(default_factory=list)
    predicates: list[tuple[Predicate, ...]] = field(default_factory=list)
    _known: dict[Node, int] = field(default_factory=dict)

    def relation(self, node: Node) -> int:
        """The number of the relation that a node is; equal nodes are one relation."""
        if node not in self._known:
            self._known[node] = self._added(node)
        return self._known[node]

    def _added(self, node: Node) -> int:
        if isinstance(node, Union):
            inputs = tuple(self.relation(m) for m in node.members)
            return self._append(Merged(inputs, node.schema))
        if isinstance(node, Count):
            inputs = tuple(self.relation(m) for m in node.members)
            return self._append(Counted(node.rule, inputs, node.schema))
        if isinstance(node, OuterJoin):
            return (
                self._looked_up(node) if _is_lookup(node) else self.relation(_without_outer(node))
            )
        if isinstance(node, Sequence):
            leaf = self._leaf(Window(node.input, NOW), (), 1, whole=True)
            return self._append(Sequenced(leaf, node.partition_by, node.columns))
        return self._block(node)

    def _append(self, relation: Relation, predicates: tuple[Predicate, ...] = ()) -> int:
        self.relations.append(relation)
        self.predicates.append(predicates)
        return len(self.relations) - 1

    def _block(self, node: Node) -> int:
        parts = _Parts.of(node)
        count = len(parts.members)
        leaves = tuple(self._leaf(m, parts.predicates, count) for m in parts.members)
        grouping = None
        if parts.aggregate is not None:
            group = parts.aggregate
            grouping = Grouping(group.keys, group.aggregates, group.closing)
        top = tuple(p for p in parts.predicates if can_raise(p.expr)) if count > 1 else ()
        block = Block(leaves, (), top, grouping, parts.having, parts.columns)
        return self._append(block, parts.predicates)

    def _looked_up(self, node: OuterJoin) -> int:
        """Rows of a stream without a window beside a table: each is decided when it comes."""
        leaves = tuple(self._leaf(side, (), 1) for side in (node.left, node.right))
        block = Block(leaves, (), (), None, (), _same(node.schema), node.kind)
        return self._append(block, node.predicates)

    def _leaf(self, node: Node, predicates: Predicates, count: int, *, whole: bool = False) -> Leaf:
        """With `whole` the leaf lists all columns of its stream: their order is wanted."""
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
        if isinstance(window, KeptWindow) or whole:
            columns = tuple(f.name for f in below.schema)
        if isinstance(window, KeptWindow):
            post, hints = above, ()
        else:
            filters += above
        return Leaf(
            _alias(below.schema), "", below.schema, window, filters, hints, post, columns, (),
            source, kind,
        )  # fmt: skip

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
            is_static=not _has_streams(node),
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
        if isinstance(window, KeptWindow):
            leaf = Leaf(scan.alias, scan.relation, scan.fields, window, filters, (), above)
            return self._with_order(leaf)
        hints = _hints(scan.fields, predicates, count)
        table = self.catalog.tables.get(scan.relation) if scan.is_table else None
        return Leaf(
            scan.alias, scan.relation, scan.fields, window, filters + above, hints,
            changes=table is not None and table.changes,
        )  # fmt: skip


def _hints(schema: Schema, predicates: Predicates, count: int) -> tuple[Predicate, ...]:
    """Predicates of the block that speak of this leaf alone and may raise."""
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
    """Filters above the window, the window, filters below it, and what it stands over."""
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
    """The shape Project [Filter [Aggregate]] [Join] that the binder and the rewrites produce; a
    node that is less than that is taken as it stands."""

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


def _has_streams(node: Node) -> bool:
    return any(isinstance(n, Scan) and not n.is_table for n in walk(node))


def _is_lookup(node: OuterJoin) -> bool:
    """Whether the left rows never leave and the right ones are of tables: then nothing has to be
    remembered to know who stands alone."""
    windows = [n.window for n in walk(node.left) if isinstance(n, Window)]
    endless = all(isinstance(w, TimeWindow) and w.is_endless for w in windows)
    plain = all(isinstance(n, (Filter, Join, Window, Scan)) for n in walk(node.left))
    return node.kind is not OuterKind.FULL and endless and plain and not _has_streams(node.right)


def _without_outer(node: OuterJoin) -> Node:
    """An outer join in terms of inner joins and counts.

    A left row has a partner as long as the inner join has a result with its content; counting
    both says at every instant which rows stand alone.
    """
    inner = Project(_inner(node), _same(node.left.schema + node.right.schema))
    if node.kind is OuterKind.SEMI:
        return _by_partner(CountRule.SEMI, node.left, inner)
    if node.kind is OuterKind.ANTI:
        return _by_partner(CountRule.ANTI, node.left, inner)
    alone = _by_partner(CountRule.ANTI, node.left, inner)
    padded = Project(alone, _same(node.left.schema) + _null(node.right.schema))
    members = [inner, padded]
    if node.kind is OuterKind.FULL:
        other = _by_partner(CountRule.ANTI, node.right, inner)
        members.append(Project(other, _null(node.left.schema) + _same(node.right.schema)))
    return Union(tuple(members))


def _inner(node: OuterJoin) -> Node:
    """The inner join below an outer one, flat where an inner join stands on a side of it."""
    members: list[Node] = []
    predicates: list[Predicate] = []
    for side in (node.left, node.right):
        inside: Node = side
        own: tuple[Predicate, ...] = ()
        if isinstance(side, Filter) and isinstance(side.input, Join):
            inside, own = side.input, side.predicates
        if isinstance(inside, Join) and not any(
            can_raise(p.expr) for p in (*own, *inside.predicates)
        ):
            members += inside.members
            predicates += [*inside.predicates, *own]
        else:
            members.append(side)
    return Join(tuple(members), (*predicates, *node.predicates))


def _by_partner(rule: CountRule, side: Node, inner: Node) -> Node:
    return Count(rule, (side, Project(inner, _same(side.schema))))


def _same(schema: Schema) -> tuple[Named, ...]:
    return tuple(Named(f.name, f.column()) for f in schema)


def _null(schema: Schema) -> tuple[Named, ...]:
    return tuple(Named(f.name, Literal(f.type, True, None)) for f in schema)


# -- netting -----------------------------------------------------------------------------------


def _needs_netting(kind: EmitKind, relations: tuple[Relation, ...], catalog: Catalog) -> bool:
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
    if any(isinstance(w, KeptWindow) for w in windows):
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
    return relation.grouping is None and all(
        isinstance(w, TimeWindow) and w.is_endless and w.slide is None for w in windows
    )


# -- pipelines ---------------------------------------------------------------------------------


def _with_pipelines(
    relations: tuple[Relation, ...],
    predicates: list[Predicates],
    routing: Routing,
    orders: Orders,
) -> tuple[Relation, ...]:
    found: list[Relation] = []
    first = place = 0
    for relation, own in zip(relations, predicates, strict=True):
        if not isinstance(relation, Block):
            place += isinstance(relation, Sequenced) and relation.leaf.is_stored
            found.append(relation)
            continue
        routed: list[tuple[str, ...] | None] = []
        for leaf in relation.leaves:
            by_key = leaf.is_stored and not leaf.is_table and routing.kind is RoutingKind.KEYS
            routed.append(routing.columns[place] if by_key else None)
            place += leaf.is_stored
        leaves = relation.leaves
        if orders.filters:
            chosen = [orders.filters[(first + i) % len(orders.filters)] for i in range(len(leaves))]
            leaves = tuple(map(_reordered, leaves, chosen))
        classes = KeyClasses(leaves, own)
        pipelines = _pipelines(leaves, classes, routed, orders)
        if relation.outer is not None:
            pipelines = tuple(_outer_lookup(p, relation.outer, classes) for p in pipelines)
        found.append(replace(relation, leaves=leaves, pipelines=pipelines))
        first += len(leaves)
    return tuple(found)


def _reordered(leaf: Leaf, order: tuple[int, ...]) -> Leaf:
    def shuffled(items: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
        if len(items) < 2 or not order:
            return items
        ranks = sorted(range(len(items)), key=lambda i: order[i % len(order)] * 1000 + i)
        return tuple(items[i] for i in ranks)

    return replace(
        leaf,
        filters=shuffled(leaf.filters),
        hints=shuffled(leaf.hints),
        post_filters=shuffled(leaf.post_filters),
    )


def _pipelines(
    leaves: tuple[Leaf, ...],
    classes: KeyClasses,
    routed: list[tuple[str, ...] | None],
    orders: Orders,
) -> tuple[Pipeline, ...]:
    changing = [i for i, leaf in enumerate(leaves) if _brings_changes(leaf, leaves)] or [0]
    found = []
    for n, start in enumerate(changing):
        wanted = orders.pipelines[n % len(orders.pipelines)] if orders.pipelines else ()
        order = _probe_order(start, leaves, classes, wanted)
        found.append(_pipeline(start, order, leaves, classes, routed))
    return tuple(found)


def _outer_lookup(pipeline: Pipeline, kind: OuterKind, classes: KeyClasses) -> Pipeline:
    """All of ON decides whether there is a partner, also what may raise."""
    (probe,) = pipeline.probes
    residual = tuple(p for n, p in enumerate(classes.predicates) if n not in classes.covered)
    return replace(pipeline, probes=(replace(probe, residual=residual, outer=kind),))


def _brings_changes(leaf: Leaf, leaves: tuple[Leaf, ...]) -> bool:
    """Whether changes of a leaf must meet the others. Rows of a stream without a window meet a
    table as it is when they come: what came before is not kept for it."""
    if not leaf.is_table and not leaf.is_static:
        return True
    windows = [other.window for other in leaves if other.window is not None]
    endless = any(isinstance(w, TimeWindow) and w.is_endless for w in windows)
    return (leaf.changes or leaf.is_static) and not endless


def _probe_order(
    start: int, leaves: tuple[Leaf, ...], classes: KeyClasses, wanted: tuple[int, ...]
) -> list[int]:
    """Connected leaves first (no product where a key exists), else in the wanted order."""
    preference = [i for i in wanted if i < len(leaves)] or list(range(len(leaves)))
    preference += [i for i in range(len(leaves)) if i not in preference]
    done, order = {start}, []
    while len(done) < len(leaves):
        open_ = [i for i in preference if i not in done]
        linked = [i for i in open_ if any(i in c and done & set(c) for c in classes.members)]
        chosen = (linked or open_)[0]
        order.append(chosen)
        done.add(chosen)
    return order


def _pipeline(
    start: int,
    order: list[int],
    leaves: tuple[Leaf, ...],
    classes: KeyClasses,
    routed: list[tuple[str, ...] | None],
) -> Pipeline:
    done = [start]
    names = {f.name for f in leaves[start].fields}
    waiting = classes.residual()
    probes = []
    for target in order:
        names |= {f.name for f in leaves[target].fields}
        ready = tuple(p for p in waiting if columns_of(p.expr) <= names)
        waiting = [p for p in waiting if p not in ready]
        probes.append(_probe(target, done, leaves, classes, routed[target], ready))
        done.append(target)
    return Pipeline(start, tuple(probes))


def _probe(
    target: int,
    done: list[int],
    leaves: tuple[Leaf, ...],
    classes: KeyClasses,
    routed: tuple[str, ...] | None,
    residual: tuple[Predicate, ...],
) -> Probe:
    links = [
        (next(c[i] for i in done if i in c), c[target])
        for c in classes.members
        if target in c and any(i in c for i in done)
    ]
    verify = tuple(_equality(s, t, leaves) for s, t in links)
    if routed is not None:
        # the bucket slice of an index exists for the routing key only
        by_target = {leaves[target].bare(t): s for s, t in links}
        source = tuple(by_target[c] for c in routed)
        keyed = {(s, c) for c, s in by_target.items() if c in routed}
        loose = len(keyed) < len(links)
        exact = not loose and _exact(routed, target, leaves)
        return Probe(target, source, routed, exact, verify, residual)
    source = tuple(s for s, _ in links)
    bare = tuple(leaves[target].bare(t) for _, t in links)
    return Probe(target, source, bare, _exact(bare, target, leaves), verify, residual)


def _equality(left: str, right: str, leaves: tuple[Leaf, ...]) -> Predicate:
    columns = {f.name: f.column() for leaf in leaves for f in leaf.fields}
    expr: Expr = functions.resolve("=", [columns[left], columns[right]])
    return Predicate(expr, -1, f"{left} = {right}")


def _exact(columns: tuple[str, ...], target: int, leaves: tuple[Leaf, ...]) -> bool:
    """Whether equal hashes mean equal keys: one column of an integer-like type."""
    if len(columns) != 1:
        return not columns
    dtype = next(f.type for f in leaves[target].fields if leaves[target].bare(f.name) == columns[0])
    return _integer_like(dtype)


def _integer_like(dtype: DataType) -> bool:
    return dtype.is_integer or dtype.name in ("TIMESTAMP", "DATE", "BOOLEAN")
