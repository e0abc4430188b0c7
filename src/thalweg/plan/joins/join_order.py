"""Pipelines: the order in which a change of one leaf meets the others, and by which keys.

`Orders` are the choices that may change between epochs without changing a row: the order of filters
at each leaf and the order of probes in each pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from thalweg.plan import functions
from thalweg.plan.expr import Expr, Predicate, columns_of
from thalweg.plan.joins.join_keys import KeyClasses
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import OuterKind
from thalweg.plan.physical import QueryPlan, Routing, RoutingKind
from thalweg.plan.pipeline import Check, Pipeline, Probe
from thalweg.plan.relations.block import Block, blocks_of
from thalweg.plan.relations.protocol import Relation, stored_leaves
from thalweg.plan.types import DataType

Predicates = tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Orders:
    """Per leaf a permutation of its filters, per stream leaf the order of the other leaves."""

    filters: tuple[tuple[int, ...], ...] = ()
    pipelines: tuple[tuple[int, ...], ...] = ()


def with_pipelines(
    relations: tuple[Relation, ...],
    predicates: list[Predicates],
    routing: Routing,
    orders: Orders,
) -> tuple[Relation, ...]:
    found: list[Relation] = []
    first = place = 0
    for relation, own in zip(relations, predicates, strict=True):
        leaves, begin = relation.leaves, place
        place += sum(leaf.is_stored for leaf in leaves)
        if not isinstance(relation, Block):  # only blocks join
            found.append(relation)
            continue
        routed = _routes(leaves, routing, begin)
        if orders.filters:
            chosen = [orders.filters[(first + i) % len(orders.filters)] for i in range(len(leaves))]
            leaves = tuple(map(_reordered, leaves, chosen))
        classes = KeyClasses(leaves, own)
        pipelines = _pipelines(leaves, classes, routed, orders)
        if relation.outer is not None:  # a row is decided when it arrives, by tables as they are
            led = [p for p in pipelines if p.leaf == 0]
            pipelines = tuple(_outer_lookup(p, relation.outer, classes) for p in led)
        found.append(replace(relation, leaves=leaves, pipelines=pipelines, joins=own))
        first += len(leaves)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PipelineOf:
    """A pipeline of a plan: that of a leaf of a relation, by their numbers."""

    relation: int
    leaf: int


def orderable_pipelines(plan: QueryPlan) -> tuple[PipelineOf, ...]:
    """Pipelines in which rows can be dropped by one leaf or by another first."""
    return tuple(
        PipelineOf(number, pipeline.leaf)
        for number, block in blocks_of(plan.relations)
        for pipeline in block.pipelines
        if pipeline.branches
    )


def pipeline_of(plan: QueryPlan, which: PipelineOf) -> Pipeline:
    return next(p for p in plan.block(which.relation).pipelines if p.leaf == which.leaf)


def repiped(plan: QueryPlan, which: PipelineOf, order: Sequence[int]) -> QueryPlan:
    """The plan with one pipeline in another order, as far as keys allow it. Subresults of the
    relation are dropped: in another order their changes may no longer be produced."""
    block = without_subresults(plan.block(which.relation))
    classes = KeyClasses(block.leaves, block.joins)
    probed = probe_order(which.leaf, len(block.leaves), classes, order)
    routed = routed_by(plan, which.relation)
    fresh = pipeline(which.leaf, probed, block.leaves, classes, routed)
    pipelines = tuple(fresh if p.leaf == which.leaf else p for p in block.pipelines)
    return plan.with_block(which.relation, replace(block, pipelines=pipelines))


def without_subresults(block: Block) -> Block:
    """The plan with every pipeline probing leaf by leaf."""
    if not block.subresults:
        return block
    leaves = tuple(replace(leaf, fields=leaf.untracked) for leaf in block.leaves)
    return replace(block, leaves=leaves, pipelines=block.plain, subresults=(), plain=())


def routed_by(plan: QueryPlan, number: int) -> list[tuple[str, ...] | None]:
    """Per leaf of a relation the columns it is routed by."""
    place = len(stored_leaves(plan.relations[:number]))
    return _routes(plan.block(number).leaves, plan.routing, place)


def _routes(leaves: tuple[Leaf, ...], routing: Routing, place: int) -> list[tuple[str, ...] | None]:
    routed: list[tuple[str, ...] | None] = []
    for leaf in leaves:
        by_key = leaf.is_stored and not leaf.is_table and routing.kind is RoutingKind.KEYS
        routed.append(routing.axes[0][place] if by_key else None)
        place += leaf.is_stored
    return routed


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
        order = probe_order(start, len(leaves), classes, wanted)
        found.append(pipeline(start, order, leaves, classes, routed))
    return tuple(found)


def _outer_lookup(pipeline: Pipeline, kind: OuterKind, classes: KeyClasses) -> Pipeline:
    """The probe of an outer join: all of ON, including predicates that may raise, decides whether
    there is a partner."""
    (probe,) = pipeline.probes
    residual = tuple(p for n, p in enumerate(classes.predicates) if n not in classes.covered)
    return replace(pipeline, probes=(replace(probe, residual=residual, outer=kind),))


def _brings_changes(leaf: Leaf, leaves: tuple[Leaf, ...]) -> bool:
    """Whether changes of a leaf must meet the others. Rows of a stream without a window meet a
    table as it is when they arrive: earlier rows are not kept for it."""
    if not leaf.is_table and not leaf.is_static:
        return True
    windows = [other.window for other in leaves if other.window is not None]
    endless = any(w.is_endless for w in windows)
    return (leaf.changes or leaf.is_static) and not endless


def probe_order(
    start: int, leaves: int, classes: KeyClasses, wanted: Sequence[int] = ()
) -> list[int]:
    """The wanted order as far as keys allow: a leaf that no key links to those before it follows
    the leaves on the shortest path to it, and is never joined as a product where there is a path.
    Where there is none, other predicates lead on."""
    preference = list(dict.fromkeys([*(i for i in wanted if i < leaves), *range(leaves)]))
    preference = [i for i in preference if i != start]
    order = [start]
    while len(order) <= len(preference):
        above = _paths(order, leaves, classes)
        reachable = [i for i in preference if i in above and i not in order]
        for leaf in reachable or [_next_part(preference, order, classes)]:
            order += _missing(leaf, order, above, classes)
    return order[1:]


def _next_part(preference: list[int], done: list[int], classes: KeyClasses) -> int:
    """A leaf that no key leads to; a product only if no predicate leads to it either."""
    left = [i for i in preference if i not in done]
    bridges = classes.bridges()
    return next((i for i in left if any(i in b and b & set(done) for b in bridges)), left[0])


def _paths(done: list[int], leaves: int, classes: KeyClasses) -> dict[int, int]:
    """Per leaf reachable by keys the one before it on a shortest path."""
    above: dict[int, int] = {}
    frontier = list(done)
    while frontier:
        here = frontier.pop(0)
        for leaf in range(leaves):
            if leaf not in done and leaf not in above and linked(leaf, [here], classes):
                above[leaf] = here
                frontier.append(leaf)
    return above


def _missing(leaf: int, done: list[int], above: dict[int, int], classes: KeyClasses) -> list[int]:
    """The leaves to be joined next for a leaf: those missing on the path to it, then itself."""
    if leaf in done:
        return []
    path = [leaf]
    while path[-1] in above and not linked(path[-1], done, classes):
        path.append(above[path[-1]])
    return path[::-1]


def linked(leaf: int, others: Sequence[int], classes: KeyClasses) -> bool:
    return any(leaf in c and any(i in c for i in others) for c in classes.members)


def pipeline(
    start: int,
    order: list[int],
    leaves: tuple[Leaf, ...],
    classes: KeyClasses,
    routed: list[tuple[str, ...] | None],
) -> Pipeline:
    tree = [start]  # leaves whose rows drop probing may have at hand
    names = {f.name for f in leaves[start].fields}
    waiting = classes.residual()
    probes = []
    for n, target in enumerate(order):
        names |= {f.name for f in leaves[target].fields}
        ready = tuple(p for p in waiting if columns_of(p.expr) <= names)
        waiting = [p for p in waiting if p not in ready]
        links = _links(target, [start, *order[:n]], tree, classes)
        probe = _probe(target, links, leaves, routed[target])
        probes.append(replace(probe, residual=probe.residual + ready))
        if probe.check is not None and probe.check.is_all:
            tree.append(target)
    return Pipeline(start, tuple(probes), tuple(order))


@dataclass(frozen=True, slots=True)
class _Links:
    """Columns a leaf is looked up by: (column before it, its own). `parent` is the leaf of the tree
    that has most of the former, `near` are the pairs with its columns, `far` the others."""

    parent: int
    near: tuple[tuple[str, str], ...]
    far: tuple[tuple[str, str], ...]


def _links(target: int, done: list[int], tree: list[int], classes: KeyClasses) -> _Links:
    shared = [c for c in classes.members if target in c and any(i in c for i in done)]
    parent = max(tree, key=lambda i: sum(i in c for c in shared))  # among equals the first
    near = tuple((c[parent], c[target]) for c in shared if parent in c)
    far = tuple((next(c[i] for i in done if i in c), c[target]) for c in shared if parent not in c)
    return _Links(parent, near, far)


def _probe(
    target: int, links: _Links, leaves: tuple[Leaf, ...], routed: tuple[str, ...] | None
) -> Probe:
    leaf = leaves[target]
    near = tuple(equality(s, t, leaves) for s, t in links.near)
    far = tuple(equality(s, t, leaves) for s, t in links.far)
    if routed is not None:
        # the bucket slice of an index exists for the routing key only
        by_target = {leaf.bare(t): s for s, t in links.near}
        source = tuple(by_target[c] for c in routed)
        exact = set(by_target) <= set(routed) and _exact(routed, target, leaves)
        check = Check(links.parent, source, routed, True)
        return Probe(target, source, routed, exact, near, far, check=check)
    bare = tuple(leaf.bare(t) for _, t in links.near)
    source = tuple(s for s, _ in links.near)
    if not links.far:
        check = Check(links.parent, source, bare, True)
        return Probe(target, source, bare, _exact(bare, target, leaves), near, check=check)
    partly = Check(links.parent, source, bare, False) if links.near else None
    source += tuple(s for s, _ in links.far)
    bare += tuple(leaf.bare(t) for _, t in links.far)
    exact = _exact(bare, target, leaves)
    return Probe(target, source, bare, exact, near + far, check=partly)


def equality(left: str, right: str, leaves: tuple[Leaf, ...]) -> Predicate:
    columns = {f.name: f.column() for leaf in leaves for f in leaf.fields}
    expr: Expr = functions.resolve("=", [columns[left], columns[right]])
    return Predicate(expr, -1, f"{left} = {right}")


def _exact(columns: tuple[str, ...], target: int, leaves: tuple[Leaf, ...]) -> bool:
    """Whether equal hashes mean equal keys: one column of an integer-like type."""
    if len(columns) != 1:
        return not columns
    dtype = next(f.type for f in leaves[target].fields if leaves[target].bare(f.name) == columns[0])
    return integer_like(dtype)


def integer_like(dtype: DataType) -> bool:
    return dtype.is_integer or dtype.name in ("TIMESTAMP", "DATE", "BOOLEAN")
