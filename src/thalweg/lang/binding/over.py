"""OVER: columns that refer to other rows of a stream, in its order, within a partition.

LAG, LEAD and ROW_NUMBER are computed on the bare stream, after WHERE; a window or a grouping of the
result takes a subquery.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from thalweg.errors import BindError, NotAvailableYet, ThalwegError
from thalweg.lang.binding.visible import ExpressionBinder
from thalweg.lang.syntax import exp
from thalweg.plan.expr import Column, Expr, Literal
from thalweg.plan.logical import Node, Sequence, SequenceColumn
from thalweg.plan.types import BIGINT

FUNCTIONS = ("lag", "lead", "row_number")
_REMEDY = "write LAG(price) OVER (PARTITION BY sym ORDER BY ts)"


@dataclass(slots=True)
class Over:
    """The columns with OVER, by partition."""

    columns: dict[tuple[str, ...], dict[str, SequenceColumn]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.columns)

    def applied(self, stream: Node) -> Node:
        # LEAD is last: it delays rows, which the other columns would see
        for partition, columns in sorted(self.columns.items(), key=lambda p: _looks_ahead(p[1])):
            stream = Sequence(stream, partition, tuple(columns.values()))
        return stream

    def bind(self, scope: ExpressionBinder, node: exp.Window) -> Expr:
        def fail(error: ThalwegError) -> NoReturn:
            scope.fail(error, node)

        inner = node.this
        name = str(getattr(inner, "this", "")).lower()
        if not isinstance(inner, exp.Anonymous) or name not in FUNCTIONS:
            fail(
                NotAvailableYet(
                    "OVER is not available yet except for LAG, LEAD and ROW_NUMBER", remedy=_REMEDY
                )
            )
        partition = [scope.bind(e) for e in node.args.get("partition_by") or ()]
        if not all(isinstance(e, Column) for e in partition):
            fail(BindError("PARTITION BY takes columns", remedy=_REMEDY))
        _check_order(scope, node)
        by = tuple(e.name for e in partition if isinstance(e, Column))
        made = _column(scope, node, name, list(inner.expressions), by)
        kept = self.columns.setdefault(by, {})
        ahead = [p for p, columns in self.columns.items() if _looks_ahead(columns) and p != by]
        if made.function == "lead" and ahead:
            fail(BindError("LEAD looks ahead in one partition only", remedy="use a subquery"))
        found = kept.setdefault(made.name, made)
        return Column(found.type, found.field().nullable, found.name)


def _looks_ahead(columns: dict[str, SequenceColumn]) -> bool:
    return any(c.function == "lead" for c in columns.values())


def _check_order(scope: ExpressionBinder, node: exp.Window) -> None:
    order = node.args.get("order")
    if node.args.get("spec") is not None:
        scope.fail(
            NotAvailableYet("ROWS and RANGE inside OVER are not available yet", remedy=_REMEDY),
            node,
        )
    if order is None:
        return
    keys = order.expressions
    first = scope.bind(keys[0].this)
    time = scope.sources[0].time
    if len(keys) > 1 or keys[0].args.get("desc") or time is None or first != time:
        scope.fail(
            BindError("OVER follows the order of the stream: its event time", remedy=_REMEDY), node
        )


def _column(
    scope: ExpressionBinder, node: exp.Window, name: str, args: list[exp.Expr], by: tuple[str, ...]
) -> SequenceColumn:
    alias = scope.sources[0].alias
    within = ", ".join(by)
    if name == "row_number":
        if args:
            scope.fail(
                BindError(
                    "row_number() takes no argument",
                    remedy="write row_number() OVER (PARTITION BY sym ORDER BY ts)",
                ),
                node,
            )
        return SequenceColumn(f"{alias}.row_number() over ({within})", BIGINT, name)
    bound = [scope.bind(a) for a in args]
    if not 1 <= len(bound) <= 3 or not isinstance(bound[0], Column):
        scope.fail(
            BindError(
                f"{name}() takes a column, how many rows away, and a default",
                remedy="compute in a subquery, or from the columns: LAG(a) * LAG(b)",
            ),
            node,
        )
    offset = _literal(scope, node, bound[1]) if len(bound) > 1 else 1
    if type(offset) is not int or offset < 0:
        scope.fail(
            BindError(
                f"{name}() looks a whole number of rows away",
                remedy="write 0, 1, 2, ... ; LEAD looks the other way than LAG",
            ),
            node,
        )
    default = _default(scope, node, bound) if len(bound) > 2 else None
    text = f"{alias}.{name}({bound[0]}, {offset}, {default}) over ({within})"
    return SequenceColumn(text, bound[0].type, name, bound[0].name, offset, default)


def _literal(scope: ExpressionBinder, node: exp.Window, found: Expr) -> object:
    if not isinstance(found, Literal):
        scope.fail(
            BindError(
                "the offset and the default of LAG and LEAD are constants",
                remedy="write them as numbers or texts, such as LAG(price, 1, 0)",
            ),
            node,
        )
    return found.value


def _default(scope: ExpressionBinder, node: exp.Window, bound: list[Expr]) -> object:
    value, wanted = _literal(scope, node, bound[2]), bound[0].type
    same = bound[2].type == wanted or value is None
    whole = bound[2].type.is_integer and wanted.is_numeric
    if not same and not whole and not (bound[2].type.is_float and wanted.is_float):
        scope.fail(
            BindError(
                f"the default is {bound[2].type}, the column {wanted}",
                remedy=f"write a default of type {wanted}, or leave it out, which is NULL",
            ),
            node,
        )
    return float(value) if whole and wanted.is_float else value  # type: ignore[arg-type]
