"""Results of binding: a query as a relation, and the parts of an item of FROM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.errors import BindError
from thalweg.lang.binding.visible import Visible
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.places import place
from thalweg.lang.syntax import exp
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.catalog import Catalog
from thalweg.plan.logical import EmitKind, Node, SortKey


@dataclass(frozen=True, slots=True)
class Found:
    """A query as a relation, and its kind of output. `curves` are its columns that are functions of
    time; where there are any, `finish` makes rows of them."""

    node: Node
    kind: EmitKind
    options: QueryOptions
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    into: ast.IntoClause | None = None
    curves: tuple[tuple[str, Any], ...] = ()
    finish: Callable[[Node], Node] | None = None

    @property
    def finished(self) -> Node:
        """The relation as rows."""
        return self.node if self.finish is None else self.finish(self.node)


Bind = Callable[[ast.Query, Catalog, str], Found]
"""Binds a query inside another one."""


@dataclass(slots=True)
class Items:
    """The parts of an item of FROM: relations to join, the sources in view, and conditions."""

    members: list[Node]
    sources: list[Visible]
    conditions: list[exp.Expr]


def refuse_curves(curves: Sequence[Any], what: str, query_at: int, text: str) -> None:
    """Refuse columns that are functions of time where rows are compared."""
    if curves:
        raise BindError(
            f"{what} compares rows, and a modeled column changes within a row",
            remedy="take samples: FROM (SELECT ... SAMPLE EVERY 1 SECOND) [...]",
        ).at(text, *place(text, query_at))


def refuse_whole(query: ast.Query, found: Found, text: str) -> None:
    """Refuse ORDER BY, INTO and WITH in a part of a query."""
    if query.options:
        raise BindError("WITH is about a whole query", remedy="let it stand at the end").at(
            text, *place(text, query.at)
        )
    if found.into is not None:
        raise BindError("INTO is about a whole query", remedy="let it stand at the end").at(
            text, *place(text, query.at)
        )
    if found.order or found.limit is not None:
        raise BindError(
            "ORDER BY and LIMIT are about the whole answer", remedy="let them stand at the end"
        ).at(text, *place(text, query.at))


def written_kind(query: ast.Query) -> EmitKind | None:
    """The written ISTREAM or the like, if there is one."""
    while isinstance(query, ast.SetOperation):
        query = query.left
    return query.kind
