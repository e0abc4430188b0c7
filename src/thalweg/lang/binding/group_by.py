"""GROUP BY and HAVING: one aggregate per grouping set, and the union of their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from thalweg.aggregates.grouping import GROUPING
from thalweg.errors import AggregateMisuse, BindError
from thalweg.lang.binding.conditions import bound_predicates
from thalweg.lang.binding.scope import Scope
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp
from thalweg.plan.expr import AggregateCall, Call, Column, Expr, Literal, columns_of, walk
from thalweg.plan.logical import (
    Aggregate,
    Closing,
    Filter,
    Join,
    Named,
    NamedAggregate,
    Node,
    Project,
    Scan,
    Union,
    Window,
)
from thalweg.plan.logical import walk as walk_nodes
from thalweg.plan.types import DATE, INT, TIMESTAMP
from thalweg.windows.range import UNBOUNDED

Item = tuple[str, Expr, exp.Expr]
"""A column of SELECT: its name, what it computes, and its place in the text."""
_MOST_SETS = 4096


def aggregates_in(expr: Expr) -> list[AggregateCall]:
    return [e for e in walk(expr) if isinstance(e, AggregateCall)]


def grouped(query: ast.Select, scope: Scope, body: Node, items: list[Item]) -> Node:
    """The rows of SELECT over groups of `body`."""
    keys, sets = Keys(query, scope, items).found()
    having = bound_predicates(scope, (query.having,), aggregates=True) if query.having else ()
    exprs = [*(i[1] for i in items), *(p.expr for p in having)]
    found = dict.fromkeys(call for e in exprs for call in aggregates_in(e))
    calls = [c for c in found if c.kind is not GROUPING]
    named = tuple(NamedAggregate(str(c), c) for c in calls)
    columns = {k: Named(str(k), k) for k in keys}
    if len(sets) > 1:
        body, columns, named = _shared(body, keys, calls)
    members = []
    for chosen in sets:
        lift = Lift(scope, keys, chosen)
        keyed = tuple(columns[k] for k in chosen)
        node: Node = Aggregate(body, keyed, named, _closing(scope, body, chosen))
        if query.having is not None:
            at = query.having
            node = Filter(node, tuple(replace(p, expr=lift(p.expr, at)) for p in having))
        members.append(Project(node, tuple(Named(name, lift(e, at)) for name, e, at in items)))
    return members[0] if len(members) == 1 else Union(tuple(members))


def _shared(
    body: Node, keys: list[Expr], calls: list[AggregateCall]
) -> tuple[Node, dict[Expr, Named], tuple[NamedAggregate, ...]]:
    """Keys and arguments computed once for all grouping sets, so that a row on which one of them
    fails is rejected once."""
    values = dict.fromkeys([*keys, *(a for c in calls for a in c.arguments)])
    columns = {e: Column(e.type, e.nullable, str(e)) for e in values}
    named = tuple(
        NamedAggregate(str(c), replace(c, arguments=tuple(columns[a] for a in c.arguments)))
        for c in calls
    )
    shared = Project(body, tuple(Named(str(e), e) for e in values))
    return shared, {k: Named(str(k), columns[k]) for k in keys}, named


_UNITS = {
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 7 * 86_400_000_000,
    "month": 31 * 86_400_000_000,
    "quarter": 92 * 86_400_000_000,
    "year": 366 * 86_400_000_000,
}


def _closing(scope: Scope, body: Node, keys: list[Expr]) -> Closing | None:
    """When groups over a stream without a window are complete: one of the keys is the event time,
    or the hour, day, ... it lies in."""
    if not all(isinstance(n, (Filter, Join, Window, Scan)) for n in walk_nodes(body)):
        return None
    timed = [s.time for s in scope.sources if not s.is_table]
    windows = [n.window for n in walk_nodes(body) if isinstance(n, Window)]
    if len(timed) != 1 or timed[0] is None or windows != [UNBOUNDED]:
        return None
    for key in keys:
        period = _period(key, timed[0])
        if period is not None:
            return Closing(str(key), period)
    return None


def _period(key: Expr, time: Expr) -> int | None:
    if key.type != TIMESTAMP and key.type != DATE:
        return None
    if key == time:
        return 1
    if not isinstance(key, Call) or key.args[-1] != time:
        return None
    unit = key.args[0]
    if key.function == "date_trunc" and isinstance(unit, Literal):
        return _UNITS.get(str(unit.value).lower())
    return _UNITS["day"] if key.function == "cast" and key.type == DATE else None


@dataclass(slots=True)
class Keys:
    """The keys of GROUP BY, and the sets of them to group by."""

    query: ast.Select
    scope: Scope
    items: list[Item]

    def found(self) -> tuple[list[Expr], list[list[Expr]]]:
        groups = [[self._key(n) for n in _members(node)] for node in self.query.group_by]
        keys = list(dict.fromkeys(k for group in groups for k in group))
        if self.query.grouping is None:
            return keys, [keys]
        if self.query.grouping == "ROLLUP":
            chosen = [groups[:n] for n in range(len(groups), -1, -1)]
        elif self.query.grouping == "CUBE":
            self._refuse_many(2 ** len(groups))
            sizes = range(len(groups), -1, -1)
            chosen = [list(c) for n in sizes for c in combinations(groups, n)]
        else:
            chosen = [[group] for group in groups]
        self._refuse_many(len(chosen))
        sets = [list(dict.fromkeys(k for group in one for k in group)) for one in chosen]
        return keys, sets

    def _refuse_many(self, count: int) -> None:
        if count > _MOST_SETS:
            self.scope.fail(
                BindError(
                    f"{count} grouping sets are too many, {_MOST_SETS} is the most",
                    remedy="write the sets that are needed as GROUPING SETS (...)",
                ),
                self.query.at,
            )

    def _key(self, node: exp.Expr) -> Expr:
        key = self._bound(node)
        if aggregates_in(key):
            self.scope.fail(
                AggregateMisuse(
                    "GROUP BY may not contain an aggregate",
                    remedy="group by columns, and put the condition on the aggregate into HAVING",
                ),
                node,
            )
        return key

    def _bound(self, node: exp.Expr) -> Expr:
        if isinstance(node, exp.Literal) and not node.args.get("is_string"):
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(self.items):
                self.scope.fail(
                    BindError(
                        f"GROUP BY {node.name}: there is no such column",
                        remedy=f"SELECT has the columns 1 to {len(self.items)}",
                    ),
                    node,
                )
            return self.items[int(node.name) - 1][1]
        if isinstance(node, exp.Column) and not node.table:
            fields = [f for s in self.scope.sources for f in s.fields]
            names = {f.name.split(".", 1)[1].lower() for f in fields}
            for name, expr, _ in self.items:
                if name.lower() == node.name.lower() and name.lower() not in names:
                    return expr
        return self.scope.bind(node)


def _members(node: exp.Expr) -> list[exp.Expr]:
    """The keys in one set: `a`, `(a, b)` or `()`."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this] if isinstance(node, exp.Paren) else [node]


@dataclass(slots=True)
class Lift:
    """Expressions over the input to expressions over one grouping set's aggregate, where keys that
    are not in the set are NULL."""

    scope: Scope
    keys: list[Expr]
    chosen: list[Expr]

    def __call__(self, expr: Expr, node: exp.Expr) -> Expr:
        lifted = self._lift(expr)
        inside = {str(k) for k in self.chosen} | {str(e) for e in aggregates_in(expr)}
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
        if expr in self.chosen:
            return Column(expr.type, expr.nullable, str(expr))
        if expr in self.keys:
            return Literal(expr.type, True, None)
        if isinstance(expr, AggregateCall):
            if expr.kind is GROUPING:
                return self._grouping(expr.arguments[0])
            return Column(expr.type, expr.nullable, str(expr))
        args = getattr(expr, "args", None)
        if not args:
            return expr
        return replace(expr, args=tuple(self._lift(a) for a in args))  # type: ignore[call-arg]

    def _grouping(self, key: Expr) -> Expr:
        if key not in self.keys:
            raise BindError(
                f"grouping({key}): {key} is not a key of GROUP BY",
                remedy="it takes one of " + ", ".join(map(str, self.keys)),
            )
        return Literal(INT, False, int(key not in self.chosen))
