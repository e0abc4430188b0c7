"""Clauses from Python's arguments: items, keys of groups, HAVING, INTO."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from thalweg.errors import ConfigError, did_you_mean
from thalweg.fluent import building
from thalweg.fluent.building import Options
from thalweg.fluent.expressions import Aliased, Condition, Item, all_of, condition, item
from thalweg.fluent.names import identifier
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp

_SINKS = ("files", "changelog", "table", "spark", "console")


@dataclass(frozen=True, slots=True)
class Keys:
    """What stands in GROUP BY, and the items that show it."""

    node: exp.Expr
    items: tuple[exp.Expr, ...]


def key_of(given: Any) -> Keys:
    if isinstance(given, tuple):
        keys = [key_of(k) for k in given]
        inside = [k.node for k in keys]
        node = exp.Paren(this=inside[0]) if len(inside) == 1 else exp.Tuple(expressions=inside)
        return Keys(node, tuple(i for k in keys for i in k.items))
    found = given if isinstance(given, exp.Expr) else item(given)
    inner = found.this if isinstance(found, exp.Alias) else found
    if isinstance(inner, exp.Literal | exp.Star) or isinstance(inner.this, exp.Star):
        raise ConfigError(
            f"a key is a column or an expression, not {given!r}", remedy="write group_by('sym')"
        )
    return Keys(inner.copy(), (found,))


def items_of(items: tuple[Item, ...], named_items: dict[str, Item]) -> tuple[exp.Expr, ...]:
    found = [item(i) for i in items]
    for name, given in named_items.items():
        node = item(given)
        if isinstance(given, Aliased) or isinstance(node, exp.Alias):
            raise ConfigError(
                f"{name} has the name {node.alias} as well", remedy="give it one name"
            )
        found.append(exp.Alias(this=node, alias=identifier(name)))
    return tuple(found)


def having(query: ast.Select, conditions: tuple[Condition, ...]) -> ast.Select:
    if not conditions:
        raise ConfigError("having() needs a condition", remedy="write having('count(*) > 2')")
    known = () if query.having is None else (query.having,)
    return replace(query, having=all_of((*known, *(condition(c) for c in conditions))))


def into_clause(kind: str, target: str, format: str | None, options: Options) -> ast.IntoClause:
    if kind.lower() not in _SINKS:
        raise ConfigError(f"output cannot go into {kind!r}", remedy=did_you_mean(kind, _SINKS))
    if kind.lower() != "console" and not target:
        raise ConfigError(f"into {kind} needs a target", remedy=f"write into({kind!r}, 'out')")
    return ast.IntoClause(kind.upper(), target, format and format.lower(), options)


def says_more(query: ast.Select) -> bool:
    """Whether something is said that comes after SELECT and DISTINCT."""
    later = query.kind or query.order_by or query.into or query.clauses
    return bool(later) or query.limit is not None


def part(query: ast.Query) -> ast.Query:
    """A side of UNION and the like. What a side emits, and its order, are its own affair."""
    last = building.last_select(query)
    own = building.first_select(query).kind or says_more(last)
    return building.wrapped(query) if own else query
