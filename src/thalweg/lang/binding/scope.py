"""Scalar expressions: sqlglot trees to bound expressions, names resolved within the FROM list."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NoReturn, cast

from thalweg.aggregates import aggregate_names, kind_named
from thalweg.errors import (
    AggregateMisuse,
    AmbiguousName,
    BindError,
    NotAvailableYet,
    ThalwegError,
    TypeMismatch,
    UnknownName,
    did_you_mean,
)
from thalweg.lang.binding.aggregate_calls import LATER, bind_aggregate, bind_within_group, filtered
from thalweg.lang.binding.over import FUNCTIONS as OVER_FUNCTIONS
from thalweg.lang.binding.over import Over
from thalweg.lang.binding.own_functions import OWN_FUNCTIONS
from thalweg.lang.binding.visible import Visible
from thalweg.lang.durations import to_micros
from thalweg.lang.parsing.places import offset_of, place, shown
from thalweg.lang.syntax import exp
from thalweg.plan import functions
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Expr, Literal, UserCall
from thalweg.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DECIMALS,
    DOUBLE,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    decimal,
    type_named,
)

_LATER_FUNCTIONS = ("rank", "dense_rank")
KNOWN_TYPES = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), STRING, BINARY, DATE "
    "or TIMESTAMP"
)

_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "||",
    exp.Like: "like",
    exp.RegexpLike: "rlike",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
}
_UNARY: dict[type[exp.Expr], str] = {exp.Not: "not", exp.Neg: "neg", exp.BitwiseNot: "~"}


@dataclass(slots=True)
class Scope:
    """The sources in view, and the text for error places; `over` collects the columns with OVER,
    where they are allowed."""

    catalog: Catalog
    sources: tuple[Visible, ...]
    text: str
    over: Over | None = None

    # -- errors ------------------------------------------------------------------------------

    def place(self, error: ThalwegError, node: exp.Expr | int | None) -> ThalwegError:
        at = offset_of(node) if isinstance(node, exp.Expr) else node
        return error if at is None else error.at(self.text, *place(self.text, at))

    def fail(self, error: ThalwegError, node: exp.Expr | int | None) -> NoReturn:
        raise self.place(error, node)

    def shown(self, node: exp.Expr) -> str:
        """An expression as the user wrote it."""
        return shown(node, self.text) or "this"

    # -- expressions -------------------------------------------------------------------------

    def bind(self, node: exp.Expr, *, aggregates: bool = False) -> Expr:
        """The bound expression; aggregate calls only where `aggregates` allows them."""
        try:
            return self._bind(node, aggregates)
        except ThalwegError as error:
            raise self.place(error, node) from None
        except RecursionError:
            raise self.place(
                BindError("the expression is nested too deeply", remedy="flatten it"), node
            ) from None

    def condition(self, node: exp.Expr, *, aggregates: bool = False) -> Expr:
        bound = self.bind(node, aggregates=aggregates)
        if bound.type not in (BOOLEAN, NULL):
            self.fail(
                TypeMismatch(
                    f"a condition must be BOOLEAN, {self.shown(node)} is {bound.type}",
                    remedy="compare it with something, such as x <> 0, or x IS NOT NULL",
                ),
                node,
            )
        return bound if bound.type == BOOLEAN else functions.cast(bound, BOOLEAN)

    def _bind(self, node: exp.Expr, agg: bool) -> Expr:
        self._refuse_later(node)
        if node.args.get("negate"):
            # sqlglot folds the NOT of NOT LIKE, NOT IN, ... into the node
            plain = node.copy()
            plain.set("negate", False)
            return functions.resolve("not", [self._bind(plain, agg)])
        kind = type(node)
        if kind in (exp.And, exp.Or):
            operands = _chain(node)
            if len(operands) > LONG_CHAIN:
                return _balanced(_BINARY[kind], [self._bind(n, agg) for n in operands])
        if kind in _BINARY:
            return self._call(node, _BINARY[kind], [node.this, node.expression], agg)
        if kind in _UNARY:
            if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
                return _number("-" + node.this.name)
            return self._call(node, _UNARY[kind], [node.this], agg)
        rule = _RULES.get(kind)
        if rule is None:
            self.fail(
                BindError(
                    f"{self.shown(node)} is not an expression of the language",
                    remedy="docs/language.md lists the operators and functions",
                ),
                node,
            )
        return rule(self, node, agg)

    def _refuse_later(self, node: exp.Expr) -> None:
        if "within" in node.meta:
            self.fail(
                NotAvailableYet(
                    "approximate aggregates (WITHIN) are not available yet",
                    remedy="leave WITHIN out: the aggregate is exact",
                ),
                node,
            )

    def _call(
        self,
        node: exp.Expr,
        name: str,
        args: list[exp.Expr],
        agg: bool,
        written: str | None = None,
    ) -> Expr:
        bound = [self._bind(a, agg) for a in args]
        try:
            return functions.resolve(name, bound, written)
        except ThalwegError as error:
            raise self.place(error, node) from None

    # -- columns -----------------------------------------------------------------------------

    def column(self, node: exp.Column) -> Expr:
        table, name = node.table, node.name
        if isinstance(node.this, exp.Star):
            self.fail(
                BindError(
                    "* is only allowed as an item of SELECT",
                    remedy="name a column; of aggregates, count(*) takes it",
                ),
                node,
            )
        if table:
            source = self.source_named(table, node)
            found = [f for f in source.fields if _bare(f.name).lower() == name.lower()]
            if not found:
                known = [_bare(f.name) for f in source.fields]
                self.fail(
                    UnknownName(
                        f"{source.alias} has no column {name}", remedy=did_you_mean(name, known)
                    ),
                    node,
                )
            return found[0].column()
        return self._bare_column(node, name)

    def _bare_column(self, node: exp.Expr, name: str) -> Expr:
        found = [f for s in self.sources for f in s.fields if _bare(f.name).lower() == name.lower()]
        if not found:
            known = [_bare(f.name) for s in self.sources for f in s.fields]
            self.fail(UnknownName(f"unknown column {name}", remedy=did_you_mean(name, known)), node)
        if len(found) > 1:
            owners = " or ".join(f.name for f in found)
            self.fail(AmbiguousName(f"column {name} is ambiguous", remedy=f"write {owners}"), node)
        return found[0].column()

    def source_named(self, alias: str, node: exp.Expr | int | None) -> Visible:
        for source in self.sources:
            if source.alias.lower() == alias.lower():
                return source
        known = [s.alias for s in self.sources]
        self.fail(UnknownName(f"unknown source {alias}", remedy=did_you_mean(alias, known)), node)

    # -- functions ---------------------------------------------------------------------------

    def function(self, node: exp.Anonymous, agg: bool) -> Expr:
        name = str(node.this).lower()
        if kind_named(name) is not None:
            if not agg:
                self.fail(
                    AggregateMisuse(
                        f"{name}() may not stand here",
                        remedy="aggregates belong in SELECT or HAVING, not in WHERE, GROUP BY or "
                        "another aggregate",
                    ),
                    node,
                )
            return bind_aggregate(self, node, name)
        if name in OVER_FUNCTIONS:
            self.fail(
                BindError(
                    f"{name}() needs OVER", remedy=f"write {name}(...) OVER (PARTITION BY ...)"
                ),
                node,
            )
        if name in LATER or name in _LATER_FUNCTIONS:
            self.fail(
                NotAvailableYet(
                    f"{name}() is not available yet",
                    remedy="docs/language.md lists the aggregates and functions that there are",
                ),
                node,
            )
        user = next((f for f in self.catalog.functions.values() if f.name.lower() == name), None)
        if user is not None:
            args = tuple(self._bind(a, agg) for a in node.expressions)
            if user.arguments is not None:
                args = self._coerced(node, user.name, args, user.arguments)
            return UserCall(
                user.returns, True, user.name, args, user.deterministic, user.movable, user.raises
            )
        own = next((f for f in OWN_FUNCTIONS if f.name == name), None)
        if own is not None:
            args = tuple(self._bind(a, agg) for a in node.expressions)
            curves = frozenset(name for s in self.sources for name, _ in s.curves)
            return own.bind(args, curves)
        return self._call(node, name, node.expressions, agg)

    def _coerced(
        self, node: exp.Expr, name: str, args: tuple[Expr, ...], types: tuple[DataType, ...]
    ) -> tuple[Expr, ...]:
        if len(args) != len(types):
            self.fail(
                TypeMismatch(
                    f"{name}() takes {len(types)} arguments, {len(args)} given",
                    remedy="write as many as the function was added with",
                ),
                node,
            )
        return tuple(functions.cast(a, t) for a, t in zip(args, types, strict=True))


LONG_CHAIN = 32
"""Longer chains of AND or OR are bound as balanced trees, so that no chain is too deep."""


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The operands of an associative operator that is written several times in a row."""
    kind, operands = type(node), []
    while type(node) is kind:
        operands.append(node.expression)
        node = node.this
    return [node, *reversed(operands)]


