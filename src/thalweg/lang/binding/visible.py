"""The sources in view of an expression, and the interface that binds its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from thalweg.errors import ThalwegError
from thalweg.lang.syntax import exp
from thalweg.plan.expr import Expr
from thalweg.plan.logical import Schema
from thalweg.windows.protocol import WindowSpec


@dataclass(frozen=True, slots=True)
class Visible:
    """A source in view: its alias, its columns, named `alias.column`, and, if it is a stream that
    has it as a column, the event time. `curves` are columns that are functions of time, each with
    what the feature that made it knows of it; `window` is that of a source with a clause."""

    alias: str
    fields: Schema
    time: Expr | None = None
    is_table: bool = False
    curves: tuple[tuple[str, Any], ...] = ()
    window: WindowSpec | None = None


class ExpressionBinder(Protocol):
    """The part of the scope that the rules of aggregates and of OVER use."""

    @property
    def sources(self) -> tuple[Visible, ...]: ...
    def fail(self, error: ThalwegError, node: exp.Expr | int | None) -> NoReturn: ...
    def bind(self, node: exp.Expr, *, aggregates: bool = False) -> Expr: ...
    def condition(self, node: exp.Expr, *, aggregates: bool = False) -> Expr: ...
