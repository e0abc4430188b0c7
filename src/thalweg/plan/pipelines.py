"""Pipelines: in which order a change of one leaf meets the others, and by which keys.

`Orders` are the choices that may change between epochs without changing a row: the order of
filters at each leaf and the order of probes in each pipeline.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from thalweg.plan import functions
from thalweg.plan.classes import KeyClasses
from thalweg.plan.expr import Expr, Predicate, columns_of
from thalweg.plan.logical import OuterKind, TimeWindow
from thalweg.plan.physical import (
    Block,
    Leaf,
    Pipeline,
    Probe,
    Relation,
    Routing,
    RoutingKind,
    Sequenced,
)
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
