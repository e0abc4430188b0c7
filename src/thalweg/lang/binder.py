"""SELECT to a logical plan: names, types and windows settled, or refused with the place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NoReturn

from sqlglot import exp

from thalweg.errors import (
    BindError,
    DuplicateName,
    NotAvailableYet,
    ThalwegError,
    TypeMismatch,
    UnboundedState,
    UnknownName,
    WindowMisuse,
    did_you_mean,
)
from thalweg.lang import asof, ast
from thalweg.lang.alike import alike
from thalweg.lang.conditions import bound_predicates, conjuncts_of
from thalweg.lang.grouping import Item, aggregates_in, grouped
from thalweg.lang.moments import moment
from thalweg.lang.options import query_options
from thalweg.lang.ordering import row_limit, sort_keys
from thalweg.lang.over import Over
from thalweg.lang.parser import parse_query, place
from thalweg.lang.scope import Scope, Visible
from thalweg.lang.sinks import sink_spec
from thalweg.plan import functions
from thalweg.plan.bounded import verdict
from thalweg.plan.catalog import Catalog, StreamDef, TableDef, ViewDef
from thalweg.plan.expr import Column, Expr, Literal, Predicate
from thalweg.plan.logical import (
    NOW,
    UNBOUNDED,
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
    OuterKind,
    Project,
    RowWindow,
    Scan,
    Schema,
    SessionWindow,
    SortKey,
    TimeWindow,
    Union,
    Window,
    WindowSpec,
)
from thalweg.plan.logical import walk as walk_nodes
from thalweg.plan.query import BoundQuery, QueryOptions
from thalweg.plan.types import BOOLEAN, NULL


def bind(query: ast.Query, catalog: Catalog, text: str) -> BoundQuery:
    """The bound query, or a refusal. `text` is what error places point into."""
    found = _bind(query, catalog, text)
    if not any(isinstance(n, Scan) and not n.is_table for n in walk_nodes(found.node)):
        raise BindError(
            "a continuous query needs at least one stream",
            remedy="a query over tables alone is a Spark query: use engine.spark.sql",
        ).at(text, *place(text, query.at))
    _check_order(query, found, text)
    root = Emit(found.node, found.kind, found.order, found.limit)
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


def _check_order(query: ast.Query, found: _Found, text: str) -> None:
    if (found.order or found.limit is not None) and found.kind is not EmitKind.RSTREAM:
        raise BindError(
            "ORDER BY and LIMIT are for RSTREAM, which emits whole answers",
            remedy="write SELECT RSTREAM, or sort what results() gives",
        ).at(text, *place(text, query.at))


def check(query: ast.Query, catalog: Catalog, text: str) -> Schema:
    """The columns of a query that is only going to be a part of others, or a refusal."""
    return _bind(query, catalog, text).node.schema


@dataclass(frozen=True, slots=True)
class _Found:
    """A query as a relation, and how it is to be emitted."""

    node: Node
    kind: EmitKind
    options: QueryOptions
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    into: ast.IntoClause | None = None


def _bind(query: ast.Query, catalog: Catalog, text: str) -> _Found:
    if isinstance(query, ast.SetOperation):
        return _combined(query, catalog, text)
    return _Binder(query, catalog, text).found()


_COUNTING = {
    "EXCEPT": CountRule.EXCEPT,
    "EXCEPT ALL": CountRule.EXCEPT_ALL,
    "INTERSECT": CountRule.INTERSECT,
    "INTERSECT ALL": CountRule.INTERSECT_ALL,
}


def _combined(query: ast.SetOperation, catalog: Catalog, text: str) -> _Found:
    """UNION, EXCEPT, INTERSECT. ISTREAM and the like are said in the first SELECT, WITH in the
    last, and are about the whole."""
    left, right = (_bind(q, catalog, text) for q in (query.left, query.right))
    _refuse_whole(query.left, left, text)
    order, limit = right.order, right.limit
    given = _written_kind(query.right)
    if given is not None:
        raise BindError(
            f"{given.value} belongs to the first SELECT of {query.operator}",
            remedy="it is about the whole; to combine streams, put each into FROM (SELECT ...)",
        ).at(text, *place(text, query.at))
    nodes = alike(query, left.node, right.node, text)
    names = dict(zip(right.node.schema, nodes[0].schema, strict=True))
    renamed = {old.name: new.name for old, new in names.items()}
    order = tuple(replace(key, column=renamed[key.column]) for key in order)
    kind = _written_kind(query.left) or EmitKind.RELATION
    options = query_options(query, text) if query.options else right.options

    def whole(node: Node) -> _Found:
        return _Found(node, kind, options, order, limit, right.into)

    if query.operator in _COUNTING:
        return _Found(
            Count(_COUNTING[query.operator], nodes), kind, options, order, limit, right.into
        )
    members = [m for n in nodes for m in (n.members if isinstance(n, Union) else (n,))]
    union = Union(tuple(members))
    if query.operator == "UNION ALL":
        return whole(union)
    return whole(Count(CountRule.DISTINCT, (union,)))


def _refuse_whole(query: ast.Query, found: _Found, text: str) -> None:
    """ORDER BY, INTO and WITH of a part of a query."""
    if query.options:
        raise BindError("WITH is about a whole query", remedy="let it stand at the end").at(
            text, *place(text, query.at)
        )
    if found.into is not None:
        raise BindError("INTO is about a whole query", remedy="let it stand at the end").at(
            text, *place(text, query.at)
        )
    if found.order or found.limit is not None:
        raise BindError(
            "ORDER BY and LIMIT are about the whole answer", remedy="let them stand at the end"
        ).at(text, *place(text, query.at))


def _written_kind(query: ast.Query) -> EmitKind | None:
    while isinstance(query, ast.SetOperation):
        query = query.left
    return query.kind


@dataclass(slots=True)
class _Items:
    """What an item of FROM brings: relations to join, the sources in view, and conditions."""

    members: list[Node]
    sources: list[Visible]
    conditions: list[exp.Expr]


_OUTER = {
    "LEFT": OuterKind.LEFT,
    "RIGHT": OuterKind.LEFT,
    "FULL": OuterKind.FULL,
    "SEMI": OuterKind.SEMI,
    "LEFT SEMI": OuterKind.SEMI,
    "ANTI": OuterKind.ANTI,
    "LEFT ANTI": OuterKind.ANTI,
}


@dataclass(slots=True)
class _Binder:
    query: ast.Select
    catalog: Catalog
    text: str
    _bound: dict[int, _Found | None] = field(default_factory=dict)

    def fail(self, error: ThalwegError, at: int) -> NoReturn:
        raise error.at(self.text, *place(self.text, at))

    def found(self) -> _Found:
        self._refuse_later()
        items = self._from()
        over = Over() if self._may_look_around(items) else None
        scope = Scope(self.catalog, tuple(items.sources), self.text, over)
        selected = self._items(scope)
        plain = replace(scope, over=None)
        if over:
            items = self._looking_around(items, over, plain)
            body = items.members[0]
        else:
            body = self._filtered(items, plain, self.query.conditions)
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
        return _Found(
            node,
            self._kind(aggregated),
            query_options(self.query, self.text),
            sort_keys(self.query, plain, selected),
            row_limit(self.query, plain),
            self.query.into,
        )

    def _may_look_around(self, items: _Items) -> bool:
        """Whether OVER may stand in SELECT: there is one stream, and it has no window."""
        only = items.members[0]
        bare = isinstance(only, Window) and only.window == UNBOUNDED
        return len(items.members) == 1 and bare and len(items.sources) == 1

    def _looking_around(self, items: _Items, over: Over, scope: Scope) -> _Items:
        """The stream with the columns that OVER asks for, of the rows that WHERE lets through."""
        (window,) = items.members
        assert isinstance(window, Window)
        filtered = self._filtered(
            replace(items, members=[window.input]), scope, self.query.conditions
        )
        if not isinstance(filtered, Filter) and filtered is not window.input:
            error = NotAvailableYet("IN (SELECT ...) beside OVER is not available yet")
            self.fail(error, self.query.at)
        return replace(items, members=[Window(over.applied(filtered), UNBOUNDED)])

    def _filtered(self, items: _Items, scope: Scope, conditions: tuple[exp.Expr, ...] = ()) -> Node:
        conjuncts = [c for node in (*items.conditions, *conditions) for c in conjuncts_of(node)]
        asked = [c for c in conjuncts if _membership(c) is not None]
        others = tuple(c for c in conjuncts if _membership(c) is None)
        predicates = bound_predicates(scope, others)
        members = list(items.members)
        absent = []
        for i, node in enumerate(asked):
            member, test, is_there = self._member(scope, node, i)
            position = Predicate(test, len(conjuncts) + i, node.sql(dialect="spark"))
            if is_there:
                members.append(Count(CountRule.DISTINCT, (member,)))
                predicates += (position,)
            else:
                absent.append((member, position))
        body = members[0] if len(members) == 1 else Join(tuple(members))
        body = Filter(body, predicates) if predicates else body
        for member, position in absent:
            body = OuterJoin(OuterKind.ANTI, body, member, (position,))
        return body

    def _member(self, scope: Scope, node: exp.Expr, number: int) -> tuple[Node, Expr, bool]:
        """The values asked for by `x [NOT] IN (SELECT ...)`, the test of a row against one of them,
        and whether one must, or none may, pass it."""
        found = _membership(node)
        assert found is not None
        asked, is_there = found
        query: ast.Query = asked.meta["query"]
        if _written_kind(query) is not None:
            error = BindError("a subquery in a condition is a relation", remedy="drop ISTREAM")
            self.fail(error, query.at)
        found_inner = _bind(query, self.catalog, self.text)
        _refuse_whole(query, found_inner, self.text)
        inner = found_inner.node
        if len(inner.schema) != 1:
            self.fail(BindError("IN takes a subquery of one column"), query.at)
        column = Named(f"in {number + 1}.{inner.schema[0].name}", inner.schema[0].column())
        value = column.field().column()
        operand = scope.bind(asked.this)
        try:
            test = functions.resolve("=", [operand, value])
            if not is_there and test.nullable:  # NOT IN is not true where the answer is unknown
                test = functions.resolve("coalesce", [test, Literal(BOOLEAN, False, True)])
        except ThalwegError as refusal:
            raise scope.place(refusal, node) from None
        return Project(inner, (column,)), test, is_there

    def _kind(self, aggregated: bool) -> EmitKind:
        if self.query.kind is not None:
            return self.query.kind
        first = self.query.from_items[0]
        plain = len(self.query.from_items) == 1 and not aggregated and not self.query.distinct
        if not plain or not isinstance(first, ast.Source) or first.window is not None:
            return EmitKind.RELATION
        return EmitKind.ISTREAM if self._is_stream(first) else EmitKind.RELATION

    def _is_stream(self, source: ast.Source) -> bool:
        inner = self._inner(source)
        if inner is not None:
            return inner.kind is not EmitKind.RELATION
        return isinstance(self.catalog.relation(source.name or ""), StreamDef)

    def _inner(self, source: ast.Source) -> _Found | None:
        """The query inside a source, bound once however often it is asked for."""
        if id(source) not in self._bound:
            self._bound[id(source)] = self._bound_inner(source)
        return self._bound[id(source)]

    def _bound_inner(self, source: ast.Source) -> _Found | None:
        """A subquery, or a view."""
        if source.subquery is not None:
            found = _bind(source.subquery, self.catalog, self.text)
            _refuse_whole(source.subquery, found, self.text)
            return found
        view = self.catalog.relation(source.name or "")
        if not isinstance(view, ViewDef):
            return None
        return _bind(parse_query(view.text), self.catalog, view.text)

    # -- what later versions bring -----------------------------------------------------------

    def _refuse_later(self) -> None:
        q = self.query
        for present, what in (
            (q.errors, "ERROR ... WITHIN"),
            (q.sample, "SAMPLE"),
            (q.qos, "QOS"),
        ):
            if present:
                self.fail(NotAvailableYet(f"{what} is not available yet"), q.at)
        for source in q.sources:
            if source.models:
                self.fail(NotAvailableYet("MODEL is not available yet"), source.at)

    # -- FROM --------------------------------------------------------------------------------

    def _from(self) -> _Items:
        self._refuse_twins()
        found = _Items([], [], [])
        for item in self.query.from_items:
            one = self._from_item(item)
            found.members += one.members
            found.sources += one.sources
            found.conditions += one.conditions
        return found

    def _refuse_twins(self) -> None:
        seen: set[str] = set()
        for i, source in enumerate(self.query.sources):
            alias = _alias(source, i)
            if alias.lower() in seen:
                self.fail(
                    DuplicateName(
                        f"two sources are called {alias}", remedy="give one of them an alias"
                    ),
                    source.at,
                )
            seen.add(alias.lower())

    def _from_item(self, item: ast.FromItem) -> _Items:
        if isinstance(item, ast.Source):
            return self._source(item)
        left, right = self._from_item(item.left), self._from_item(item.right)
        if item.kind in ("INNER", "CROSS"):
            own = [] if item.condition is None else [item.condition]
            return _Items(
                left.members + right.members,
                left.sources + right.sources,
                left.conditions + right.conditions + own,
            )
        if item.kind == "NATURAL":
            error = BindError("NATURAL JOIN is not part of the language", remedy="write ON")
            self.fail(error, item.at)
        if item.kind in asof.KINDS:
            return self._as_of(item, left, right)
        if item.kind not in _OUTER:
            self.fail(NotAvailableYet(f"{item.kind} JOIN is not available yet"), item.at)
        return self._outer(item, left, right)

    def _as_of(self, item: ast.JoinRef, left: _Items, right: _Items) -> _Items:
        sources = (*left.sources, *right.sources)
        if len(left.members) > 1 or len(right.members) > 1 or len(sources) > 2:
            error = BindError(
                "an ASOF join is between two streams", remedy="put it into a subquery"
            )
            self.fail(error, item.at)
        binder = asof.AsOf(item, Scope(self.catalog, sources, self.text), self.text)
        sides = (asof.Side(side.members[0], side.sources[0]) for side in (left, right))
        node = binder.node(*sides)
        types = {f.name: f for f in node.schema}
        shown = [replace(s, fields=tuple(types[f.name] for f in s.fields)) for s in sources]
        return _Items([node], shown, left.conditions + right.conditions)

    def _outer(self, item: ast.JoinRef, left: _Items, right: _Items) -> _Items:
        assert item.condition is not None, "the parser wants ON"
        both = Scope(self.catalog, (*left.sources, *right.sources), self.text)
        predicates = bound_predicates(both, (item.condition,))
        nodes = [
            self._filtered(side, Scope(self.catalog, tuple(side.sources), self.text))
            for side in (left, right)
        ]
        kind = _OUTER[item.kind]
        if item.kind == "RIGHT":
            nodes.reverse()
        node = OuterJoin(kind, nodes[0], nodes[1], predicates)
        sources = left.sources if kind in (OuterKind.SEMI, OuterKind.ANTI) else both.sources
        types = {f.name: f for f in node.schema}
        shown = [replace(s, fields=tuple(types[f.name] for f in s.fields)) for s in sources]
        return _Items([node], shown, [])

    def _source(self, source: ast.Source) -> _Items:
        inner = self._inner(source)
        if inner is not None:
            return self._subquery(source, inner)
        name = source.name or ""
        found = self.catalog.relation(name)
        if found is None or isinstance(found, ViewDef):
            known = self.catalog.relation_names()
            self.fail(
                UnknownName(f"unknown stream or table {name}", remedy=did_you_mean(name, known)),
                source.at,
            )
        alias = _alias(source, 0)
        if "." in alias:
            self.fail(BindError(f"the alias {alias} may not contain a dot"), source.at)
        fields = tuple(Field(f"{alias}.{f.name}", f.type, f.nullable) for f in found.fields)
        visible = Visible(alias, fields, _event_time(found, alias), isinstance(found, TableDef))
        scan = Scan(found.name, alias, fields, isinstance(found, TableDef))
        if not scan.is_table:
            return _Items([Window(scan, self._window(source, visible))], [visible], [])
        if source.window is not None:
            self.fail(
                WindowMisuse(
                    f"{scan.relation} is a table; only streams have windows",
                    remedy="drop the window",
                ),
                source.at,
            )
        return _Items([scan], [visible], [])

    def _subquery(self, source: ast.Source, inner: _Found) -> _Items:
        alias = _alias(source, self.query.sources.index(source))
        fields = tuple(replace(f, name=f"{alias}.{f.name}") for f in inner.node.schema)
        columns = tuple(
            Named(new.name, old.column())
            for new, old in zip(fields, inner.node.schema, strict=True)
        )
        visible = Visible(alias, fields)
        renamed = Project(inner.node, columns)
        if inner.kind is EmitKind.RELATION:
            if source.window is not None:
                self.fail(
                    WindowMisuse(
                        f"{source.name or 'the subquery'} gives a relation; only streams have "
                        "windows",
                        remedy="drop the window, or make it a stream with SELECT ISTREAM",
                    ),
                    source.at,
                )
            return _Items([renamed], [visible], [])
        stream = Emit(renamed, inner.kind)
        return _Items([Window(stream, self._window(source, visible))], [visible], [])

    def _window(self, source: ast.Source, visible: Visible) -> WindowSpec:
        window = source.window
        if window is None or isinstance(window, ast.UnboundedWindow):
            return UNBOUNDED
        if isinstance(window, ast.NowWindow):
            return NOW
        if isinstance(window, ast.RangeWindow):
            if window.slide == 0:
                self.fail(WindowMisuse("a window cannot slide by nothing"), source.at)
            return TimeWindow(window.range, window.slide)
        if isinstance(window, ast.LandmarkWindow):
            return self._landmark(source, window)
        if isinstance(window, ast.FromToWindow):
            since, until = moment(window.start, self.text), moment(window.end, self.text)
            if until < since:
                self.fail(WindowMisuse("the window ends before it begins"), source.at)
            return TimeWindow(None, since=since, until=until)
        if isinstance(window, ast.RowsWindow):
            if window.rows < 1:
                self.fail(WindowMisuse("a row window holds at least one row"), source.at)
            return RowWindow(window.rows, self._partition(source, visible, window.partition_by))
        if isinstance(window, ast.SessionWindow):
            return self._session(source, visible, window)
        word = type(window).__name__.removesuffix("Window").upper()
        self.fail(NotAvailableYet(f"{word} windows are not available yet"), source.at)

    def _landmark(self, source: ast.Source, window: ast.LandmarkWindow) -> TimeWindow:
        if window.at is not None:
            return TimeWindow(None, since=moment(window.at, self.text))
        if not window.every:
            self.fail(WindowMisuse("landmarks need a distance"), source.at)
        return TimeWindow(None, every=window.every)

    def _session(
        self, source: ast.Source, visible: Visible, window: ast.SessionWindow
    ) -> SessionWindow:
        """Sessions of the partition that is named, or else of what the query groups by."""
        by = window.partition_by
        if not by:
            names = {f.name.split(".", 1)[1].lower() for f in visible.fields}
            by = tuple(
                node
                for node in self.query.group_by
                if isinstance(node, exp.Column)
                and node.name.lower() in names
                and node.table.lower() in ("", visible.alias.lower())
            )
        return SessionWindow(window.gap, self._partition(source, visible, by))

    def _partition(
        self, source: ast.Source, visible: Visible, nodes: tuple[exp.Expr, ...]
    ) -> tuple[str, ...]:
        own = Scope(self.catalog, (visible,), self.text)
        by = [own.bind(e) for e in nodes]
        if not all(isinstance(e, Column) for e in by):
            self.fail(WindowMisuse("PARTITION BY takes columns of the stream"), source.at)
        return tuple(e.name for e in by if isinstance(e, Column))

    # -- WHERE, SELECT -----------------------------------------------------------------------

    def _items(self, scope: Scope) -> list[Item]:
        found: list[Item] = []
        for node in self.query.items:
            found += self._item(scope, node)
        return _distinct_names(found)

    def _item(self, scope: Scope, node: exp.Expr) -> list[Item]:
        if isinstance(node, exp.Star):
            fields = [f for s in scope.sources for f in s.fields]
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            fields = list(scope.source_named(node.table, node).fields)
        else:
            name, inner = _output_name(node)
            if name.startswith("__"):
                scope.fail(BindError(f"{name}: names starting with __ are reserved"), node)
            bound = scope.bind(inner, aggregates=True)
            if bound.type == NULL:
                scope.fail(
                    TypeMismatch(f"column {name} has no type", remedy="CAST(NULL AS type)"), node
                )
            return [(name, bound, node)]
        return [(f.name.split(".", 1)[1], f.column(), node) for f in fields]


def _membership(node: exp.Expr) -> tuple[exp.In, bool] | None:
    """`x IN (SELECT ...)`, and whether it is asked for (or denied)."""
    is_there = True
    while isinstance(node, (exp.Paren, exp.Not)):
        is_there ^= isinstance(node, exp.Not)
        node = node.this
    if not isinstance(node, exp.In) or "query" not in node.meta:
        return None
    return node, is_there ^ bool(node.args.get("negate"))


def _alias(source: ast.Source, position: int) -> str:
    if source.name is None:
        return source.alias or f"subquery_{position + 1}"
    return source.alias or source.name.rsplit(".", 1)[-1]


def _event_time(relation: StreamDef | TableDef, alias: str) -> Expr | None:
    if isinstance(relation, TableDef) or relation.timestamp is None:
        return None
    found = next(f for f in relation.fields if f.name == relation.timestamp)
    return Column(found.type, found.nullable, f"{alias}.{found.name}")


def _output_name(node: exp.Expr) -> tuple[str, exp.Expr]:
    if isinstance(node, exp.Alias):
        return node.alias, node.this
    if isinstance(node, exp.Column):
        return node.name, node
    return str(node.sql(dialect="spark")).replace("`", ""), node


def _distinct_names(
    items: list[Item],
) -> list[Item]:
    """A name used twice gets a number, since an output column must be found by its name."""
    written = {name.lower() for name, _, _ in items}
    taken: set[str] = set()
    found = []
    for name, expr, node in items:
        chosen, count = name, 1
        while chosen.lower() in taken or (count > 1 and chosen.lower() in written):
            count += 1
            chosen = f"{name}_{count}"
        taken.add(chosen.lower())
        found.append((chosen, expr, node))
    return found
