"""Routing: how rows are split over tasks.

A block by itself may be routed by several columns at once, or by each along an axis of a grid. A
plan of several relations is routed by one column of each stream, found by following columns
upwards: rows that may meet, be grouped or cancel must be equal in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from thalweg.plan.expr import Column, Predicate
from thalweg.plan.grid_routing import cube_routing
from thalweg.plan.joins.join_keys import KeyClasses
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import Routing, RoutingKind
from thalweg.plan.relations.block import Block, Grouping
from thalweg.plan.relations.protocol import Need, Relation, Together, stored_leaves


def route_block(
    kind: EmitKind, block: Block, predicates: tuple[Predicate, ...], netting: bool
) -> Routing:
    """The routing of a query that is one block over streams and tables."""
    leaves, grouping = block.leaves, block.grouping
    if kind is EmitKind.RSTREAM:
        return Routing(RoutingKind.SINGLE, reason="RSTREAM repeats the whole relation")
    if block.is_static:
        return Routing(RoutingKind.SINGLE, reason="it reads tables alone")
    classes = KeyClasses(leaves, predicates)
    # a table that changes meets the streams as a stream does, though every task has all of it
    streams = [i for i, leaf in enumerate(leaves) if not leaf.is_table or leaf.changes]
    visible = _visible_columns(block)
    for key in _candidates(leaves, classes, streams, visible, grouping, netting):
        if _obstacle(key, leaves, visible, grouping, netting) is None:
            columns = tuple(
                tuple(leaf.bare(key[n][i]) for n in range(len(key)) if i in key[n])
                if not leaf.is_table
                else ()
                for i, leaf in enumerate(leaves)
            )
            return Routing(RoutingKind.KEYS, (columns,))
    if grouping is None and not netting and len(streams) == 1 and not leaves[streams[0]].keeps_rows:
        return Routing(RoutingKind.ANY)
    cube = cube_routing(block, classes, _kept_together(visible, grouping, netting))
    if cube is not None:
        return cube
    return Routing(RoutingKind.SINGLE, reason=_why_single(leaves, classes, streams, grouping))


def _kept_together(
    visible: frozenset[str], grouping: Grouping | None, netting: bool
) -> list[frozenset[str]]:
    """Sets of columns such that rows equal in one of them belong to one task."""
    found = [visible] if netting else []
    if grouping is not None:
        found.append(_grouped_by(grouping))
    return found


def _grouped_by(grouping: Grouping) -> frozenset[str]:
    """The columns among the keys of groups."""
    return frozenset(k.expr.name for k in grouping.keys if isinstance(k.expr, Column))


def _candidates(
    leaves: tuple[Leaf, ...],
    classes: KeyClasses,
    streams: list[int],
    visible: frozenset[str],
    grouping: Grouping | None,
    netting: bool,
) -> list[list[dict[int, str]]]:
    if len(streams) > 1:
        shared = classes.shared_by(streams)
        usable = [c for c in shared if not netting or visible & set(c.values())]
        return [usable] if usable else []
    if grouping is None and not netting and not leaves[streams[0]].keeps_rows:
        return []
    only = streams[0]
    own = [f.name for f in leaves[only].fields]
    window = leaves[only].window
    if window is not None and window.is_ordered:
        own = [n for n in own if n in window.partition_by]
    if grouping is not None:
        own = [n for n in own if n in _grouped_by(grouping)]
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
        if leaf.window is not None and leaf.window.is_ordered:
            routed = {c[i] for c in key if i in c}
            if not routed or not routed <= set(leaf.window.partition_by):
                return "a window over rows needs its stream's whole order"
    if grouping is not None:
        grouped = _grouped_by(grouping)
        if not all(grouped & set(c.values()) for c in key):
            return "groups span the join key"
    if netting and not all(visible & set(c.values()) for c in key):
        return "equal results may come from different keys"
    return None


def _why_single(
    leaves: tuple[Leaf, ...], classes: KeyClasses, streams: list[int], grouping: Grouping | None
) -> str:
    if any(leaf.keeps_rows for leaf in leaves):
        return "a window over rows needs its stream's whole order"
    if len(streams) > 1 and not classes.shared_by(streams):
        return "the streams share no common join key"
    if grouping is not None and not grouping.keys:
        return "all rows are in one group"
    if grouping is not None:
        return "groups cannot be told apart by the join key"
    return "equal results may come from different keys"


def _visible_columns(block: Block) -> frozenset[str]:
    """Input columns that the output shows unchanged: equal output means equal values."""
    through = {c.expr.name for c in block.columns if isinstance(c.expr, Column)}
    if block.grouping is None:
        return frozenset(through)
    return frozenset(
        k.expr.name for k in block.grouping.keys if isinstance(k.expr, Column) and k.name in through
    )


# -- several relations -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Carrier:
    """Routing the streams by `columns` (leaf of the plan → its column) keeps rows together that are
    equal in any of the `shown` columns of the relation."""

    shown: frozenset[str]
    columns: tuple[tuple[int, str], ...]


def route_relations(
    kind: EmitKind,
    relations: Sequence[Relation],
    predicates: Sequence[tuple[Predicate, ...]],
    netting: bool,
) -> Routing:
    """The routing of a plan of several relations; `predicates` are those of its blocks, and
    empty for the others."""
    leaves = stored_leaves(relations)
    if kind is EmitKind.RSTREAM:
        return Routing(RoutingKind.SINGLE, reason="RSTREAM repeats the whole relation")
    if any(leaf.emits for r in relations for leaf in r.leaves):
        return Routing(RoutingKind.SINGLE, reason="a stream that a subquery emits is kept whole")
    if any(leaf.changes for leaf in leaves):
        return Routing(RoutingKind.SINGLE, reason="a table that changes may meet any row")
    if not netting and all(n.together is Together.ANY for r in relations for n in r.needs()):
        return Routing(RoutingKind.ANY)
    carried: list[list[_Carrier]] = []
    first = 0
    for relation, own in zip(relations, predicates, strict=True):
        if isinstance(relation, Block):  # its needs depend on how its leaves are joined
            carried.append(_of_block(relation, own, carried, first))
        else:
            carried.append(_of_needs(relation, carried, first))
        first += sum(leaf.is_stored for leaf in relation.leaves)
    for carrier in carried[-1]:
        if carrier.shown or not netting:
            routed = dict(carrier.columns)
            columns = tuple((routed[i],) if i in routed else () for i in range(len(leaves)))
            shown = tuple(_shown_below(some, routed) for some in carried)
            return Routing(RoutingKind.KEYS, (columns,), shown=shown)
    return Routing(RoutingKind.SINGLE, reason="no column of each stream keeps all that may meet")


def _shown_below(carriers: Sequence[_Carrier], routed: dict[int, str]) -> str:
    """A column of a relation that shows what streams are routed by."""
    fitting = (c for c in carriers if c.columns and set(c.columns) <= set(routed.items()))
    return min((min(c.shown) for c in fitting if c.shown), default="")


def _of_block(
    block: Block,
    predicates: tuple[Predicate, ...],
    carried: Sequence[Sequence[_Carrier]],
    first: int,
) -> list[_Carrier]:
    below: dict[int, list[_Carrier]] = {}
    place = first
    for i, leaf in enumerate(block.leaves):
        if not leaf.is_table or block.is_static:
            below[i] = list(_of_leaf(leaf, place, carried))
        place += leaf.is_stored
    return [
        _Carrier(shown, columns)
        for names, columns in _met(block, predicates, below)
        for shown in [_shown_above(block, names)]
        if shown is not None
    ]


def _of_leaf(leaf: Leaf, place: int, carried: Sequence[Sequence[_Carrier]]) -> Iterator[_Carrier]:
    allowed = {f.name for f in leaf.fields}
    if leaf.window is not None and leaf.window.is_ordered:
        allowed &= set(leaf.window.partition_by)
    if leaf.source is not None:
        for carrier in carried[leaf.source]:
            if carrier.shown & allowed:
                yield _Carrier(carrier.shown & allowed, carrier.columns)
        return
    for field in leaf.fields:
        if field.name in allowed and _hashable(leaf, field.name):
            yield _Carrier(frozenset((field.name,)), ((place, leaf.bare(field.name)),))


def _met(
    block: Block, predicates: tuple[Predicate, ...], below: dict[int, list[_Carrier]]
) -> Iterator[tuple[frozenset[str], tuple[tuple[int, str], ...]]]:
    """Ways to route the block's inputs so that rows that join are in one task."""
    if len(below) == 1:
        (only,) = below.values()
        for carrier in only:
            yield carrier.shown, carrier.columns
        return
    for names in KeyClasses(block.leaves, predicates).shared_by(list(below)):
        columns = _together(
            [next((c for c in below[i] if names[i] in c.shown), None) for i in below]
        )
        if columns is not None:
            yield frozenset(names.values()), columns