def _balanced(name: str, operands: list[Expr]) -> Expr:
    while len(operands) > 1:
        pairs = [operands[i : i + 2] for i in range(0, len(operands), 2)]
        operands = [functions.resolve(name, pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return operands[0]


def is_reserved_function(name: str) -> bool:
    """Whether a call of this name is never one of a user's function."""
    own = (f.name for f in OWN_FUNCTIONS)
    taken = (*aggregate_names(), *OVER_FUNCTIONS, *LATER, *_LATER_FUNCTIONS, *own)
    return name.lower() in taken


def _bare(name: str) -> str:
    return name.split(".", 1)[1] if "." in name else name


def _number(text: str) -> Literal:
    try:
        value = int(text)
    except ValueError:
        try:
            return Literal(DOUBLE, False, float(text))
        except ValueError:
            raise BindError(
                f"{text} is not a number", remedy="write one such as 12, 1.5 or 1e3"
            ) from None
    if -(2**31) <= value < 2**31:
        return Literal(INT, False, value)
    if -(2**63) <= value < 2**63:
        return Literal(BIGINT, False, value)
    raise BindError(f"{text} does not fit 64 bits", remedy="write it as a DOUBLE, such as 1e20")


def _literal(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    if node.args.get("is_string"):
        return Literal(STRING, False, str(node.this))
    return _number(str(node.this))


def _boolean(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    return Literal(BOOLEAN, False, bool(node.this))


def _is(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    operand = scope._bind(node.this, agg)
    other = node.expression
    if isinstance(other, exp.Null):
        return functions.resolve("is_null", [operand])
    if isinstance(other, exp.Boolean):
        return functions.resolve("<=>", [operand, Literal(BOOLEAN, False, bool(other.this))], "IS")
    scope.fail(
        BindError(
            "IS takes NULL, TRUE or FALSE", remedy="use = or <=> to compare with anything else"
        ),
        node,
    )


def _in(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    if "query" in node.meta:
        error = NotAvailableYet(
            "IN (SELECT ...) is not available yet inside another expression",
            remedy="let it stand by itself between the ANDs of WHERE",
        )
        scope.fail(error, node)
    return scope._call(node, "in", [node.this, *node.expressions], agg)


def _between(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    low = scope._call(node, ">=", [node.this, node.args["low"]], agg, "BETWEEN")
    high = scope._call(node, "<=", [node.this, node.args["high"]], agg, "BETWEEN")
    return functions.resolve("and", [low, high])


def _case(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    args: list[Expr] = []
    for branch in node.args.get("ifs", ()):
        condition = branch.this
        if node.this is not None:
            args.append(scope._call(node, "=", [node.this, condition], agg, "CASE"))
        else:
            args.append(scope._bind(condition, agg))
        args.append(scope._bind(branch.args["true"], agg))
    default = node.args.get("default")
    args.append(scope._bind(default, agg) if default is not None else Literal(NULL, True, None))
    return functions.resolve("case", args)


_TYPED = re.compile(r"([A-Za-z]\w*)\s*['\"]")
"""A type before a text: DATE '2024-02-29' is a date, and of others it is not so plain."""


def _cast(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    target = node.args["to"]
    dtype = sql_type(target)
    if dtype is None:
        scope.fail(
            TypeMismatch(
                f"unknown type {_type_text(scope.shown(node))}", remedy=f"use {KNOWN_TYPES}"
            ),
            node,
        )
    if dtype not in (DATE, TIMESTAMP) and (typed := _TYPED.match(scope.shown(node))):
        scope.fail(
            BindError(
                f"{typed[1]} does not go before a text", remedy=f"write CAST(... AS {typed[1]})"
            ),
            node,
        )
    operand = scope._bind(node.this, agg)
    return functions.cast(operand, dtype, safe=isinstance(node, exp.TryCast))


def _type_text(written: str) -> str:
    """The type in a cast as it was written."""
    found = re.search(r"(?:\bAS\b|::)\s*(.+?)\)?$", written, re.IGNORECASE | re.DOTALL)
    return found[1] + ")" * (found[1].count("(") - found[1].count(")")) if found else written


def sql_type(target: exp.Expr) -> DataType | None:
    """The type that a type name stands for, as it was written; only DECIMAL takes numbers."""
    given = str(getattr(target.this, "value", target.this))
    name = str(target.meta.get("written", given)).partition("(")[0].strip()
    if not all(p.name.isdigit() for p in target.expressions):
        return None
    params = [int(p.name) for p in target.expressions]
    is_decimal = name.upper() in DECIMALS
    if len(params) > (2 if is_decimal else 0):
        return None
    if is_decimal:
        precision, scale = params[0] if params else 10, params[1] if len(params) > 1 else 0
        return decimal(precision, scale) if decimal_exists(precision, scale) else None
    return type_named(name)


def decimal_exists(precision: int, scale: int) -> bool:
    """38 digits are what a decimal can hold, here as in Spark."""
    return 1 <= precision <= 38 and 0 <= scale <= precision


def _interval(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    amount, unit = node.this, node.args.get("unit")
    text = amount.name if amount is not None else ""
    sign = -1 if text.startswith("-") else 1
    try:
        micros = to_micros(str(Decimal(text.lstrip("-+"))), unit.name if unit is not None else "")
    except InvalidOperation:
        scope.fail(
            BindError(
                f"{scope.shown(node)} is not an interval of fixed length",
                remedy="write one number and one unit, microseconds to weeks: INTERVAL 5 MINUTES",
            ),
            node,
        )
    return Literal(INTERVAL, False, sign * micros)


def _extract(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    part = str(node.this.name).lower()
    if part not in functions.PARTS_OF_TIME:
        known = list(functions.PARTS_OF_TIME)
        scope.fail(BindError(f"{part} is no part of a time", remedy=", ".join(known)), node)
    return scope._call(
        node, functions.PARTS_OF_TIME[part], [node.expression], agg, f"EXTRACT({part.upper()})"
    )


def _alias_inside(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    scope.fail(
        BindError(
            "an alias may not stand here",
            remedy="name columns behind the whole item of SELECT: expression AS name",
        ),
        node,
    )


def _over(scope: Scope, node: exp.Window) -> Expr:
    if scope.over is None:
        scope.fail(
            BindError(
                "OVER may not stand here",
                remedy="it belongs in the SELECT list of a query over one stream without a "
                "window; what is done with the result takes a subquery",
            ),
            node,
        )
    return scope.over.bind(scope, node)


def _within_group(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
    if not agg:
        scope.fail(
            AggregateMisuse(
                "an aggregate may not stand here", remedy="aggregates belong in SELECT or HAVING"
            ),
            node,
        )
    return bind_within_group(scope, cast(exp.WithinGroup, node))


def _refused(message: str, remedy: str) -> Callable[[Scope, exp.Expr, bool], Expr]:
    def rule(scope: Scope, node: exp.Expr, agg: bool) -> Expr:
        scope.fail(NotAvailableYet(message, remedy=remedy), node)

    return rule


_RULES: dict[type[exp.Expr], Callable[[Scope, exp.Expr, bool], Expr]] = {
    exp.Column: lambda s, n, agg: s.column(cast(exp.Column, n)),
    exp.Anonymous: lambda s, n, agg: s.function(cast(exp.Anonymous, n), agg),
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: lambda s, n, agg: Literal(NULL, True, None),
    exp.Paren: lambda s, n, agg: s._bind(n.this, agg),
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Interval: _interval,
    exp.Extract: _extract,
    exp.Alias: _alias_inside,
    exp.Filter: lambda s, n, agg: filtered(s, cast(exp.Filter, n), s._bind(n.this, agg)),
    exp.WithinGroup: lambda s, n, agg: _within_group(s, n, agg),
    exp.Window: lambda s, n, agg: _over(s, cast(exp.Window, n)),
    exp.Subquery: _refused(
        "subqueries in expressions are not available yet",
        "join the subquery in FROM, or use x IN (SELECT ...) between the ANDs of WHERE",
    ),
    exp.Exists: _refused(
        "EXISTS is not available yet", "use x IN (SELECT ...), or LEFT SEMI JOIN or LEFT ANTI JOIN"
    ),
}
