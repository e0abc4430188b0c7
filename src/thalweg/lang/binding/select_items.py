"""The items of SELECT: what they compute, and the names of the columns they become."""

from __future__ import annotations

from thalweg.errors import BindError, TypeMismatch
from thalweg.lang.binding.group_by import Item
from thalweg.lang.binding.scope import Scope
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp
from thalweg.plan.types import NULL


def selected_items(query: ast.Select, scope: Scope) -> list[Item]:
    """Name, meaning and text of each column; names are distinct."""
    found: list[Item] = []
    for node in query.items:
        found += _item(scope, node)
    return _distinct_names(found)


def _item(scope: Scope, node: exp.Expr) -> list[Item]:
    if isinstance(node, exp.Star):
        fields = [f for s in scope.sources for f in s.fields]
    elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        fields = list(scope.source_named(node.table, node).fields)
    else:
        name, inner = _output_name(node)
        if name.startswith("__"):
            scope.fail(
                BindError(
                    f"{name}: names starting with __ are reserved", remedy="choose another name"
                ),
                node,
            )
        bound = scope.bind(inner, aggregates=True)
        if bound.type == NULL:
            scope.fail(
                TypeMismatch(f"column {name} has no type", remedy="CAST(NULL AS type)"), node
            )
        return [(name, bound, node)]
    return [(f.name.split(".", 1)[1], f.column(), node) for f in fields]


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