def _together(carriers: Sequence[_Carrier | None]) -> tuple[tuple[int, str], ...] | None:
    """One routing that serves all, if there is one."""
    pairs: dict[int, str] = {}
    for carrier in carriers:
        if carrier is None:
            return None
        for leaf, column in carrier.columns:
            if pairs.setdefault(leaf, column) != column:
                return None
    return tuple(pairs.items())


def _shown_above(block: Block, names: frozenset[str]) -> frozenset[str] | None:
    """The output columns that show one of these; None if groups would be split over tasks."""
    if block.grouping is not None:
        names = frozenset(
            k.name
            for k in block.grouping.keys
            if isinstance(k.expr, Column) and k.expr.name in names
        )
        if not names:
            return None
    return frozenset(
        c.name for c in block.columns if isinstance(c.expr, Column) and c.expr.name in names
    )


def _of_needs(
    relation: Relation, carried: Sequence[Sequence[_Carrier]], first: int
) -> list[_Carrier]:
    """The carriers of any relation but a block: a column carries if some carrier of every leaf, or
    input, keeps together what must be, and shows in it."""
    below = _below(relation, carried, first)
    usable = [
        [c for c in some if _serves(need, c)]
        for need, some in zip(relation.needs(), below, strict=True)
    ]
    found = []
    for field in relation.schema:
        columns = _together(
            [
                next((c for c in some if _shows(relation, place, c, field.name)), None)
                for place, some in enumerate(usable)
            ]
        )
        if columns is not None:
            found.append(_Carrier(frozenset((field.name,)), columns))
    return found


def _below(
    relation: Relation, carried: Sequence[Sequence[_Carrier]], first: int
) -> list[Sequence[_Carrier]]:
    """The carriers of its leaves, or else of its inputs."""
    if not relation.leaves:
        return [carried[i] for i in relation.inputs]
    found: list[Sequence[_Carrier]] = []
    for leaf in relation.leaves:
        found.append(list(_of_leaf(leaf, first, carried)))
        first += leaf.is_stored
    return found


def _serves(need: Need, carrier: _Carrier) -> bool:
    """Whether a carrier keeps together what is needed. Rows of equal content are equal in every
    column, so that any will do for them."""
    if need.together is Together.KEYS:
        return bool(carrier.shown & need.keys)
    return need.together is not Together.ALL


def _shows(relation: Relation, place: int, carrier: _Carrier, column: str) -> bool:
    return any(column in relation.shows(place, name) for name in carrier.shown)
