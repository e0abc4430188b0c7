"""Trees of queries under construction.

A query that is being built is an `ast.Select` whose items may still be missing: they are `*` then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from thalweg.fluent.expressions import all_of
from thalweg.fluent.names import identifier
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp

Options = tuple[tuple[str, Any], ...]


def source(name: str) -> ast.Select:
    """Something registered, and nothing done with it yet."""
    return _over(ast.Source(name, None, None, None, None, 0))


def wrapped(query: ast.Query, alias: str | None = None) -> ast.Select:
    """The query as the only source of another one. Options are about the whole and move out."""
    inner, options = without_options(query)
    name = alias or name_of(query)
    return replace(_over(ast.Source(None, completed(inner), None, name, None, 0)), options=options)


def _over(item: ast.FromItem) -> ast.Select:
    return ast.Select(None, False, (), (item,), (), (), None, None, (), None, (), None, (), 0)


def completed(query: ast.Query) -> ast.Query:
    """The query with its items said."""
    if isinstance(query, ast.SetOperation):
        return replace(query, left=completed(query.left), right=completed(query.right))
    return query if query.items else replace(query, items=(exp.Star(),))


def is_source(query: ast.Query) -> bool:
    """Whether there is a source and nothing else, so that it may still get a window or an alias."""
    if not isinstance(query, ast.Select):
        return False
    (item,) = query.from_items
    return isinstance(item, ast.Source) and replace(query, options=()) == _over(item)


def is_open(query: ast.Query) -> bool:
    """Whether what comes next may still belong to the same SELECT: nothing is selected yet."""
    if not isinstance(query, ast.Select):
        return False
    bare = _over(query.from_items[0])
    return replace(query, options=(), conditions=()) == bare


def opened(query: ast.Query) -> ast.Select:
    """The query if it is open, or else a new one that reads it."""
    return query if isinstance(query, ast.Select) and is_open(query) else wrapped(query)


def name_of(query: ast.Query) -> str | None:
    """What the only source of a query is called."""
    if not isinstance(query, ast.Select) or not isinstance(query.from_items[0], ast.Source):
        return None
    (only,) = query.sources
    return only.alias or (only.name or "").rsplit(".", 1)[-1] or None


def filtered(query: ast.Select, conditions: tuple[exp.Expr, ...]) -> ast.Select:
    """The query with more conditions in its WHERE."""
    if not conditions:
        return query
    return replace(query, conditions=(all_of((*query.conditions, *conditions)),))


def qualified(query: ast.Select) -> tuple[exp.Expr, ...]:
    """The conditions of a query over one source, with its name before every column, so that they
    mean the same beside other sources."""
    name = name_of(query)
    if name is None:
        return query.conditions
    nodes = tuple(c.copy() for c in query.conditions)
    for node in nodes:
        for column in node.find_all(exp.Column):
            if not column.table:
                column.set("table", identifier(name))
    return nodes


# -- what is about the whole -------------------------------------------------------------------


def first_select(query: ast.Query) -> ast.Select:
    while isinstance(query, ast.SetOperation):
        query = query.left
    return query


def last_select(query: ast.Query) -> ast.Select:
    while isinstance(query, ast.SetOperation):
        query = query.right
    return query


def with_first(query: ast.Query, **changes: Any) -> ast.Query:
    """The query with its first SELECT changed: that is where ISTREAM stands."""
    if isinstance(query, ast.SetOperation):
        return replace(query, left=with_first(query.left, **changes))
    return replace(query, **changes)


def with_last(query: ast.Query, **changes: Any) -> ast.Query:
    """The query with its last SELECT changed: that is where ORDER BY and LIMIT stand."""
    if isinstance(query, ast.SetOperation):
        return replace(query, right=with_last(query.right, **changes))
    return replace(query, **changes)


def with_options(query: ast.Query, options: Options) -> ast.Query:
    """The query with these options besides its own; WITH belongs to the last SELECT, or to the
    whole if that ends in parentheses."""
    inner, known = without_options(query)
    merged = tuple({**dict(known), **dict(options)}.items())
    if isinstance(inner, ast.SetOperation) and isinstance(inner.right, ast.Select):
        return replace(inner, right=replace(inner.right, options=merged))
    return replace(inner, options=merged)


def without_options(query: ast.Query) -> tuple[ast.Query, Options]:
    """The query, and the options said anywhere in it."""
    if isinstance(query, ast.Select):
        return replace(query, options=()), query.options
    left, first = without_options(query.left)
    right, second = without_options(query.right)
    merged = {**dict(first), **dict(second), **dict(query.options)}
    return replace(query, left=left, right=right, options=()), tuple(merged.items())
