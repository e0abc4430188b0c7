"""FROM: sources with their windows, subqueries, views, and explicit joins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NoReturn

from thalweg.errors import (
    BindError,
    DuplicateName,
    NotAvailableYet,
    ThalwegError,
    UnknownName,
    WindowMisuse,
    did_you_mean,
)
from thalweg.lang.binding import asof_join
from thalweg.lang.binding.bound_parts import Bind, Found, Items, refuse_curves, refuse_whole
from thalweg.lang.binding.bound_source import BoundSource
from thalweg.lang.binding.conditions import bound_predicates
from thalweg.lang.binding.in_subqueries import filtered
from thalweg.lang.binding.scope import Scope
from thalweg.lang.binding.source_windows import bound_window
from thalweg.lang.binding.visible import Visible
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.parser import parse_query
from thalweg.lang.parsing.places import place
from thalweg.lang.parsing.select_clauses import OWN_SOURCES, OwnSource, RelationClause
from thalweg.plan.catalog import Catalog, StreamDef, TableDef, ViewDef
from thalweg.plan.expr import Column, Expr
from thalweg.plan.logical import (
    Emit,
    EmitKind,
    Field,
    Named,
    OuterJoin,
    OuterKind,
    Project,
    Scan,
    Window,
)
from thalweg.windows.protocol import WindowSpec

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
class Sources:
    """The FROM of one SELECT; `bind` binds the queries inside it."""

    query: ast.Select
    catalog: Catalog
    text: str
    bind: Bind
    _bound: dict[int, Found | None] = field(default_factory=dict)

    def fail(self, error: ThalwegError, at: int) -> NoReturn:
        raise error.at(self.text, *place(self.text, at))

    def is_stream(self, source: ast.Source) -> bool:
        inner = self._inner(source)
        if inner is not None:
            return inner.kind is not EmitKind.RELATION
        return isinstance(self.catalog.relation(source.name or ""), StreamDef)

    def _inner(self, source: ast.Source) -> Found | None:
        """The query inside a source, bound once however often it is read."""
        if id(source) not in self._bound:
            self._bound[id(source)] = self._bound_inner(source)
        return self._bound[id(source)]

    def _bound_inner(self, source: ast.Source) -> Found | None:
        """A subquery, or a view."""
        if source.subquery is not None:
            found = self.bind(source.subquery, self.catalog, self.text)
            refuse_whole(source.subquery, found, self.text)
            return found
        view = self.catalog.relation(source.name or "")
        if not isinstance(view, ViewDef):
            return None
        return self.bind(parse_query(view.text), self.catalog, view.text)

    def items(self) -> Items:
        """All items of FROM."""
        self._refuse_twins()
        found = Items([], [], [])
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

    def _from_item(self, item: ast.FromItem) -> Items:
        if isinstance(item, ast.Source):
            return self._source(item)
        left, right = self._from_item(item.left), self._from_item(item.right)
        if item.kind not in ("INNER", "CROSS"):
            curves = [c for s in (*left.sources, *right.sources) for c in s.curves]
            refuse_curves(curves, f"{item.kind} JOIN", item.at, self.text)
        if item.kind in ("INNER", "CROSS"):
            own = [] if item.condition is None else [item.condition]
            return Items(
                left.members + right.members,
                left.sources + right.sources,
                left.conditions + right.conditions + own,
            )
        if item.kind == "NATURAL":
            error = BindError("NATURAL JOIN is not part of the language", remedy="write ON")
            self.fail(error, item.at)
        if item.kind in asof_join.KINDS:
            return self._as_of(item, left, right)
        if item.kind not in _OUTER:
            self.fail(
                NotAvailableYet(
                    f"{item.kind} JOIN is not available yet",
                    remedy="use LEFT, RIGHT, FULL, LEFT SEMI, LEFT ANTI, ASOF or LEFT ASOF JOIN",
                ),
                item.at,
            )
        return self._outer(item, left, right)

    def _as_of(self, item: ast.JoinRef, left: Items, right: Items) -> Items:
        sources = (*left.sources, *right.sources)
        if len(left.members) > 1 or len(right.members) > 1 or len(sources) > 2:
            error = BindError(
                "an ASOF join is between two streams", remedy="put it into a subquery"
            )
            self.fail(error, item.at)
        binder = asof_join.AsOf(item, Scope(self.catalog, sources, self.text), self.text)
        sides = (asof_join.Side(side.members[0], side.sources[0]) for side in (left, right))
        node = binder.node(*sides)
        types = {f.name: f for f in node.schema}
        shown = [replace(s, fields=tuple(types[f.name] for f in s.fields)) for s in sources]
        return Items([node], shown, left.conditions + right.conditions)

    def _outer(self, item: ast.JoinRef, left: Items, right: Items) -> Items:
        assert item.condition is not None, "the parser wants ON"
        both = Scope(self.catalog, (*left.sources, *right.sources), self.text)
        predicates = bound_predicates(both, (item.condition,))
        nodes = [
            filtered(side, Scope(self.catalog, tuple(side.sources), self.text), self.bind)
            for side in (left, right)
        ]
        kind = _OUTER[item.kind]
        if item.kind == "RIGHT":
            nodes.reverse()
        node = OuterJoin(kind, nodes[0], nodes[1], predicates)
        sources = left.sources if kind in (OuterKind.SEMI, OuterKind.ANTI) else both.sources
        types = {f.name: f for f in node.schema}
        shown = [replace(s, fields=tuple(types[f.name] for f in s.fields)) for s in sources]
        return Items([node], shown, [])

    def _source(self, source: ast.Source) -> Items:
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
            self.fail(
                BindError(f"the alias {alias} may not contain a dot", remedy="choose one without"),
                source.at,
            )
        fields = tuple(Field(f"{alias}.{f.name}", f.type, f.nullable) for f in found.fields)
        visible = Visible(alias, fields, _event_time(found, alias), isinstance(found, TableDef))
        scan = Scan(found.name, alias, fields, isinstance(found, TableDef))
        own = next(
            (o for o in OWN_SOURCES if isinstance(found, StreamDef) and o.applies(found)), None
        )
        if own is not None:
            return self._own(source, own, scan, visible)
        if source.clause is not None:
            return self._with_clause(source, source.clause, scan, visible)
        if not scan.is_table:
            return Items([Window(scan, self._window(source, visible))], [visible], [])
        if source.window is not None:
            self.fail(
                WindowMisuse(
                    f"{scan.relation} is a table; only streams have windows",
                    remedy="drop the window",
                ),
                source.at,
            )
        return Items([scan], [visible], [])

    def _own(self, source: ast.Source, own: OwnSource, scan: Scan, visible: Visible) -> Items:
        """A stream that a feature makes a relation of."""
        if source.clause is not None:
            error = BindError(f"{scan.relation} has segments already", remedy="drop MODEL")
            self.fail(error, source.at)
        made = own.bind(scan)
        window = None if source.window is None else self._window(source, visible)
        shown = Visible(visible.alias, made.fields, curves=made.curves, window=window)
        return Items([made.node], [shown], [])

    def _with_clause(
        self, source: ast.Source, clause: RelationClause, stream: Scan | Emit, visible: Visible
    ) -> Items:
        """A stream that a clause turns into a relation with columns of its own."""
        window = None if source.window is None else self._window(source, visible)
        binder = BoundSource(source, stream, visible, self.catalog, self.text)
        made = clause.bind(binder, stream)
        shown = replace(visible, fields=made.fields, curves=made.curves, window=window)
        return Items([made.node], [shown], [])

    def _subquery(self, source: ast.Source, inner: Found) -> Items:
        alias = _alias(source, self.query.sources.index(source))
        node = inner.node if inner.kind is EmitKind.RELATION else inner.finished
        curves = tuple((f"{alias}.{n}", c.under(alias)) for n, c in inner.curves)
        if node is not inner.node:
            curves = ()
        fields = tuple(replace(f, name=f"{alias}.{f.name}") for f in node.schema)
        columns = tuple(
            Named(new.name, old.column()) for new, old in zip(fields, node.schema, strict=True)
        )
        hidden = {name for _, curve in curves for name in curve.hidden}
        shown = tuple(f for f in fields if f.name not in hidden)
        visible = Visible(alias, shown, curves=curves)
        renamed = Project(node, columns)
        if inner.kind is EmitKind.RELATION:
            if source.clause is not None:
                self.fail(
                    BindError(
                        "MODEL is over a stream, and the subquery gives a relation",
                        remedy="write SELECT ISTREAM in the subquery",
                    ),
                    source.at,
                )
            if source.window is not None and curves:
                visible = replace(visible, window=self._window(source, visible))
            elif source.window is not None:
                self.fail(
                    WindowMisuse(
                        f"{source.name or 'the subquery'} gives a relation; only streams have "
                        "windows",
                        remedy="drop the window, or make it a stream with SELECT ISTREAM",
                    ),
                    source.at,
                )
            return Items([renamed], [visible], [])
        stream = Emit(renamed, inner.kind)
        if source.clause is not None:
            return self._with_clause(source, source.clause, stream, visible)
        return Items([Window(stream, self._window(source, visible))], [visible], [])

    def _window(self, source: ast.Source, visible: Visible) -> WindowSpec:
        return bound_window(source, visible, self.query, self.catalog, self.text)


def _alias(source: ast.Source, position: int) -> str:
    if source.name is None:
        return source.alias or f"subquery_{position + 1}"
    return source.alias or source.name.rsplit(".", 1)[-1]


def _event_time(relation: StreamDef | TableDef, alias: str) -> Expr | None:
    if isinstance(relation, TableDef) or relation.timestamp is None:
        return None
    found = next(f for f in relation.fields if f.name == relation.timestamp)
    return Column(found.type, found.nullable, f"{alias}.{found.name}")
