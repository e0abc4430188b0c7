"""The binder from SELECT to a logical plan: resolves names, types and windows, or refuses them with
the place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from thalweg.errors import (
    BindError,
    NotAvailableYet,
    ThalwegError,
    UnboundedState,
    UnknownName,
    did_you_mean,
)
from thalweg.lang.binding.bound_parts import Found, Items, refuse_curves, refuse_whole, written_kind
from thalweg.lang.binding.conditions import Conjunct, bound_conjunct, conjuncts_of
from thalweg.lang.binding.from_clause import Sources
from thalweg.lang.binding.group_by import aggregates_in, grouped
from thalweg.lang.binding.in_subqueries import asks_streams, filtered
from thalweg.lang.binding.into_clause import sink_spec
from thalweg.lang.binding.order_by import row_limit, sort_keys
from thalweg.lang.binding.over import Over
from thalweg.lang.binding.own_select import OWN_SELECTS, SelectParts
from thalweg.lang.binding.query_options import query_options
from thalweg.lang.binding.scope import Scope
from thalweg.lang.binding.select_items import selected_items
from thalweg.lang.binding.set_operation_types import alike
from thalweg.lang.binding.visible import Visible
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.places import place, placed
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.bounded_state import verdict
from thalweg.plan.catalog import Catalog
from thalweg.plan.logical import (
    Count,
    CountRule,
    Emit,
    EmitKind,
    Filter,
    Named,
    Node,
    Project,
    Scan,
    Schema,
    Union,
    Window,
)
from thalweg.plan.logical import walk as walk_nodes
from thalweg.windows.range import UNBOUNDED


def bind(query: ast.Query, catalog: Catalog, text: str) -> BoundQuery:
    """The bound query, or a refusal. `text` is what error places point into."""
    with placed(text, query.at):
        return _whole(query, catalog, text)


def bind_relation(query: ast.Query, catalog: Catalog, text: str) -> BoundQuery:
    """The bound query, whether or not it can run continuously: it may read tables alone, sort what
    is not RSTREAM, and need state without end."""
    with placed(text, query.at):
        found = _bind(query, catalog, text)
        return BoundQuery(_root(found), found.options, text)


def inner_join(
    query: ast.Select, items: tuple[ast.FromItem, ...], catalog: Catalog, text: str
) -> tuple[tuple[Visible, ...], tuple[Conjunct, ...]]:
    """The sources of some inner-joined items of FROM, and all conditions on them: those of ON in
    the order of the text, then those of WHERE."""
    parts = Sources(replace(query, from_items=items), catalog, text, _bind).items()
    scope = Scope(catalog, tuple(parts.sources), text)
    written = [(n, False) for n in parts.conditions] + [(n, True) for n in query.conditions]
    found = [bound_conjunct(scope, c, where) for n, where in written for c in conjuncts_of(n)]
    return tuple(parts.sources), tuple(found)


def _root(found: Found) -> Emit:
    return Emit(found.finished, found.kind, found.order, found.limit)


def _whole(query: ast.Query, catalog: Catalog, text: str) -> BoundQuery:
    found = _bind(query, catalog, text)
    if not any(isinstance(n, Scan) and not n.is_table for n in walk_nodes(found.node)):
        raise BindError(
            "a continuous query needs at least one stream",
            remedy="a query over tables alone is a Spark query: use engine.spark.sql",
        ).at(text, *place(text, query.at))
    _check_order(query, found, text)
    root = _root(found)
    sink = sink_spec(found.into, found.kind, text, query.at)
    bound = BoundQuery(root, found.options, text, sink)
    state = verdict(bound.root)
    if state.reasons and not bound.options.unbounded:
        raise UnboundedState(
            "the query's state would grow for ever: " + "; ".join(state.reasons),
            remedy="give the stream a window such as [RANGE 1 HOUR], or say "
            "WITH (unbounded = true)",
        ).at(text, *place(text, query.at))
    return bound


def _check_order(query: ast.Query, found: Found, text: str) -> None:
    if (found.order or found.limit is not None) and found.kind is not EmitKind.RSTREAM:
        raise BindError(
            "ORDER BY and LIMIT are for RSTREAM, which emits whole answers",
            remedy="write SELECT RSTREAM, or sort what results() gives",
        ).at(text, *place(text, query.at))


def check(query: ast.Query, catalog: Catalog, text: str) -> Schema:
    """The columns of a query that is only going to be a part of others, or a refusal."""
    with placed(text, query.at):
        return _bind(query, catalog, text).finished.schema


def _bind(query: ast.Query, catalog: Catalog, text: str) -> Found:
    if isinstance(query, ast.SetOperation):
        return _combined(query, catalog, text)
    return _Binder(query, catalog, text).found()


_COUNTING = {
    "EXCEPT": CountRule.EXCEPT,
    "EXCEPT ALL": CountRule.EXCEPT_ALL,
    "INTERSECT": CountRule.INTERSECT,
    "INTERSECT ALL": CountRule.INTERSECT_ALL,
}


def _combined(query: ast.SetOperation, catalog: Catalog, text: str) -> Found:
    """UNION, EXCEPT, INTERSECT. ISTREAM and the like are written in the first SELECT, WITH in the
    last, and apply to the whole."""
    left, right = (_bind(q, catalog, text) for q in (query.left, query.right))
    refuse_whole(query.left, left, text)
    refuse_curves((*left.curves, *right.curves), query.operator, query.at, text)
    order, limit = right.order, right.limit
    given = written_kind(query.right)
    if given is not None:
        raise BindError(
            f"{given.value} belongs to the first SELECT of {query.operator}",
            remedy="it is about the whole; to combine streams, put each into FROM (SELECT ...)",
        ).at(text, *place(text, query.at))
    nodes = alike(query, left.node, right.node, text)
    names = dict(zip(right.node.schema, nodes[0].schema, strict=True))
    renamed = {old.name: new.name for old, new in names.items()}
    order = tuple(replace(key, column=renamed[key.column]) for key in order)
    kind = written_kind(query.left) or EmitKind.RELATION
    options = query_options(query, text) if query.options else right.options

    def whole(node: Node) -> Found:
        return Found(node, kind, options, order, limit, right.into)

    if query.operator in _COUNTING:
        return whole(Count(_COUNTING[query.operator], nodes))
    members = [m for n in nodes for m in (n.members if isinstance(n, Union) else (n,))]
    union = Union(tuple(members))
    if query.operator == "UNION ALL":
        return whole(union)
    return whole(Count(CountRule.DISTINCT, (union,)))


@dataclass(slots=True)
class _Binder:
    query: ast.Select
    catalog: Catalog
    text: str

    def fail(self, error: ThalwegError, at: int) -> NoReturn:
        raise error.at(self.text, *place(self.text, at))

    def refuse(self, error: ThalwegError) -> NoReturn:
        self.fail(error, self.query.at)

    def column(self, node: Node, name: str) -> str:
        known = [f.name for f in node.schema]
        found = [n for n in known if n.lower() == name.lower()]
        if len(found) != 1:
            self.refuse(UnknownName(f"unknown column {name}", remedy=did_you_mean(name, known)))
        return found[0]

    def found(self) -> Found:
        self._refuse_later()
        sources = Sources(self.query, self.catalog, self.text, _bind)
        items = sources.items()
        for own in OWN_SELECTS:
            if own.applies(items):
                return own.found(SelectParts(self.query, items, self.catalog, self.text, _bind))
        over = Over() if self._may_look_around(items) else None
        scope = Scope(self.catalog, tuple(items.sources), self.text, over)
        selected = selected_items(self.query, scope)
        plain = replace(scope, over=None)
        if over:
            items = self._looking_around(items, over, plain)
            body = items.members[0]
        else:
            body = filtered(items, plain, _bind, self.query.conditions)
        aggregated = bool(self.query.group_by) or self.query.having is not None
        aggregated |= any(aggregates_in(e) for _, e, _ in selected)
        if aggregated and over:
            error = BindError("OVER and GROUP BY do not go together", remedy="use a subquery")
            self.fail(error, self.query.at)
        if aggregated:
            node = grouped(self.query, plain, body, selected)
        else:
            node = Project(body, tuple(Named(name, expr) for name, expr, _ in selected))
        if self.query.distinct:
            node = Count(CountRule.DISTINCT, (node,))
        for clause in self.query.clauses:
            node = clause.bind(self, node)
        return Found(
            node,
            self._kind(sources, aggregated or asks_streams(body)),
            query_options(self.query, self.text),
            sort_keys(self.query, plain, selected),
            row_limit(self.query, plain),
            self.query.into,
        )

    def _may_look_around(self, items: Items) -> bool:
        """Whether OVER may be used in SELECT: there is one stream, and it has no window."""
        only = items.members[0]
        bare = isinstance(only, Window) and only.window == UNBOUNDED
        return len(items.members) == 1 and bare and len(items.sources) == 1

    def _looking_around(self, items: Items, over: Over, scope: Scope) -> Items:
        """The stream with the columns of OVER, over the rows that WHERE accepts."""
        (window,) = items.members
        assert isinstance(window, Window)
        stream = replace(items, members=[window.input])
        passing = filtered(stream, scope, _bind, self.query.conditions)
        below = passing
        while isinstance(below, Filter):
            below = below.input
        if below is not window.input:
            error = NotAvailableYet(
                "IN (SELECT ...) beside OVER is not available yet",
                remedy="put the SELECT with OVER into FROM (...)",
            )
            self.fail(error, self.query.at)
        return replace(items, members=[Window(over.applied(passing), UNBOUNDED)])

    def _kind(self, sources: Sources, changes: bool) -> EmitKind:
        """What is written, or a stream where rows of one stream are only selected: then none ever
        `changes`."""
        if self.query.kind is not None:
            return self.query.kind
        first = self.query.from_items[0]
        plain = len(self.query.from_items) == 1 and not changes and not self.query.distinct
        bare = isinstance(first, ast.Source) and first.window is None and first.clause is None
        if not plain or not bare:
            return EmitKind.RELATION
        assert isinstance(first, ast.Source)
        return EmitKind.ISTREAM if sources.is_stream(first) else EmitKind.RELATION

    # -- what later versions bring -----------------------------------------------------------

    def _refuse_later(self) -> None:
        q = self.query
        if q.qos:
            self.fail(
                NotAvailableYet(
                    "QOS is not available yet",
                    remedy="leave it out: answers are exact and complete",
                ),
                q.at,
            )
