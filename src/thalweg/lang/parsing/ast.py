"""Statements as parsed, before any name is resolved.

Scalar expressions stay sqlglot trees (each node has its offset in the text, `meta["at"]`);
everything specific to Thalweg (windows, clauses, statements) is a frozen dataclass. The whole
language is here; what a version cannot run yet is refused by the binder, not by the parser.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from thalweg.lang.parsing.select_clauses import RelationClause, SelectClause
from thalweg.lang.syntax import exp
from thalweg.plan.logical import EmitKind
from thalweg.windows.protocol import WindowClause


@dataclass(frozen=True, slots=True)
class Source:
    """One item of FROM. `window_at` is where in the text its window begins and ends, or would."""

    name: str | None
    subquery: Query | None
    window: WindowClause | None
    alias: str | None
    clause: RelationClause | None
    at: int
    window_at: tuple[int, int] = field(default=(0, 0), compare=False)


@dataclass(frozen=True, slots=True)
class JoinRef:
    """Two items of FROM joined explicitly. `kind` is INNER, CROSS, NATURAL, or any of LEFT, RIGHT,
    FULL, SEMI, ANTI and ASOF as written, without OUTER."""

    kind: str
    left: FromItem
    right: FromItem
    condition: exp.Expr | None
    at: int


FromItem = Source | JoinRef


def sources_of(item: FromItem) -> tuple[Source, ...]:
    """The sources of an item of FROM in the order of the text."""
    if isinstance(item, Source):
        return (item,)
    return sources_of(item.left) + sources_of(item.right)


@dataclass(frozen=True, slots=True)
class QosClause:
    """LATENCY, LOSS or VALUE graph: a piecewise linear function given by its corners."""

    kind: str
    column: str | None
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class IntoClause:
    """FILES, CHANGELOG or TABLE 'path' FORMAT f, SPARK 'format' OPTIONS (...), or CONSOLE."""

    kind: str
    target: str
    format: str | None
    options: tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class SelectPlaces:
    """Where in the text FROM begins, where its list ends, and where WHERE, if any, ends."""

    from_at: int = 0
    from_end: int = 0
    where_end: int = 0


@dataclass(frozen=True, slots=True)
class Select:
    kind: EmitKind | None
    distinct: bool
    items: tuple[exp.Expr, ...]
    from_items: tuple[FromItem, ...]
    conditions: tuple[exp.Expr, ...]
    group_by: tuple[exp.Expr, ...]
    grouping: str | None
    having: exp.Expr | None
    order_by: tuple[exp.Expr, ...]
    limit: exp.Expr | None
    qos: tuple[QosClause, ...]
    into: IntoClause | None
    options: tuple[tuple[str, Any], ...]
    at: int
    clauses: tuple[SelectClause, ...] = ()
    places: SelectPlaces = field(default=SelectPlaces(), compare=False)

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(s for item in self.from_items for s in sources_of(item))


@dataclass(frozen=True, slots=True)
class SetOperation:
    """`options` are those written after a right side in parentheses; otherwise the right side has
    them."""

    operator: str
    left: Query
    right: Query
    options: tuple[tuple[str, Any], ...]
    at: int


Query = Select | SetOperation


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    name: str
    type: str
    precision: int
    scale: int
    nullable: bool
    at: int


@dataclass(frozen=True, slots=True)
class SourceClause:
    """FROM FILES 'path' FORMAT f, FROM SPARK 'format', FROM SENSOR 'url'."""

    kind: str
    target: str
    format: str | None
    options: tuple[tuple[str, Any], ...]
