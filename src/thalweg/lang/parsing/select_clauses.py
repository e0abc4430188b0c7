"""Clauses that a feature adds: to the end of SELECT, behind HAVING, ORDER BY and LIMIT, or to a
source of FROM, behind its alias.

A clause turns the relation of SELECT, or of the source, into another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from thalweg.errors import ThalwegError
from thalweg.plan.catalog import StreamDef
from thalweg.plan.expr import Expr
from thalweg.plan.logical import Node, Scan, Schema
from thalweg.windows.protocol import WindowWriter


class ClauseBinder(Protocol):
    """The binder, at one SELECT."""

    def column(self, node: Node, name: str) -> str:
        """The column of the relation with this name."""
        ...

    def refuse(self, error: ThalwegError) -> NoReturn: ...


class SelectClause(Protocol):
    """A clause as parsed: a frozen dataclass."""

    def bind(self, binder: ClauseBinder, node: Node) -> Node: ...
    def text(self, writer: WindowWriter) -> str: ...


class SourceBinder(Protocol):
    """The binder, at one source of FROM. Columns are named `alias.column`."""

    @property
    def alias(self) -> str: ...
    @property
    def fields(self) -> Schema: ...
    @property
    def key(self) -> tuple[str, ...]:
        """The columns that name the entity a row is about."""
        ...

    @property
    def time(self) -> str | None:
        """The column that holds the event time."""
        ...

    def scalar(self, written: Any) -> Expr:
        """The value of an expression, per row of the source."""
        ...

    def fail(self, error: ThalwegError, written: Any = None) -> NoReturn: ...


@dataclass(frozen=True, slots=True)
class SourceRelation:
    """What a clause makes of a source: the relation, the columns in view, and those of them that
    are functions of time."""

    node: Node
    fields: Schema
    curves: tuple[tuple[str, Any], ...] = ()


class OwnSource(Protocol):
    """Streams that a feature makes a relation of wherever they are read."""

    def applies(self, stream: StreamDef) -> bool: ...
    def bind(self, scan: Scan) -> SourceRelation: ...


OWN_SOURCES: list[OwnSource] = []


class RelationClause(Protocol):
    """A clause of a source as parsed: a frozen dataclass."""

    def bind(self, binder: SourceBinder, node: Node) -> SourceRelation:
        """The relation that the source becomes."""
        ...

    def text(self, writer: WindowWriter) -> str: ...


@dataclass(frozen=True, slots=True)
class ClauseKind:
    """`word` begins the clause, and so cannot be an alias; `parse` is called behind it."""

    word: str
    parse: Callable[[Any], Any]
    examples: tuple[str, ...] = ()


SELECT_CLAUSES: list[ClauseKind] = []
SOURCE_CLAUSES: list[ClauseKind] = []
