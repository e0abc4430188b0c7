"""SELECT to a logical plan: names, types and windows settled, or refused with the place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn

from sqlglot import exp

from thalweg.errors import (
    AggregateMisuse,
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
from thalweg.lang import ast
from thalweg.lang.parser import place
from thalweg.lang.scope import Scope
from thalweg.plan.bounded import verdict
from thalweg.plan.catalog import Catalog, StreamDef, TableDef
from thalweg.plan.expr import AggregateCall, Column, Expr, Predicate, columns_of, walk
from thalweg.plan.logical import (
    NOW,
    UNBOUNDED,
    Aggregate,
    Emit,
    EmitKind,
    Field,
    Filter,
    Join,
    Named,
    NamedAggregate,
    Node,
    Project,
    RowWindow,
    Scan,
    TimeWindow,
    Window,
    WindowSpec,
)
from thalweg.plan.query import ALLOWED_OPTIONS, BoundQuery, QueryOptions
from thalweg.plan.types import NULL


def bind(query: ast.Query, catalog: Catalog, text: str) -> BoundQuery:
    """The bound query, or a refusal. `text` is what error places point into."""
    if isinstance(query, ast.SetOperation):
        raise NotAvailableYet(f"{query.operator} is not available yet").at(
            text, *place(text, query.at)
        )
    binder = _Binder(query, catalog, text)
    bound = BoundQuery(binder.root(), binder.options(), text)
    found = verdict(bound.root)
    if found.reasons and not bound.options.unbounded:
        binder.fail(
            UnboundedState(
                "the query's state would grow for ever: " + "; ".join(found.reasons),
                remedy="give the stream a window such as [RANGE 1 HOUR], or say "
                "WITH (unbounded = true)",
            ),
            query.at,
        )
    return bound


@dataclass(slots=True)
class _Binder:
    query: ast.Select
    catalog: Catalog
    text: str

    def fail(self, error: ThalwegError, at: int) -> NoReturn:
        raise error.at(self.text, *place(self.text, at))

    def root(self) -> Emit:
        self._refuse_later()
        scope = self._scope()
        relation = self._windows(scope)
        body: Node = relation[0] if len(relation) == 1 else Join(tuple(relation))
        on = [c for item in self.query.from_items for c in self._inner_conditions(item)]
        predicates = self._predicates(scope, (*on, *self.query.conditions))
        if predicates:
            body = Filter(body, predicates)
        items = self._items(scope)
        aggregated = bool(self.query.group_by) or self.query.having is not None
        aggregated |= any(_aggregates(e) for _, e, _ in items)
        if aggregated:
            body, items = self._aggregate(scope, body, items)
        columns = tuple(Named(name, expr) for name, expr, _ in items)
        return Emit(Project(body, columns), self._kind(aggregated))

    def _kind(self, aggregated: bool) -> EmitKind:
        if self.query.kind is not None:
            return self.query.kind
        first = self.query.sources[0]
        bare = len(self.query.sources) == 1 and first.window is None and not aggregated
        return EmitKind.ISTREAM if bare and self._is_stream(first) else EmitKind.RELATION

    def _is_stream(self, source: ast.Source) -> bool:
        return isinstance(self.catalog.relation(source.name or ""), StreamDef)

    # -- what later versions bring -----------------------------------------------------------

    def _refuse_later(self) -> None:
        q = self.query
        for present, what in (
            (q.distinct, "SELECT DISTINCT"),
            (q.grouping, q.grouping or ""),
            (q.order_by, "ORDER BY"),
            (q.limit is not None, "LIMIT"),
            (q.errors, "ERROR ... WITHIN"),
            (q.sample, "SAMPLE"),
            (q.qos, "QOS"),
            (q.into, "INTO"),
        ):
            if present:
                self.fail(NotAvailableYet(f"{what} is not available yet"), q.at)
        for source in q.sources:
            if source.subquery is not None:
                self.fail(NotAvailableYet("subqueries in FROM are not available yet"), source.at)
            if source.models:
                self.fail(NotAvailableYet("MODEL is not available yet"), source.at)

    # -- FROM --------------------------------------------------------------------------------

    def _inner_conditions(self, item: ast.FromItem) -> list[exp.Expr]:
        """The ON of inner joins, which are conditions like any other."""
        if isinstance(item, ast.Source):
            return []
        if item.kind not in ("INNER", "CROSS"):
            self.fail(NotAvailableYet(f"{item.kind} JOIN is not available yet"), item.at)
        own = [] if item.condition is None else [item.condition]
        return self._inner_conditions(item.left) + self._inner_conditions(item.right) + own

    def _scope(self) -> Scope:
        scans: list[Scan] = []
        for source in self.query.sources:
            scan = self._scan(source)
            if any(s.alias.lower() == scan.alias.lower() for s in scans):
                self.fail(
                    DuplicateName(
                        f"two sources are called {scan.alias}", remedy="give one of them an alias"
                    ),
                    source.at,
                )
            scans.append(scan)
        if all(s.is_table for s in scans):
            self.fail(
                BindError(
                    "a continuous query needs at least one stream",
                    remedy="a query over tables alone is a Spark query: use engine.spark.sql",
                ),
                self.query.at,
            )
        return Scope(self.catalog, tuple(scans), self.text)

    def _scan(self, source: ast.Source) -> Scan:
        name = source.name or ""
        found = self.catalog.relation(name)
        if found is None:
            known = self.catalog.relation_names()
            self.fail(
                UnknownName(f"unknown stream or table {name}", remedy=did_you_mean(name, known)),
                source.at,
            )
        alias = source.alias or name.rsplit(".", 1)[-1]
        if "." in alias:
            self.fail(BindError(f"the alias {alias} may not contain a dot"), source.at)
        fields = tuple(Field(f"{alias}.{f.name}", f.type, f.nullable) for f in found.fields)
        return Scan(found.name, alias, fields, isinstance(found, TableDef))

    def _windows(self, scope: Scope) -> list[Node]:
        nodes: list[Node] = []
        for source, scan in zip(self.query.sources, scope.scans, strict=True):
            if scan.is_table:
                if source.window is not None:
                    self.fail(
                        WindowMisuse(
                            f"{scan.relation} is a table; only streams have windows",
                            remedy="drop the window",
                        ),
                        source.at,
                    )
                nodes.append(scan)
            else:
                nodes.append(Window(scan, self._window(scope, source, scan)))
        return nodes

    def _window(self, scope: Scope, source: ast.Source, scan: Scan) -> WindowSpec:
        window = source.window
        if window is None or isinstance(window, ast.UnboundedWindow):
            return UNBOUNDED
        if isinstance(window, ast.NowWindow):
            return NOW
        if isinstance(window, ast.RangeWindow):
            if window.slide == 0:
                self.fail(WindowMisuse("a window cannot slide by nothing"), source.at)
            return TimeWindow(window.range, window.slide)
        if isinstance(window, ast.RowsWindow):
            return self._row_window(scope, source, scan, window)
        word = type(window).__name__.removesuffix("Window").upper()
        self.fail(NotAvailableYet(f"{word} windows are not available yet"), source.at)

    def _row_window(
        self, scope: Scope, source: ast.Source, scan: Scan, window: ast.RowsWindow
    ) -> RowWindow:
        if window.rows < 1:
            self.fail(WindowMisuse("a row window holds at least one row"), source.at)
        own = replace(scope, scans=(scan,)) if window.partition_by else scope
        by = [own.bind(e) for e in window.partition_by]
        if not all(isinstance(e, Column) for e in by):
            self.fail(WindowMisuse("PARTITION BY takes columns of the stream"), source.at)
        return RowWindow(window.rows, tuple(e.name for e in by if isinstance(e, Column)))

    # -- WHERE, SELECT -----------------------------------------------------------------------

    def _predicates(
        self, scope: Scope, nodes: tuple[exp.Expr, ...], *, aggregates: bool = False
    ) -> tuple[Predicate, ...]:
        conjuncts = [c for node in nodes for c in _conjuncts(node)]
        return tuple(
            Predicate(scope.condition(c, aggregates=aggregates), i, c.sql(dialect="spark"))
            for i, c in enumerate(conjuncts)
        )

    def _items(self, scope: Scope) -> list[tuple[str, Expr, exp.Expr]]:
        found: list[tuple[str, Expr, exp.Expr]] = []
        for node in self.query.items:
            found += self._item(scope, node)
        return _distinct_names(found)

    def _item(self, scope: Scope, node: exp.Expr) -> list[tuple[str, Expr, exp.Expr]]:
        if isinstance(node, exp.Star):
            fields = [f for s in scope.scans for f in s.fields]
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            fields = list(scope.scan_named(node.table, node).fields)
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

    # -- GROUP BY, HAVING --------------------------------------------------------------------

    def _aggregate(
        self, scope: Scope, body: Node, items: list[tuple[str, Expr, exp.Expr]]
    ) -> tuple[Node, list[tuple[str, Expr, exp.Expr]]]:
        keys = tuple(Named(str(k), k) for k in self._keys(scope, items))
        having: tuple[Predicate, ...] = ()
        if self.query.having is not None:
            having = self._predicates(scope, (self.query.having,), aggregates=True)
        calls = dict.fromkeys(
            call
            for e in [*(i[1] for i in items), *(p.expr for p in having)]
            for call in _aggregates(e)
        )
        named = tuple(NamedAggregate(str(c), c) for c in calls)
        node: Node = Aggregate(body, keys, named)
        lift = _Lift(scope, {k.expr: k.field().column() for k in keys})
        if having:
            assert self.query.having is not None
            node = Filter(
                node,
                tuple(replace(p, expr=lift(p.expr, self.query.having)) for p in having),
            )
        return node, [(name, lift(e, at), at) for name, e, at in items]

    def _keys(self, scope: Scope, items: list[tuple[str, Expr, exp.Expr]]) -> list[Expr]:
        keys: list[Expr] = []
        for node in self.query.group_by:
            key = self._key(scope, node, items)
            if _aggregates(key):
                scope.fail(AggregateMisuse("GROUP BY may not contain an aggregate"), node)
            if key not in keys:
                keys.append(key)
        return keys

    def _key(self, scope: Scope, node: exp.Expr, items: list[tuple[str, Expr, exp.Expr]]) -> Expr:
        if isinstance(node, exp.Literal) and not node.args.get("is_string"):
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
                scope.fail(BindError(f"GROUP BY {node.name}: there is no such column"), node)
            return items[int(node.name) - 1][1]
        if isinstance(node, exp.Column) and not node.table:
            names = {f.name.split(".", 1)[1].lower() for s in scope.scans for f in s.fields}
            for name, expr, _ in items:
                if name.lower() == node.name.lower() and name.lower() not in names:
                    return expr
        return scope.bind(node)

    # -- WITH --------------------------------------------------------------------------------

    def options(self) -> QueryOptions:
        chosen: dict[str, Any] = {}
        for key, value in self.query.options:
            name = key.lower()
            allowed = ALLOWED_OPTIONS.get(name)
            if allowed is None:
                self.fail(
                    UnknownName(
                        f"unknown option {key}", remedy=did_you_mean(name, ALLOWED_OPTIONS)
                    ),
                    self.query.at,
                )
            chosen[name] = self._option(name, value, allowed)
        return QueryOptions(**chosen)

    def _option(self, name: str, value: Any, allowed: tuple[Any, ...] | type) -> Any:
        if isinstance(allowed, type):
            if type(value) is allowed:
                return value
            wanted = {"bool": "true or false", "int": "a whole number"}[allowed.__name__]
            self.fail(BindError(f"option {name} takes {wanted}, not {value!r}"), self.query.at)
        if str(value).lower() in allowed:
            return str(value).lower()
        self.fail(
            BindError(f"option {name} cannot be {value!r}", remedy="one of " + ", ".join(allowed)),
            self.query.at,
        )


@dataclass(slots=True)
class _Lift:
    """Expressions over the input to expressions over the aggregate's output."""

    scope: Scope
    keys: dict[Expr, Column]

    def __call__(self, expr: Expr, node: exp.Expr) -> Expr:
        lifted = self._lift(expr)
        inside = {c.name for c in self.keys.values()}
        inside |= {str(e) for e in _aggregates(expr)}
        loose = sorted(columns_of(lifted) - inside)
        if loose:
            self.scope.fail(
                AggregateMisuse(
                    f"{loose[0]} is neither aggregated nor in GROUP BY",
                    remedy=f"add it to GROUP BY, or wrap it as max({loose[0]})",
                ),
                node,
            )
        return lifted

    def _lift(self, expr: Expr) -> Expr:
        if expr in self.keys:
            return self.keys[expr]
        if isinstance(expr, AggregateCall):
            return Column(expr.type, expr.nullable, str(expr))
        args = getattr(expr, "args", None)
        if not args:
            return expr
        return replace(expr, args=tuple(self._lift(a) for a in args))  # type: ignore[call-arg]


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.And):
        found: list[exp.Expr] = []
        while isinstance(node, exp.And):
            found = _conjuncts(node.expression) + found
            node = node.this
        return _conjuncts(node) + found
    return [node]


def _aggregates(expr: Expr) -> list[AggregateCall]:
    return [e for e in walk(expr) if isinstance(e, AggregateCall)]


def _output_name(node: exp.Expr) -> tuple[str, exp.Expr]:
    if isinstance(node, exp.Alias):
        return node.alias, node.this
    if isinstance(node, exp.Column):
        return node.name, node
    return str(node.sql(dialect="spark")).replace("`", ""), node


def _distinct_names(
    items: list[tuple[str, Expr, exp.Expr]],
) -> list[tuple[str, Expr, exp.Expr]]:
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
