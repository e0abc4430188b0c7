"""`[SIZE w ADVANCE a]`, Aurora's window of w units that advances by a: parsed, not run yet."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.errors import NotAvailableYet
from thalweg.windows.protocol import (
    Expression,
    WindowBinder,
    WindowCursor,
    WindowKind,
    WindowSpec,
    WindowWriter,
)


@dataclass(frozen=True, slots=True)
class SizeClause:
    size: Expression
    advance: Expression

    def bind(self, binder: WindowBinder) -> WindowSpec:
        binder.fail(
            NotAvailableYet(
                "SIZE windows are not available yet",
                remedy="use [RANGE d], [RANGE d SLIDE s] or [ROWS n]",
            )
        )

    def text(self, writer: WindowWriter) -> str:
        return f"SIZE {writer.expression(self.size)} ADVANCE {writer.expression(self.advance)}"


def _size(c: WindowCursor, by: tuple[Expression, ...]) -> SizeClause | None:
    if not c.word("SIZE"):
        return None
    size = c.expression_()
    c.need("ADVANCE")
    return SizeClause(size, c.expression_())


KINDS = (WindowKind("SIZE w ADVANCE a", _size, ()),)
