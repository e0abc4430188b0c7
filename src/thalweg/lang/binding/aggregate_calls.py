"""Aggregate calls in SQL: DISTINCT, FILTER and WITHIN GROUP. The arguments and results of each
aggregate are defined in `thalweg.aggregates`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

from thalweg.aggregates import AGGREGATE_KINDS, kind_named
from thalweg.aggregates.kind import AggregateKind, DistinctRule
from thalweg.errors import AggregateMisuse, BindError, ThalwegError, TypeMismatch
from thalweg.lang.binding.visible import ExpressionBinder
from thalweg.lang.syntax import exp
from thalweg.plan import functions
from thalweg.plan.expr import AggregateCall, Expr, Literal
from thalweg.plan.types import BOOLEAN, DOUBLE, NULL


@dataclass(slots=True)
class Call:
    """An aggregate as written: its arguments apart from DISTINCT, and its place in the text."""

    scope: ExpressionBinder
    node: exp.Expr
    name: str
    args: list[exp.Expr]
    distinct: bool = False

    def fail(self, error: ThalwegError) -> NoReturn:
        self.scope.fail(error, self.node)

    @property
    def count(self) -> int:
        return len(self.args)

    @property
    def is_star(self) -> bool:
        return len(self.args) == 1 and isinstance(self.args[0], exp.Star)

    @property
    def is_modeled(self) -> bool:
        return any(s.curves for s in self.scope.sources)

    def need(self, *counts: int) -> None:
        if len(self.args) not in counts:
            wanted = {1: "one argument", 2: "two arguments"}[counts[-1]]
            self.fail(
                AggregateMisuse(
                    f"{self.name}() takes {wanted}, {len(self.args)} given",
                    remedy="docs/language.md lists the aggregates with their arguments",
                )
            )

    def argument(self, number: int = 0) -> Expr:
        return self.scope.bind(self.args[number])

    def one(self) -> Expr:
        if self.is_star:
            self.fail(
                AggregateMisuse(
                    f"{self.name}(*) means nothing, only count(*) does",
                    remedy="write count(*), or name a column",
                )
            )
        self.need(1)
        return self.argument()

    def number(self) -> Expr:
        return self._numeric(self.one())

    def double(self, argument: Expr) -> Expr:
        self._numeric(argument)
        return argument if argument.type == DOUBLE else functions.cast(argument, DOUBLE)

    def _numeric(self, argument: Expr) -> Expr:
        if not argument.type.is_numeric and argument.type != NULL:
            self.fail(
                TypeMismatch(
                    f"{self.name}() needs a number, it got {argument.type}",
                    remedy="use a column of numbers, or CAST(... AS DOUBLE)",
                )
            )
        return argument

    def condition(self) -> Expr:
        self.need(1)
        return self.scope.condition(self.args[0])

    def event_time(self) -> Expr:
        timed = [s for s in self.scope.sources if not s.is_table]
        times = [s.time for s in timed if s.time is not None]
        alike = len({t.type for t in times}) == 1
        if len(times) < len(timed) or not alike:
            self.fail(
                BindError(
                    f"{self.name}() needs an event time, which not all sources have as a column",
                    remedy="write min_by(value, order) or max_by(value, order)",
                )
            )
        return times[0] if len(times) == 1 else functions.resolve("greatest", list(times))


def bind_aggregate(scope: ExpressionBinder, node: exp.Anonymous, name: str) -> AggregateCall:
    """The call of the aggregate of this name."""
    args, distinct = list(node.expressions), False
    if len(args) == 1 and isinstance(args[0], exp.Distinct):
        args, distinct = list(args[0].expressions), True
    call = Call(scope, node, name, args, distinct)
    kind = kind_named(name)
    assert kind is not None
    found = kind.names[name](call)
    if distinct and kind.distinct is DistinctRule.REFUSED:
        call.fail(
            AggregateMisuse(f"DISTINCT means nothing in {name}()", remedy="leave DISTINCT out")
        )
    return _ordered(call, kind, replace(found, distinct=found.distinct or distinct))


def _ordered(call: Call, kind: AggregateKind, found: AggregateCall) -> AggregateCall:
    """The call, unless it compares values that have no order."""
    loose = [a.type for a in found.arguments if not a.type.is_ordered]
    if loose and (found.distinct or not kind.takes_arrays):
        call.fail(
            TypeMismatch(
                f"{call.name}() compares values, {loose[0]} has no order",
                remedy="aggregate what the arrays are made of, or count(x)",
            )
        )
    return found


def bind_within_group(scope: ExpressionBinder, node: exp.WithinGroup) -> AggregateCall:
    """`percentile_cont(0.5) WITHIN GROUP (ORDER BY x)` and similar calls."""
    inner, order = node.this, node.expression
    name = str(getattr(inner, "this", "")).lower()
    ordered = order.expressions if isinstance(order, exp.Order) else []
    kind = next((k for k in AGGREGATE_KINDS if name in k.ordered_set), None)
    if kind is None or len(ordered) != 1 or ordered[0].args.get("desc"):
        scope.fail(
            AggregateMisuse(
                "WITHIN GROUP is for percentile_cont, percentile_disc, mode and listagg",
                remedy="write percentile_cont(0.5) WITHIN GROUP (ORDER BY x), ascending",
            ),
            node,
        )
    value = ordered[0].this
    args = list(inner.expressions)
    distinct = len(args) == 1 and isinstance(args[0], exp.Distinct)
    if distinct:
        args = list(args[0].expressions)
    if kind.lists:
        if args and args[0] != value:
            scope.fail(
                AggregateMisuse(
                    f"{name}() sorts by the value it lists",
                    remedy=f"sort by the value: {name}(x, ', ') WITHIN GROUP (ORDER BY x)",
                ),
                node,
            )
        args = args[1:]
    call = Call(scope, node, name, [value, *args], distinct)
    return _ordered(call, kind, kind.names[name](call))


def filtered(scope: ExpressionBinder, node: exp.Filter, call: Expr) -> AggregateCall:
    """`agg(x) FILTER (WHERE c)`: the argument that decides is NULL where the condition does not
    hold."""
    if not isinstance(call, AggregateCall):
        scope.fail(
            AggregateMisuse(
                "FILTER (WHERE ...) belongs to an aggregate",
                remedy="write it behind one, such as sum(x) FILTER (WHERE ...), or use CASE",
            ),
            node,
        )
    condition = scope.condition(node.expression.this)
    counted = call.arguments or (Literal(BOOLEAN, False, True),)
    last = functions.resolve(
        "case", [condition, counted[-1], Literal(counted[-1].type, True, None)]
    )
    return replace(call, arguments=(*counted[:-1], last))


LATER = ("approx_count_distinct", "approx_percentile", "corr", "covar_samp", "covar_pop")
