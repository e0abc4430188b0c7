"""ERROR attr WITHIN x[%], ...: how far answers may be from those over the tuples themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.errors import BindError
from thalweg.lang.parsing.select_clauses import ClauseBinder, ClauseKind
from thalweg.lang.syntax import TokenType, exp
from thalweg.plan.logical import Node
from thalweg.windows.protocol import WindowWriter


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """One of its items; a `relative` bound is in percent."""

    attribute: exp.Expr
    within: float
    relative: bool


@dataclass(frozen=True, slots=True)
class ErrorClause:
    bounds: tuple[ErrorBound, ...]

    def text(self, writer: WindowWriter) -> str:
        shown = (
            f"{writer.expression(b.attribute)} WITHIN {b.within!r}{'%' if b.relative else ''}"
            for b in self.bounds
        )
        return f"ERROR {', '.join(shown)}"

    def bind(self, binder: ClauseBinder, node: Node) -> Node:
        binder.refuse(
            BindError(
                "ERROR is for sources with MODEL: other answers are exact",
                remedy="write FROM s MODEL (x = x), or leave ERROR out",
            )
        )


def _clause(c: Any) -> ErrorClause:
    return ErrorClause(c.listed(lambda: _bound(c)))


def _bound(c: Any) -> ErrorBound:
    attribute = c.expression_()
    c.need("WITHIN")
    within = c.number("an error bound")
    return ErrorBound(attribute, within, relative=bool(c._match(TokenType.MOD)))


ERROR = ClauseKind("ERROR", _clause, ())
