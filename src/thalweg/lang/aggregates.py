"""Aggregate calls: which there are, what they take and what they give.

Many names are another aggregate in disguise: `count_if(c)` counts where c holds, FIRST is the value
with the least event time, FILTER (WHERE c) makes the argument NULL elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from thalweg.errors import AggregateMisuse, BindError, ThalwegError, TypeMismatch
from thalweg.lang.syntax import exp
from thalweg.plan import functions
from thalweg.plan.expr import AggregateCall, Expr, Literal
from thalweg.plan.types import BIGINT, BOOLEAN, DOUBLE, INT, NULL, STRING, array_of

if TYPE_CHECKING:
    from thalweg.lang.scope import Scope


@dataclass(slots=True)
class Call:
    """An aggregate as written: its arguments apart from DISTINCT, and where it stands."""

    scope: Scope
    node: exp.Expr
    name: str
    args: list[exp.Expr]
    distinct: bool = False

    def fail(self, error: ThalwegError) -> NoReturn:
        self.scope.fail(error, self.node)

    def bound(self, count: int) -> list[Expr]:
        """The arguments, of which there must be so many."""
        self.need(count)
        return [self.scope.bind(a) for a in self.args]

    def need(self, *counts: int) -> None:
        if len(self.args) not in counts:
            wanted = {1: "one argument", 2: "two arguments"}[counts[-1]]
            self.fail(AggregateMisuse(f"{self.name}() takes {wanted}, {len(self.args)} given"))

    def number(self, argument: Expr) -> Expr:
        if not argument.type.is_numeric and argument.type != NULL:
            self.fail(TypeMismatch(f"{self.name}() needs a number, {argument} is {argument.type}"))
        return argument

    def double(self, argument: Expr) -> Expr:
        self.number(argument)
        return argument if argument.type == DOUBLE else functions.cast(argument, DOUBLE)


def bind_aggregate(scope: Scope, node: exp.Anonymous, name: str) -> AggregateCall:
    """The call of an aggregate whose name is one of `AGGREGATES`."""
    args, distinct = list(node.expressions), False
    if len(args) == 1 and isinstance(args[0], exp.Distinct):
        args, distinct = list(args[0].expressions), True
    call = Call(scope, node, name, args, distinct)
    found = AGGREGATES[name](call)
    if distinct and found.function in ("min_by", "max_by", "mode"):
        call.fail(AggregateMisuse(f"DISTINCT means nothing in {name}()"))
    return replace(found, distinct=found.distinct or distinct)


def bind_within_group(scope: Scope, node: exp.WithinGroup) -> AggregateCall:
    """`percentile_cont(0.5) WITHIN GROUP (ORDER BY x)` and its like."""
    inner, order = node.this, node.expression
    name = str(getattr(inner, "this", "")).lower()
    ordered = order.expressions if isinstance(order, exp.Order) else []
    if name not in _WITHIN_GROUP or len(ordered) != 1 or ordered[0].args.get("desc"):
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
    if name in ("listagg", "string_agg"):
        if args and args[0] != value:
            scope.fail(AggregateMisuse(f"{name}() sorts by the value it lists"), node)
        args = args[1:]
    return AGGREGATES[name](Call(scope, node, name, [value, *args], distinct))


_WITHIN_GROUP = ("percentile_cont", "percentile_disc", "mode", "listagg", "string_agg")


def filtered(scope: Scope, node: exp.Filter, call: Expr) -> AggregateCall:
    """`agg(x) FILTER (WHERE c)`: what decides is NULL where the condition does not hold."""
    if not isinstance(call, AggregateCall):
        scope.fail(AggregateMisuse("FILTER (WHERE ...) belongs to an aggregate"), node)
    condition = scope.condition(node.expression.this)
    counted = call.arguments or (Literal(BOOLEAN, False, True),)
    last = functions.resolve(
        "case", [condition, counted[-1], Literal(counted[-1].type, True, None)]
    )
    return replace(call, arguments=(*counted[:-1], last))


# -- one rule per name -------------------------------------------------------------------------


def _count(call: Call) -> AggregateCall:
    if len(call.args) == 1 and isinstance(call.args[0], exp.Star):
        if call.distinct:
            call.fail(AggregateMisuse("count(DISTINCT *) means nothing", remedy="name a column"))
        return AggregateCall(BIGINT, False, "count")
    return AggregateCall(BIGINT, False, "count", tuple(call.bound(1)))


def _sum(call: Call) -> AggregateCall:
    argument = call.number(_one(call))
    if argument.type.is_integer:
        return AggregateCall(BIGINT, True, "sum", (argument,))
    return AggregateCall(DOUBLE, True, "sum", (_as_float(argument),))


def _average(call: Call) -> AggregateCall:
    return AggregateCall(DOUBLE, True, "avg", (_as_float(call.number(_one(call))),))


def _as_float(argument: Expr) -> Expr:
    exact = argument.type.name == "DECIMAL" or argument.type == NULL
    return functions.cast(argument, DOUBLE) if exact else argument


def _one(call: Call) -> Expr:
    if len(call.args) == 1 and isinstance(call.args[0], exp.Star):
        call.fail(AggregateMisuse(f"{call.name}(*) means nothing, only count(*) does"))
    return call.bound(1)[0]


def _extreme(function: str) -> Callable[[Call], AggregateCall]:
    def rule(call: Call) -> AggregateCall:
        argument = _one(call)
        return AggregateCall(argument.type, True, function, (argument,))

    return rule


def _by(function: str) -> Callable[[Call], AggregateCall]:
    def rule(call: Call) -> AggregateCall:
        value, order = call.bound(2)
        return AggregateCall(value.type, True, function, (value, order))

    return rule


def _in_time(function: str) -> Callable[[Call], AggregateCall]:
    """FIRST and LAST: by event time."""

    def rule(call: Call) -> AggregateCall:
        value = _one(call)
        return AggregateCall(value.type, True, function, (value, _event_time(call)))

    return rule


def _event_time(call: Call) -> Expr:
    """When a row of the joined sources happened: at the latest of its parts."""
    timed = [s for s in call.scope.sources if not s.is_table]
    times = [s.time for s in timed if s.time is not None]
    alike = len({t.type for t in times}) == 1
    if len(times) < len(timed) or not alike:
        call.fail(
            BindError(
                f"{call.name}() needs an event time, which not all sources have as a column",
                remedy="write min_by(value, order) or max_by(value, order)",
            )
        )
    return times[0] if len(times) == 1 else functions.resolve("greatest", list(times))


def _variance(function: str) -> Callable[[Call], AggregateCall]:
    def rule(call: Call) -> AggregateCall:
        return AggregateCall(DOUBLE, True, function, (call.double(_one(call)),))

    return rule


def _percentile(call: Call) -> AggregateCall:
    call.need(2)
    value = call.double(call.scope.bind(call.args[0]))
    return AggregateCall(DOUBLE, True, "percentile", (value,), parameter=_fraction(call))


def _discrete(call: Call) -> AggregateCall:
    call.need(2)
    value = call.scope.bind(call.args[0])
    fraction = _fraction(call)
    return AggregateCall(value.type, True, "percentile_disc", (value,), parameter=fraction)


def _fraction(call: Call) -> float:
    found = call.scope.bind(call.args[1])
    value = found.value if isinstance(found, Literal) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 1:
        call.fail(BindError(f"{call.name}() needs a fraction between 0 and 1 that is a number"))
    return float(value)


def _median(call: Call) -> AggregateCall:
    return AggregateCall(DOUBLE, True, "percentile", (call.double(_one(call)),), parameter=0.5)


def _mode(call: Call) -> AggregateCall:
    value = _one(call)
    return AggregateCall(value.type, True, "mode", (value,))


def _array(distinct: bool) -> Callable[[Call], AggregateCall]:
    def rule(call: Call) -> AggregateCall:
        value = _one(call)
        if value.type.name in ("BINARY", "ARRAY", "NULL"):
            call.fail(TypeMismatch(f"{call.name}() cannot list values of type {value.type}"))
        listed = array_of(value.type)
        return AggregateCall(listed, False, "array_agg", (value,), distinct or call.distinct)

    return rule


def _text(call: Call) -> AggregateCall:
    call.need(1, 2)
    value = call.scope.bind(call.args[0])
    if value.type != STRING:
        value = functions.cast(value, STRING)
    separator = call.scope.bind(call.args[1]) if len(call.args) > 1 else Literal(STRING, False, "")
    if not isinstance(separator, Literal) or not isinstance(separator.value, str):
        call.fail(BindError(f"the separator of {call.name}() must be a text such as ', '"))
    return AggregateCall(
        STRING, True, "string_agg", (value,), call.distinct, parameter=separator.value
    )


def _count_if(call: Call) -> AggregateCall:
    call.need(1)
    condition = call.scope.condition(call.args[0])
    there = [condition, Literal(BOOLEAN, False, True), Literal(BOOLEAN, True, None)]
    return AggregateCall(BIGINT, False, "count", (functions.resolve("case", there),))


def _logical(function: str) -> Callable[[Call], AggregateCall]:
    def rule(call: Call) -> AggregateCall:
        call.need(1)
        condition = call.scope.condition(call.args[0])
        return AggregateCall(BOOLEAN, True, function, (condition,))

    return rule


def _grouping(call: Call) -> AggregateCall:
    """Whether a key is left out of a row's grouping set; GROUP BY puts the number in its place."""
    return AggregateCall(INT, False, "grouping", tuple(call.bound(1)))


