"""`[SIZE w ADVANCE a]`, Aurora's window of w units that advances by a: `[RANGE w SLIDE a]`."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.errors import WindowMisuse
from thalweg.windows.protocol import (
    Expression,
    WindowBinder,
    WindowCursor,
    WindowKind,
    WindowWriter,
)
from thalweg.windows.range import RangeWindow


@dataclass(frozen=True, slots=True)
class SizeClause:
    size: int
    advance: int

    def bind(self, binder: WindowBinder) -> RangeWindow:
        if self.advance == 0:
            binder.fail(
                WindowMisuse(
                    "a window cannot advance by nothing",
                    remedy="write how far it advances, such as ADVANCE 1 SECOND",
                )
            )
        return RangeWindow(self.size, self.advance)

    def text(self, writer: WindowWriter) -> str:
        return f"SIZE {writer.duration(self.size)} ADVANCE {writer.duration(self.advance)}"


def _size(c: WindowCursor, by: tuple[Expression, ...]) -> SizeClause | None:
    if not c.word("SIZE"):
        return None
    size = c.duration()
    c.need("ADVANCE")
    return SizeClause(size, c.duration())


KINDS = (
    WindowKind(
        "SIZE w ADVANCE a", _size,
        ("[SIZE 6 SECONDS ADVANCE 2 SECONDS]", "[SIZE 2 SECONDS ADVANCE 3 SECONDS]"),
    ),
)  # fmt: skip
