"""From the logical plan to the physical one: leaves, pipelines, routing.

`Orders` are the choices that may change between epochs without changing a row: the order of
filters at each leaf and the order of probes in each pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from thalweg.plan import functions
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Call, Column, Expr, Predicate, columns_of
from thalweg.plan.functions import can_raise
from thalweg.plan.logical import (
    Aggregate,
    EmitKind,
    Filter,
    Join,
    Node,
    Project,
    RowWindow,
    Scan,
    TimeWindow,
    Window,
)
from thalweg.plan.physical import (
    Grouping,
    Leaf,
    Pipeline,
    Probe,
    QueryPlan,
    Routing,
    RoutingKind,
)
from thalweg.plan.query import BoundQuery
from thalweg.plan.types import DataType


@dataclass(frozen=True, slots=True)
class Orders:
    """Per leaf a permutation of its filters, per stream leaf the order of the other leaves."""

    filters: tuple[tuple[int, ...], ...] = ()
    pipelines: tuple[tuple[int, ...], ...] = ()


def plan_query(query: BoundQuery, catalog: Catalog, orders: Orders | None = None) -> QueryPlan:
    """The physical plan of an optimised query."""
    parts = _Parts.of(query.root.input)
    leaves = tuple(_leaf(m, parts.predicates, catalog, len(parts.members)) for m in parts.members)
    if orders is not None and orders.filters:
        leaves = tuple(map(_reordered, leaves, orders.filters))
    classes = _Classes(leaves, parts.predicates)
    grouping = None
    if parts.aggregate is not None:
        grouping = Grouping(parts.aggregate.keys, parts.aggregate.aggregates)
    netting = _needs_netting(query.root.kind, leaves, parts, grouping, catalog)
    routing = _routing(query.root.kind, leaves, classes, parts, grouping, netting)
    pipelines = _pipelines(leaves, classes, routing, parts.predicates, orders)
    top = tuple(p for p in parts.predicates if can_raise(p.expr)) if len(leaves) > 1 else ()
    return QueryPlan(
        leaves, pipelines, top, grouping, parts.having, parts.project.columns, query.root.kind,
        routing, netting,
    )  # fmt: skip


@dataclass(slots=True)
class _Parts:
    """The shape Project [Filter [Aggregate]] [Join] that the binder and the rewrites produce."""

    project: Project
    having: tuple[Predicate, ...]
    aggregate: Aggregate | None
    members: tuple[Node, ...]
    predicates: tuple[Predicate, ...]

    @staticmethod
    def of(node: Node) -> _Parts:
        assert isinstance(node, Project)
        project, body = node, node.input
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
            return _Parts(project, having, aggregate, body.members, body.predicates + above)
        return _Parts(project, having, aggregate, (body,), ())


def _leaf(node: Node, predicates: Sequence[Predicate], catalog: Catalog, count: int) -> Leaf:
    filters: tuple[Predicate, ...] = ()
    post: tuple[Predicate, ...] = ()
    window = None
    above: tuple[Predicate, ...] = ()
    if isinstance(node, Filter):
        above, node = node.predicates, node.input
    if isinstance(node, Window):
        window, node = node.window, node.input
    if isinstance(node, Filter):
        filters, node = node.predicates, node.input
    if isinstance(window, RowWindow):
        post = above
    else:
        filters += above
    assert isinstance(node, Scan)
    own = {f.name for f in node.fields}
    judged = tuple(
        p for p in predicates if columns_of(p.expr) and columns_of(p.expr) <= own and count > 1
    )
    hints = tuple(p for p in judged if can_raise(p.expr))
    if isinstance(window, RowWindow):
        definition = catalog.streams[node.relation]
        columns = tuple(f.name for f in definition.fields)
        return Leaf(
            node.alias, node.relation, node.fields, window, filters, (), post, columns,
            definition.order_by,
        )  # fmt: skip
    return Leaf(node.alias, node.relation, node.fields, window, filters, hints, post)


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


# -- equivalence classes of join columns -------------------------------------------------------


@dataclass(slots=True)
class _Classes:
    """Columns that equality predicates make equal; one column per leaf stands for its class."""

    leaves: tuple[Leaf, ...]
    predicates: tuple[Predicate, ...]
    members: list[dict[int, str]] = field(default_factory=list)
    covered: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        owner = {f.name: i for i, leaf in enumerate(self.leaves) for f in leaf.fields}
        pairs = [(n, _equal_columns(p.expr)) for n, p in enumerate(self.predicates)]
        groups: list[set[str]] = []
        for _, pair in pairs:
            if pair is not None and owner[pair[0]] != owner[pair[1]]:
                touched = [g for g in groups if g & set(pair)]
                merged = set(pair).union(*touched)
                groups = [g for g in groups if g not in touched] + [merged]
        for group in groups:
            chosen: dict[int, str] = {}
            for name in sorted(group):
                chosen.setdefault(owner[name], name)
            self.members.append(chosen)
        for n, pair in pairs:
            if pair is not None and any(set(pair) <= set(c.values()) for c in self.members):
                self.covered.add(n)

    def shared_by(self, wanted: Sequence[int]) -> list[dict[int, str]]:
        return [c for c in self.members if all(i in c for i in wanted)]

    def residual(self) -> list[Predicate]:
        """Predicates that no key settles and that cannot raise."""
        return [
            p
            for n, p in enumerate(self.predicates)
            if n not in self.covered and not can_raise(p.expr)
        ]


def _equal_columns(expr: Expr) -> tuple[str, str] | None:
    if isinstance(expr, Call) and expr.function == "=":
        left, right = (_widened(a) for a in expr.args)
        if left is not None and right is not None and left != right:
            return left, right
    return None


def _widened(expr: Expr) -> str | None:
    """The column under casts that keep the hash of a value."""
    if isinstance(expr, Column):
        return None if expr.type.name == "DECIMAL" else expr.name
    if isinstance(expr, Call) and expr.function == "cast":
        source, target = expr.args[0].type, expr.type
        same = source.is_integer and target.is_integer and source.bits <= target.bits
        if same or (source.name, target.name) == ("FLOAT", "DOUBLE"):
            return _widened(expr.args[0])
    return None


# -- routing -----------------------------------------------------------------------------------


def _routing(
    kind: EmitKind,
    leaves: tuple[Leaf, ...],
    classes: _Classes,
    parts: _Parts,
    grouping: Grouping | None,
    netting: bool,
) -> Routing:
    nothing: tuple[tuple[str, ...], ...] = ((),) * len(leaves)
    if kind is EmitKind.RSTREAM:
        return Routing(RoutingKind.SINGLE, nothing, "RSTREAM repeats the whole relation")
    streams = [i for i, leaf in enumerate(leaves) if not leaf.is_table]
    visible = _visible_columns(parts, grouping)
    candidates = _candidates(leaves, classes, streams, visible, grouping, netting)
    for key in candidates:
        reason = _obstacle(key, leaves, visible, grouping, netting)
        if reason is None:
            columns = tuple(
                tuple(leaf.bare(key[n][i]) for n in range(len(key)) if i in key[n])
                if not leaf.is_table
                else ()
                for i, leaf in enumerate(leaves)
            )
            return Routing(RoutingKind.KEYS, columns)
    if (
        grouping is None
        and not netting
        and len(streams) == 1
        and not leaves[streams[0]].is_row_window
    ):
        return Routing(RoutingKind.ANY, nothing)
    return Routing(RoutingKind.SINGLE, nothing, _why_single(leaves, classes, streams, grouping))


def _candidates(
    leaves: tuple[Leaf, ...],
    classes: _Classes,
    streams: list[int],
    visible: frozenset[str],
    grouping: Grouping | None,
    netting: bool,
) -> list[list[dict[int, str]]]:
    if len(streams) > 1:
        shared = classes.shared_by(streams)
        usable = [c for c in shared if not netting or visible & set(c.values())]
        return [usable] if usable else []
    if grouping is None and not netting and not leaves[streams[0]].is_row_window:
        return []
    only = streams[0]
    own = [f.name for f in leaves[only].fields]
    window = leaves[only].window
    if isinstance(window, RowWindow):
        own = [n for n in own if n in window.partition_by]
    if grouping is not None:
        keys = {k.expr.name for k in grouping.keys if isinstance(k.expr, Column)}
        own = [n for n in own if n in keys]
    if netting:
        own = [n for n in own if n in visible]
    hashable = [n for n in own if _hashable(leaves[only], n)]
    return [[{only: n} for n in hashable]] if hashable else []


def _hashable(leaf: Leaf, name: str) -> bool:
    return next(f.type for f in leaf.fields if f.name == name).name != "DECIMAL"


def _obstacle(
    key: list[dict[int, str]],
    leaves: tuple[Leaf, ...],
    visible: frozenset[str],
    grouping: Grouping | None,
    netting: bool,
) -> str | None:
    for i, leaf in enumerate(leaves):
        if isinstance(leaf.window, RowWindow):
            routed = {c[i] for c in key if i in c}
            if not routed or not routed <= set(leaf.window.partition_by):
                return "a row window needs its stream's whole order"
    if grouping is not None:
        grouped = {k.expr.name for k in grouping.keys if isinstance(k.expr, Column)}
        if not all(grouped & set(c.values()) for c in key):
            return "groups span the join key"
    if netting and not all(visible & set(c.values()) for c in key):
        return "equal results may come from different keys"
    return None


def _why_single(
    leaves: tuple[Leaf, ...], classes: _Classes, streams: list[int], grouping: Grouping | None
) -> str:
    if any(isinstance(leaf.window, RowWindow) for leaf in leaves):
        return "a row window needs its stream's whole order"
    if len(streams) > 1 and not classes.shared_by(streams):
        return "the streams share no common join key"
    if grouping is not None and not grouping.keys:
        return "one group takes in every row"
    if grouping is not None:
        return "groups cannot be told apart by the join key"
    return "equal results may come from different keys"


def _visible_columns(parts: _Parts, grouping: Grouping | None) -> frozenset[str]:
    """Input columns that the output shows unchanged: equal output means equal values."""
    through = {c.expr.name for c in parts.project.columns if isinstance(c.expr, Column)}
    if grouping is None:
        return frozenset(through)
    return frozenset(
        k.expr.name for k in grouping.keys if isinstance(k.expr, Column) and k.name in through
    )


def _needs_netting(
    kind: EmitKind,
    leaves: tuple[Leaf, ...],
    parts: _Parts,
    grouping: Grouping | None,
    catalog: Catalog,
) -> bool:
    """Whether an equal result may appear and vanish at one instant, so that the two cancel."""
    if kind is EmitKind.RSTREAM:
        return False
    if grouping is not None:
        through = {c.expr.name for c in parts.project.columns if isinstance(c.expr, Column)}
        return not all(k.name in through for k in grouping.keys) or not grouping.keys
    windows = [leaf.window for leaf in leaves if leaf.window is not None]
    if all(isinstance(w, TimeWindow) and w.range is None and w.slide is None for w in windows):
        return False
    if any(isinstance(w, RowWindow) for w in windows):
        return True
    # a result that shows the event time of each component has a lifetime of its own
    shown = {c.expr.name for c in parts.project.columns if isinstance(c.expr, Column)}
    times = {
        f"{leaf.alias}.{catalog.streams[leaf.relation].timestamp}"
        for leaf in leaves
        if leaf.window is not None
    }
    return not times <= shown


# -- pipelines ---------------------------------------------------------------------------------


def _pipelines(
    leaves: tuple[Leaf, ...],
    classes: _Classes,
    routing: Routing,
    predicates: tuple[Predicate, ...],
    orders: Orders | None,
) -> tuple[Pipeline, ...]:
    streams = [i for i, leaf in enumerate(leaves) if not leaf.is_table]
    found = []
    for n, start in enumerate(streams):
        wanted = orders.pipelines[n % len(orders.pipelines)] if orders and orders.pipelines else ()
        order = _probe_order(start, leaves, classes, wanted)
        found.append(_pipeline(start, order, leaves, classes, routing))
    return tuple(found)


def _probe_order(
    start: int, leaves: tuple[Leaf, ...], classes: _Classes, wanted: tuple[int, ...]
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
    classes: _Classes,
    routing: Routing,
) -> Pipeline:
    done = [start]
    names = {f.name for f in leaves[start].fields}
    waiting = classes.residual()
    probes = []
    for target in order:
        names |= {f.name for f in leaves[target].fields}
        ready = tuple(p for p in waiting if columns_of(p.expr) <= names)
        waiting = [p for p in waiting if p not in ready]
        probes.append(_probe(target, done, leaves, classes, routing, ready))
        done.append(target)
    return Pipeline(start, tuple(probes))


def _probe(
    target: int,
    done: list[int],
    leaves: tuple[Leaf, ...],
    classes: _Classes,
    routing: Routing,
    residual: tuple[Predicate, ...],
) -> Probe:
    links = [
        (next(c[i] for i in done if i in c), c[target])
        for c in classes.members
        if target in c and any(i in c for i in done)
    ]
    routed = routing.columns[target]
    verify = tuple(_equality(s, t, leaves) for s, t in links)
    if routing.kind is RoutingKind.KEYS and not leaves[target].is_table:
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
    expr = functions.resolve("=", [columns[left], columns[right]])
    return Predicate(expr, -1, f"{left} = {right}")


def _exact(columns: tuple[str, ...], target: int, leaves: tuple[Leaf, ...]) -> bool:
    """Whether equal hashes mean equal keys: one column of an integer-like type."""
    if len(columns) != 1:
        return not columns
    dtype = next(f.type for f in leaves[target].fields if leaves[target].bare(f.name) == columns[0])
    return _integer_like(dtype)


def _integer_like(dtype: DataType) -> bool:
    return dtype.is_integer or dtype.name in ("TIMESTAMP", "DATE", "BOOLEAN")
