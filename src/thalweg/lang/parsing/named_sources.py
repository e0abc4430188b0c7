"""All places of a query where a relation is read by its name."""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp


def named_sources(query: ast.Query) -> Iterator[ast.Source]:
    """The sources with names, in subqueries, too, wherever these stand."""
    if isinstance(query, ast.SetOperation):
        yield from named_sources(query.left)
        yield from named_sources(query.right)
        return
    for source in query.sources:
        if source.subquery is not None:
            yield from named_sources(source.subquery)
        else:
            yield source
    having = () if query.having is None else (query.having,)
    ons = [c for item in query.from_items for c in _conditions(item)]
    for expr in (*query.items, *query.conditions, *having, *ons):
        for part in expr.walk():
            if "query" in part.meta:
                yield from named_sources(part.meta["query"])


def _conditions(item: ast.FromItem) -> Iterator[exp.Expr]:
    if isinstance(item, ast.JoinRef):
        yield from _conditions(item.left)
        yield from _conditions(item.right)
        if item.condition is not None:
            yield item.condition
