"""Clauses that a feature adds to the end of SELECT, behind HAVING, ORDER BY and LIMIT.

A clause turns the relation of SELECT into another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from thalweg.errors import ThalwegError
from thalweg.plan.logical import Node
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


@dataclass(frozen=True, slots=True)
class ClauseKind:
    """`word` begins the clause, and so cannot be an alias; `parse` is called behind it."""

    word: str
    parse: Callable[[Any], SelectClause]
    examples: tuple[str, ...] = ()


SELECT_CLAUSES: list[ClauseKind] = []
