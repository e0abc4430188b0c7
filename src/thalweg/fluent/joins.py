"""Joins: their kinds in Python's words, and what stands in ON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from thalweg.errors import ConfigError, did_you_mean
from thalweg.fluent.building import filtered, is_open, name_of, opened, qualified, wrapped
from thalweg.fluent.expressions import Condition, all_of, col, condition
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp

_KINDS = {
    "inner": "INNER",
    "cross": "CROSS",
    "left": "LEFT",
    "right": "RIGHT",
    "full": "FULL",
    "semi": "LEFT SEMI",
    "left semi": "LEFT SEMI",
    "anti": "LEFT ANTI",
    "left anti": "LEFT ANTI",
    "asof": "ASOF",
    "left asof": "LEFT ASOF",
    "asof left": "LEFT ASOF",
}
_NAME = re.compile(r"[A-Za-z_]\w*")


def joined(
    left: ast.Query, right: ast.Query, on: Condition | Sequence[Condition] | None, how: str
) -> ast.Select:
    """The join, open for more. What was filtered on a side that keeps its rows alone stays in a
    subquery; elsewhere filtering before and after the join is the same."""
    kind = _kind(how)
    a, b = opened(left), opened(right)
    if kind in ("RIGHT", "FULL") and a.conditions:
        a = wrapped(a)
    if kind not in ("INNER", "CROSS") and b.conditions:
        b = wrapped(b)
    item = ast.JoinRef(kind, a.from_items[0], b.from_items[0], _on(a, b, on, kind), 0)
    both = replace(a, from_items=(item,), conditions=(), options=(*a.options, *b.options))
    assert is_open(both)
    return filtered(both, (*qualified(a), *qualified(b)))


def _kind(how: str) -> str:
    words = how.lower().replace("_", " ").replace("outer", "").split()
    found = _KINDS.get(" ".join(w for w in words if w != "join"))
    if found is None:
        raise ConfigError(f"unknown kind of join {how!r}", remedy=did_you_mean(how, _KINDS))
    return found


def _on(
    a: ast.Select, b: ast.Select, on: Condition | Sequence[Condition] | None, kind: str
) -> exp.Expr | None:
    if kind == "CROSS":
        if on is not None:
            raise ConfigError("a cross join has no condition", remedy="drop on=, or how='inner'")
        return None
    given = on if isinstance(on, list | tuple) else () if on is None else (on,)
    if not given:
        raise ConfigError(
            "a join needs a condition",
            remedy="write on='sym' or on=col('t.sym') == col('q.sym'), or how='cross'",
        )
    return all_of(_condition(a, b, c) for c in given)


def _condition(a: ast.Select, b: ast.Select, given: Condition) -> exp.Expr:
    """A column by its bare name is equal on both sides; anything else is a condition."""
    if not isinstance(given, str) or not _NAME.fullmatch(given):
        return condition(given)
    left, right = name_of(a), name_of(b)
    if left is None or right is None:
        raise ConfigError(
            f"on={given!r} does not say of which sources",
            remedy=f"write the condition: on='a.{given} = b.{given}'",
        )
    return (col(f"`{left}`.{given}") == col(f"`{right}`.{given}")).node
