"""ORDER BY and LIMIT: which output columns sort the answer, and how much of it is output."""

from __future__ import annotations

from thalweg.errors import BindError
from thalweg.lang.binding.group_by import Item
from thalweg.lang.binding.scope import Scope
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp
from thalweg.plan.expr import Literal
from thalweg.plan.logical import SortKey


def sort_keys(query: ast.Select, scope: Scope, items: list[Item]) -> tuple[SortKey, ...]:
    return tuple(_sort_key(node, scope, items) for node in query.order_by)


def _sort_key(node: exp.Expr, scope: Scope, items: list[Item]) -> SortKey:
    """One key; arrays have no order."""
    inner = node.this if isinstance(node, exp.Ordered) else node
    descending = bool(node.args.get("desc"))
    nulls_first = bool(node.args.get("nulls_first", not descending))
    name = _column(inner, scope, items)
    if next(expr for n, expr, _ in items if n == name).type.name == "ARRAY":
        scope.fail(
            BindError(
                f"{name} is an array, which cannot be sorted by", remedy="sort by another column"
            ),
            node,
        )
    return SortKey(name, descending, nulls_first)


def _column(node: exp.Expr, scope: Scope, items: list[Item]) -> str:
    """An output column by its name, its number, or its expression."""
    if isinstance(node, exp.Literal) and node.name.isdigit():
        if 1 <= int(node.name) <= len(items):
            return items[int(node.name) - 1][0]
        scope.fail(
            BindError(
                f"ORDER BY {node.name}: there is no such column",
                remedy=f"SELECT has the columns 1 to {len(items)}",
            ),
            node,
        )
    if isinstance(node, exp.Column) and not node.table:
        for name, _, _ in items:
            if name.lower() == node.name.lower():
                return name
    wanted = scope.bind(node, aggregates=True)
    for name, expr, _ in items:
        if expr == wanted:
            return name
    scope.fail(
        BindError(
            f"ORDER BY sorts by output columns, {scope.shown(node)} is none",
            remedy="add it to SELECT, and sort by its name or number",
        ),
        node,
    )


def row_limit(query: ast.Select, scope: Scope) -> int | None:
    if query.limit is None:
        return None
    found = scope.bind(query.limit)
    if not isinstance(found, Literal) or type(found.value) is not int or found.value < 0:
        scope.fail(
            BindError("LIMIT takes a number of rows", remedy="write one such as LIMIT 10"),
            query.limit,
        )
    return found.value
