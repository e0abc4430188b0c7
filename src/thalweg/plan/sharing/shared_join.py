"""Joins whose results are kept for many queries: the same sources and join predicates, different
conditions on each side.

All combinations of rows that could ever be in the windows together are made once, with all columns,
by one query over the longest windows. Conditions on single sides differ between the queries and are
left to the predicate index; which combinations lie in a window at an instant follows from the event
times of their rows.

Reference: Chandrasekaran and Franklin, Streaming Queries over Streaming Data (VLDB 2002), §5.4.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from thalweg.plan.bound_query import BoundQuery, QueryOptions
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.plan.expr import Column, Predicate, columns_of
from thalweg.plan.logical import (
    Count,
    CountRule,
    Emit,
    EmitKind,
    Field,
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
    transform,
    walk,
)
from thalweg.plan.physical import QueryPlan
from thalweg.plan.planner import plan_query
from thalweg.plan.sharing.shared_filter import StandingFilter, is_opaque, split_up
from thalweg.windows.range import RangeWindow

PAIRS = "pairs-"
ROWS = "j"
"""The alias of a table of combinations."""


@dataclass(frozen=True, slots=True)
class Paired:
    """`plan` makes all combinations; `asked` is one query's condition on the sides. `times` are the
    columns with the event times of the sides, by alias, and µs per tick of each."""

    plan: QueryPlan
    asked: StandingFilter
    times: dict[str, tuple[str, int]]


def pairs_of(query: BoundQuery, catalog: Catalog) -> Paired | None:
    """The join of a query, if it is an inner join of streams under windows and no row can make its
    predicates fail."""
    join = _only_join(query.root)
    if join is None:
        return None
    sides = [_side(member, catalog) for member in join.members]
    above = _filters_above(query.root, join)
    predicates = [*join.predicates, *above, *(p for s in sides if s for p in s.predicates)]
    if any(side is None for side in sides) or any(map(is_opaque, predicates)):
        return None
    known = [side for side in sides if side is not None]
    single = [p for p in predicates if len(_aliases(p)) < 2]
    several = tuple(p for p in predicates if len(_aliases(p)) > 1)
    plan = _all_combinations(known, several, catalog)
    described = repr([(s.stream.name, s.alias, s.range) for s in known]) + repr(
        sorted(str(p.expr) for p in several)
    )
    key = PAIRS + hashlib.sha1(described.encode()).hexdigest()[:12]
    comparisons, rest = split_up([p.expr for p in single])
    times = {s.alias: (f"{s.alias}.{s.stream.timestamp}", s.stream.unit) for s in known}
    return Paired(plan, StandingFilter(key, comparisons, rest, ()), times)


def judged_plan(query: BoundQuery, catalog: Catalog) -> QueryPlan:
    """The query over a table of combinations that passed its WHERE."""
    join = _only_join(query.root)
    assert join is not None
    fields = _all_fields(join, catalog)

    def replaced(node: Node) -> Node:
        if isinstance(node, Filter) and isinstance(node.input, Join):
            return node.input
        return node

    def as_table(node: Node) -> Node:
        if not isinstance(node, Join):
            return node
        own = tuple(replace(f, name=f"{ROWS}.{f.name}") for f in fields)
        columns = tuple(
            Named(f.name, Column(f.type, f.nullable, g.name))
            for f, g in zip(fields, own, strict=True)
        )
        return Project(Scan(PAIRS, ROWS, own, is_table=True), columns)

    root = transform(transform(query.root, replaced), as_table)
    assert isinstance(root, Emit)
    return plan_query(replace(query, root=root), catalog)


@dataclass(frozen=True, slots=True)
class _Side:
    alias: str
    stream: StreamDef
    range: int
    predicates: tuple[Predicate, ...]

    @property
    def fields(self) -> Schema:
        return tuple(replace(f, name=f"{self.alias}.{f.name}") for f in self.stream.fields)


def _only_join(root: Node) -> Join | None:
    nodes = list(walk(root))
    joins = [n for n in nodes if isinstance(n, Join)]
    others = (OuterJoin, Union, Sequence)
    counted = any(isinstance(n, Count) and n.rule is not CountRule.DISTINCT for n in nodes)
    subqueries = sum(isinstance(n, Emit) for n in nodes) > 1
    if len(joins) != 1 or any(isinstance(n, others) for n in nodes) or counted or subqueries:
        return None
    return joins[0]


def _side(member: Node, catalog: Catalog) -> _Side | None:
    """A stream under a window of time, with filters below and above it."""
    predicates: tuple[Predicate, ...] = ()
    window = None
    while not isinstance(member, Scan):
        if isinstance(member, Filter):
            predicates, member = predicates + member.predicates, member.input
        elif isinstance(member, Window):
            window, member = member.window, member.input
        else:
            return None
    if member.is_table or window is None or window.is_ordered:
        return None
    stream = catalog.stream(member.relation)
    if stream.timestamp is None or window.longest_stay is None:
        return None
    reach = max(window.longest_stay, stream.retain or 0)
    return _Side(member.alias, stream, reach, predicates)


def _filters_above(root: Node, join: Join) -> tuple[Predicate, ...]:
    found = (n for n in walk(root) if isinstance(n, Filter) and n.input == join)
    return tuple(p for n in found for p in n.predicates)


def _aliases(predicate: Predicate) -> set[str]:
    return {name.split(".", 1)[0] for name in columns_of(predicate.expr)}


def _all_fields(join: Join, catalog: Catalog) -> tuple[Field, ...]:
    sides = [_side(member, catalog) for member in join.members]
    return tuple(f for side in sides if side is not None for f in side.fields)


def _all_combinations(
    sides: list[_Side], predicates: tuple[Predicate, ...], catalog: Catalog
) -> QueryPlan:
    members = tuple(
        Window(Scan(s.stream.name, s.alias, s.fields), RangeWindow(s.range)) for s in sides
    )
    join = Join(members, predicates)
    columns = tuple(Named(f.name, f.column()) for s in sides for f in s.fields)
    root = Emit(Project(join, columns), EmitKind.ISTREAM)
    plan = plan_query(BoundQuery(root, QueryOptions(unbounded=True), ""), catalog)
    # combinations differ in their rows: none cancels another
    return replace(plan, needs_netting=False)