AGGREGATES: dict[str, Callable[[Call], AggregateCall]] = {
    "count": _count,
    "grouping": _grouping,
    "sum": _sum,
    "avg": _average,
    "mean": _average,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "any_value": _extreme("min"),
    "min_by": _by("min_by"),
    "max_by": _by("max_by"),
    "first": _in_time("min_by"),
    "first_value": _in_time("min_by"),
    "last": _in_time("max_by"),
    "last_value": _in_time("max_by"),
    "variance": _variance("var_samp"),
    "var_samp": _variance("var_samp"),
    "var_pop": _variance("var_pop"),
    "std": _variance("stddev_samp"),
    "stddev": _variance("stddev_samp"),
    "stddev_samp": _variance("stddev_samp"),
    "stddev_pop": _variance("stddev_pop"),
    "percentile": _percentile,
    "percentile_cont": _percentile,
    "quantile": _percentile,
    "percentile_disc": _discrete,
    "median": _median,
    "mode": _mode,
    "array_agg": _array(False),
    "collect_list": _array(False),
    "collect_set": _array(True),
    "string_agg": _text,
    "listagg": _text,
    "count_if": _count_if,
    "bool_and": _logical("min"),
    "every": _logical("min"),
    "bool_or": _logical("max"),
    "some": _logical("max"),
}
LATER = ("approx_count_distinct", "approx_percentile", "corr", "covar_samp", "covar_pop")
