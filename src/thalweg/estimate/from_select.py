"""From a bound SELECT to the joins whose sizes bound it.

A size is that of the join before GROUP BY, DISTINCT and LIMIT. An outer join is the inner one plus
the rows that are kept without a partner; each of these alternatives is an inner join of its own,
and the size is at most their sum. A semi or anti join, or IN with a subquery, only removes rows: it
is left out. Unions and grouped subqueries are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from thalweg.errors import NotAvailableYet
from thalweg.estimate.equalities import join_query
from thalweg.estimate.join_query import JoinQuery
from thalweg.plan.expr import Column, Expr, Predicate, columns_of, transform
from thalweg.plan.logical import (
    Aggregate,
    Count,
    CountRule,
    Emit,
    Filter,
    Join,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    Scan,
    Window,
)

_MOST_ALTERNATIVES = 16


@dataclass(frozen=True, slots=True)
class SelectedJoins:
    """The inner joins whose sizes add up to at least that of a SELECT, the one of all inputs first.
    `sources` has the stream with its window, or the table, of each input by its alias."""

    joins: tuple[JoinQuery, ...]
    sources: Mapping[str, Node]


def joins_of(node: Node) -> SelectedJoins:
    """The joins of a bound query, optimised or not."""
    found = _Flattened({}).relation(_body(node))
    joins = tuple(
        join_query({a: s.relation for a, s in one.scans.items()}, one.predicates, one.left_out)
        for one in found.alternatives
    )
    sources = {a: s for one in found.alternatives for a, s in one.sources.items()}
    return SelectedJoins(joins, sources)


def _body(node: Node) -> Node:
    """The relation below GROUP BY, HAVING, DISTINCT and the items of SELECT."""
    while True:
        if isinstance(node, (Emit, Project, Aggregate)):
            node = node.input
        elif isinstance(node, Count) and node.rule is CountRule.DISTINCT:
            (node,) = node.members
        elif isinstance(node, Filter) and isinstance(node.input, Aggregate):
            node = node.input
        else:
            return node


@dataclass(frozen=True, slots=True)
class _Alternative:
    """An inner join: its inputs, what holds, and conditions that are left out."""

    scans: Mapping[str, Scan]
    sources: Mapping[str, Node]
    predicates: tuple[Predicate, ...] = ()
    left_out: tuple[Predicate, ...] = ()

    def joined(self, other: _Alternative) -> _Alternative:
        return _Alternative(
            {**self.scans, **other.scans},
            {**self.sources, **other.sources},
            self.predicates + other.predicates,
            self.left_out + other.left_out,
        )

    def where(self, predicates: tuple[Predicate, ...]) -> _Alternative:
        """What holds above the join; an input that is not there has NULLs, of which a condition
        may still be true: it is left out."""
        here = tuple(p for p in predicates if _aliases(p) <= set(self.scans))
        gone = tuple(p for p in predicates if not _aliases(p) <= set(self.scans))
        return replace(self, predicates=self.predicates + here, left_out=self.left_out + gone)


@dataclass(frozen=True, slots=True)
class _Relation:
    """A relation as a sum of inner joins, and what its renamed columns are made of."""

    alternatives: tuple[_Alternative, ...]
    made_of: Mapping[str, Expr]

    def read(self, predicates: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
        """Conditions over the columns of the inputs."""
        return tuple(replace(p, expr=_inlined(p.expr, self.made_of)) for p in predicates)


def _aliases(predicate: Predicate) -> set[str]:
    return {c.split(".", 1)[0] for c in columns_of(predicate.expr)}


def _inlined(expr: Expr, made_of: Mapping[str, Expr]) -> Expr:
    def change(one: Expr) -> Expr:
        return made_of.get(one.name, one) if isinstance(one, Column) else one

    return transform(expr, change)


@dataclass(slots=True)
class _Flattened:
    """Flattens a tree of relational nodes; aliases of subqueries stay distinct."""

    used: dict[str, int]

    def relation(self, node: Node) -> _Relation:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise _refused(type(node).__name__)
        return handler(self, node)

    def scan(self, node: Scan) -> _Relation:
        return self._input(node, node)

    def window(self, node: Window) -> _Relation:
        below: Node = node.input
        filters: tuple[Predicate, ...] = ()
        while isinstance(below, Filter) and not node.window.is_ordered:
            filters, below = filters + below.predicates, below.input
        if not isinstance(below, Scan):
            raise _refused("the window of a subquery")
        found = self._input(below, Window(below, node.window))
        return self._where(found, filters)

    def _input(self, scan: Scan, source: Node) -> _Relation:
        number = self.used.get(scan.alias, 0) + 1
        self.used[scan.alias] = number
        alias = scan.alias if number == 1 else f"{scan.alias}_{number}"
        made_of = {}
        if number > 1:
            made_of = {
                f.name: replace(f.column(), name=f"{alias}.{f.name.split('.', 1)[1]}")
                for f in scan.fields
            }
        return _Relation((_Alternative({alias: scan}, {alias: source}),), made_of)

    def filter(self, node: Filter) -> _Relation:
        return self._where(self.relation(node.input), node.predicates)

    def _where(self, found: _Relation, predicates: tuple[Predicate, ...]) -> _Relation:
        read = found.read(predicates)
        return replace(found, alternatives=tuple(a.where(read) for a in found.alternatives))

    def project(self, node: Project) -> _Relation:
        below = self.relation(node.input)
        made_of = {c.name: _inlined(c.expr, below.made_of) for c in node.columns}
        return _Relation(below.alternatives, made_of)

    def join(self, node: Join) -> _Relation:
        members = [m for m in node.members if not _is_membership(m)]
        found = [self.relation(m) for m in members]
        made_of = {n: e for one in found for n, e in one.made_of.items()}
        alternatives = [one.alternatives for one in found]
        joined = tuple(_all_joined(chosen) for chosen in product(*alternatives))
        return self._where(_limited(_Relation(joined, made_of)), node.predicates)

    def outer(self, node: OuterJoin) -> _Relation:
        left = self.relation(node.left)
        if node.kind in (OuterKind.SEMI, OuterKind.ANTI):
            read = left.read(node.predicates)
            kept = tuple(replace(a, left_out=a.left_out + read) for a in left.alternatives)
            return replace(left, alternatives=kept)
        right = self.relation(node.right)
        made_of = {**left.made_of, **right.made_of}
        both = _Relation(
            tuple(a.joined(b) for a, b in product(left.alternatives, right.alternatives)), made_of
        )
        found = self._where(both, node.predicates).alternatives + left.alternatives
        if node.kind is OuterKind.FULL:
            found += right.alternatives
        return _limited(_Relation(found, made_of))


def _all_joined(chosen: tuple[_Alternative, ...]) -> _Alternative:
    found = chosen[0]
    for other in chosen[1:]:
        found = found.joined(other)
    return found


def _is_membership(node: Node) -> bool:
    """Whether a member of a join is the set of values of `IN (SELECT ...)`, which only removes
    rows; the condition on it stays, as one that is left out."""
    return (
        isinstance(node, Count)
        and node.rule is CountRule.DISTINCT
        and all(f.name.startswith("in ") for f in node.schema)
    )


def _limited(found: _Relation) -> _Relation:
    if len(found.alternatives) > _MOST_ALTERNATIVES:
        raise NotAvailableYet(
            "the size of a query with so many outer joins is not bounded",
            remedy="ask for a part of them",
        )
    return found


def _refused(what: str) -> NotAvailableYet:
    return NotAvailableYet(
        f"the size of {_WORDS.get(what, what)} is not bounded",
        remedy="ask for the size of the join inside, or of each SELECT apart",
    )


_WORDS = {
    "Union": "UNION",
    "Count": "DISTINCT, EXCEPT and INTERSECT in a subquery",
    "Aggregate": "a subquery with GROUP BY",
    "Emit": "the stream of a subquery",
    "Sequence": "OVER",
}
_HANDLERS: dict[type[Node], Callable[[_Flattened, Any], _Relation]] = {
    Scan: _Flattened.scan,
    Window: _Flattened.window,
    Filter: _Flattened.filter,
    Project: _Flattened.project,
    Join: _Flattened.join,
    OuterJoin: _Flattened.outer,
}
