"""Outer joins in terms of inner joins and counts, or as look-ups.

A left row has a partner as long as the inner join has a result with its content; counting both
gives at every instant the rows without a partner. Where left rows never leave and the right side
are tables, each row can be decided when it arrives.
"""

from __future__ import annotations

from thalweg.plan.expr import Literal, Predicate
from thalweg.plan.functions import can_raise
from thalweg.plan.logical import (
    Count,
    CountRule,
    Filter,
    Join,
    Named,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    Scan,
    Schema,
    Union,
    Window,
    has_streams,
    walk,
)


def is_lookup(node: OuterJoin) -> bool:
    """Whether the left rows never leave and the right ones are of tables: then no state is needed
    to know which rows have no partner."""
    windows = [n.window for n in walk(node.left) if isinstance(n, Window)]
    endless = all(w.is_endless for w in windows)
    plain = all(isinstance(n, (Filter, Join, Window, Scan)) for n in walk(node.left))
    # without new rows, all are there from the start only if both sides are bare tables
    led = has_streams(node.left) or all(isinstance(n, (Filter, Scan)) for n in walk(node.right))
    lasting = endless and plain and led
    return node.kind is not OuterKind.FULL and lasting and not has_streams(node.right)


def without_outer(node: OuterJoin) -> Node:
    """An outer join in terms of inner joins and counts.

    A left row has a partner as long as the inner join has a result with its content; counting both
    gives at every instant the rows without a partner.
    """
    inner = Project(_inner(node), same_columns(node.left.schema + node.right.schema))
    if node.kind is OuterKind.SEMI:
        return _by_partner(CountRule.SEMI, node.left, inner)
    if node.kind is OuterKind.ANTI:
        return _by_partner(CountRule.ANTI, node.left, inner)
    alone = _by_partner(CountRule.ANTI, node.left, inner)
    padded = Project(alone, same_columns(node.left.schema) + _null(node.right.schema))
    members = [inner, padded]
    if node.kind is OuterKind.FULL:
        other = _by_partner(CountRule.ANTI, node.right, inner)
        members.append(Project(other, _null(node.left.schema) + same_columns(node.right.schema)))
    return Union(tuple(members))


def _inner(node: OuterJoin) -> Node:
    """The inner join below an outer one, flattened where an inner join is on a side of it."""
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
    return Count(rule, (side, Project(inner, same_columns(side.schema))))


def same_columns(schema: Schema) -> tuple[Named, ...]:
    """All columns unchanged."""
    return tuple(Named(f.name, f.column()) for f in schema)


def _null(schema: Schema) -> tuple[Named, ...]:
    return tuple(Named(f.name, Literal(f.type, True, None)) for f in schema)
